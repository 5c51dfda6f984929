/*
 * Conformance of a port with arch.h: CPUs, interrupts. One test for each function,
 * named arch.<function> without the arch_. conform_time.c tests clock and timer,
 * conform_mm.c memory, tasks and traps, conform_trace.c and its neighbours
 * arch_trace.h. A function that does not return, or that runs once at boot, is tested
 * by its effect.
 */
#include <arch/arch.h>
#include <arch/conform/conform.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/test/ktest.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/console.h>

void conform_on_each_cpu(void (*fn)(void *arg), void *arg)
{
	unsigned int c;

	for_each_online_cpu (c)
		task_join(
			task_create("conform", PRIO_NORMAL, 1u << c, fn, arg));
}

/* Waits for no other CPU, so no arch_cpu_relax() is needed. */
static void spin_ticks(u64 ticks)
{
	u64 end = arch_clock() + ticks;

	while (arch_clock() < end)
		;
}

/* ---- boot and end ---- */

KTEST(arch_name, "arch.name")
{
	KEXPECT(t, strlen(arch_name) > 0 && !strchr(arch_name, ' '));
}

static void put_line(const char *s)
{
	irq_state_t state = arch_irq_save();

	while (*s)
		arch_console_putc(*s++);
	arch_irq_restore(state);
}

KTEST(arch_console_init, "arch.console_init")
{
	/*
	 * The console is set up again while it works: nothing may be lost or wait for
	 * ever. The host's tests look for this line (tests/test_boot.py).
	 */
	arch_console_init();
	put_line("# arch_console_init: this line is its effect\r\n");
	arch_console_irq_enable();
	KEXPECT_EQ(t, arch_console_getc(), -1);
}

static u32 lines_put;

static void put_from_here(void *arg)
{
	char line[48];

	(void)arg;
	snprintf(line, sizeof(line), "# arch_console_putc: from CPU %u\r\n",
		 cpu_index());
	put_line(line);
	lines_put++;
}

static unsigned int nr_online(void)
{
	unsigned int c, n = 0;

	for_each_online_cpu (c)
		n++;
	return n;
}

KTEST(arch_console_putc, "arch.console_putc")
{
	conform_on_each_cpu(put_from_here, NULL);
	/*
	 * arch_console_putc() waited for the device: every byte went out at once or in
	 * time.
	 */
	KEXPECT(t, lines_put >= nr_online());
}

/* No key is typed while tests run: nothing is received, and the call does not wait. */
KTEST(arch_console_getc, "arch.console_getc")
{
	for (int i = 0; i < 100; i++)
		KEXPECT_EQ(t, arch_console_getc(), -1);
}

KTEST(arch_console_irq_enable, "arch.console_irq_enable")
{
	u64 events = 0;
	unsigned int c;

	for_each_online_cpu (c)
		events += cpus[c].irq_counts[IRQ_CONSOLE];
	if (!events)
		KSKIP(t, "nothing was typed yet; the tests of tests/ type");
	KEXPECT(t, events < 100000); /* no storm of an unacknowledged one */
}

KTEST(arch_power_off, "arch.power_off")
{
	KSKIP(t, "ends the machine: tools/run checks each run's exit status");
}

/* ---- CPUs ---- */

struct here {
	struct cpu *cpu[MAX_CPUS];
	struct task *task[MAX_CPUS];
};

static void note_here(void *arg)
{
	struct here *h = arg;

	h->cpu[cpu_index()] = arch_this_cpu();
	h->task[cpu_index()] = arch_current();
}

KTEST(arch_this_cpu, "arch.this_cpu")
{
	struct here h = { 0 };
	unsigned int c;

	conform_on_each_cpu(note_here, &h);
	for_each_online_cpu (c)
		KEXPECT(t, h.cpu[c] == &cpus[c]);
	cpu_call(~0u, note_here, &h);
	for_each_online_cpu (c) {
		KEXPECT(t, h.cpu[c] == &cpus[c]);
		KEXPECT(t, cpus[c].head.self == &cpus[c].head);
	}
}

/* arch_current() names the running task, whatever preempts and moves the task. */
static void current_stays(void *arg)
{
	struct task *me = *(struct task *volatile *)arg;
	u32 *wrong = (u32 *)arg + sizeof(me) / sizeof(u32);

	for (int i = 0; i < 30000; i++)
		*wrong += arch_current() != me;
}

KTEST(arch_current, "arch.current")
{
	static struct {
		struct task *self;
		u32 wrong;
	} volatile probe[6];
	struct task *task[6];

	for (int i = 0; i < 6; i++) {
		probe[i].wrong = 0;
		/* Not before the creator has told the task which struct is its own. */
		preempt_disable();
		task[i] = task_create("current", PRIO_LOW, 1u << cpu_index(),
				      current_stays, (void *)&probe[i]);
		probe[i].self = task[i];
		preempt_enable();
		task_set_affinity(task[i], ~0u);
	}
	for (int i = 0; i < 6; i++) {
		task_join(task[i]);
		KEXPECT_EQ(t, probe[i].wrong, 0);
	}
}

KTEST(arch_cpu_start, "arch.cpu_start")
{
	unsigned int c;

	KEXPECT_EQ(t, cpus_online, (1u << nr_cpus) - 1);
	for_each_online_cpu (c)
		KEXPECT(t, cpus[c].hwid.id == boot_info.cpu_hwid[c].id);
}

static void timer_flag(struct timer *timer);

struct flag_timer {
	struct timer timer;
	u64 fired_at;
	bool fired;
};

static void timer_flag(struct timer *timer)
{
	struct flag_timer *f = container_of(timer, struct flag_timer, timer);

	f->fired_at = arch_clock();
	WRITE_ONCE(f->fired, true);
}

#define IDLE_US 10
#define IDLE_TURNS (IDLE_US * 1000) /* of a loop: they take longer than that */

/*
 * Set a timer, let so many turns of a loop pass, and one instruction more if `odd`; then
 * wait. Returns how long the wait took, in ns.
 */
static u64 idle_once(struct ktest_run *t, unsigned int turns, bool odd)
{
	struct flag_timer f = { .fired = false };
	u64 start, took;

	timer_setup(&f.timer, timer_flag);
	preempt_disable();
	arch_irq_disable();
	timer_start(&f.timer, IDLE_US * NSEC_PER_USEC);
	while (turns--)
		asm volatile("");
	if (odd)
		asm volatile("nop");
	start = arch_clock();
	arch_cpu_idle();
	took = arch_clock() - start;
	KEXPECT(t, !arch_irqs_off());
	arch_irq_enable();
	preempt_enable();
	/* It may have ended for another interrupt. */
	while (!READ_ONCE(f.fired))
		;
	return clock_delta_to_ns(took);
}

/* With more turns the timer is due before the wait. The fewest such. */
static unsigned int idle_turns(struct ktest_run *t)
{
	unsigned int lo = 0, hi = IDLE_TURNS;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (idle_once(t, mid, false) < NSEC_PER_USEC / 2)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/*
 * The interrupt comes around the start of the wait, under -icount at each instruction
 * there, and the wait ends. If an interrupt came between the enabling and the wait,
 * the CPU would wait until its next tick. Without -icount only a hang can be seen.
 */
static void idle_race(void *arg)
{
	struct ktest_run *t = arg;
	unsigned int middle = boot_info.icount ? idle_turns(t) : IDLE_TURNS / 2;
	unsigned int range = boot_info.icount ? 200 : 12;
	u64 longest = 0;

	for (unsigned int i = 0; i < 2 * range; i++)
		longest = max(longest,
			      idle_once(t, middle + i / 2 - range / 2, i % 2));
	if (boot_info.icount)
		KEXPECT(t, longest < TICK_NS / 2);
}

KTEST(arch_cpu_idle, "arch.cpu_idle")
{
	conform_on_each_cpu(idle_race, t);
}

KTEST(arch_cpu_relax, "arch.cpu_relax")
{
	irq_state_t state;

	for (int i = 0; i < 20; i++)
		arch_cpu_relax();
	KEXPECT(t, !arch_irqs_off());
	state = arch_irq_save();
	for (int i = 0; i < 20; i++)
		arch_cpu_relax();
	KEXPECT(t, arch_irqs_off());
	arch_irq_restore(state);
}

/* Two CPUs wait for each other in turn. */
#define PASSES 20
static u32 ball;

static void play(void *arg)
{
	u32 side = (unsigned long)arg;

	while (READ_ONCE(ball) < PASSES)
		if (READ_ONCE(ball) % 2 == side)
			WRITE_ONCE(ball, ball + 1);
		else
			arch_cpu_relax();
}

/* With one thread for all CPUs, a CPU that spins must let the other run. Otherwise a
 * pass takes all of QEMU's 100 ms for one CPU. */
KTEST(arch_cpu_relax_yields, "arch.cpu_relax.yields")
{
	struct task *a, *b;
	u64 start = time_ns();

	if (!boot_info.icount || !(cpus_online & 2))
		KSKIP(t, "two CPUs in one thread, so icount, are needed");
	ball = 0;
	a = task_create("play-0", PRIO_LOW, 1, play, (void *)0);
	b = task_create("play-1", PRIO_LOW, 2, play, (void *)1);
	task_join(a);
	task_join(b);
	KEXPECT(t, time_ns() - start < 100 * NSEC_PER_MSEC);
}

KTEST(arch_cpu_halt, "arch.cpu_halt")
{
	KSKIP(t,
	      "never returns: its effect is a panic's silence on other CPUs");
}

/* ---- interrupts ---- */

KTEST(arch_irqs_off, "arch.irqs_off")
{
	KEXPECT(t, !arch_irqs_off());
	arch_irq_disable();
	bool off = arch_irqs_off();
	arch_irq_enable();
	KEXPECT(t, off);
	KEXPECT(t, !arch_irqs_off());
}

/* A timer that is long due fires when interrupts are turned on, and not before. */
static bool held_back(struct ktest_run *t, void (*off)(void), void (*on)(void))
{
	struct flag_timer f = { .fired = false };
	bool early;

	timer_setup(&f.timer, timer_flag);
	preempt_disable();
	off();
	timer_start(&f.timer, 0);
	spin_ticks(ns_to_clock_delta(30 * NSEC_PER_USEC));
	early = READ_ONCE(f.fired);
	on();
	preempt_enable();
	KEXPECT(t, KWAIT(READ_ONCE(f.fired)));
	return !early;
}

static irq_state_t outer, inner;

static void save_both(void)
{
	outer = arch_irq_save();
	inner = arch_irq_save();
}

static void restore_both(void)
{
	arch_irq_restore(inner);
	arch_irq_restore(outer);
}

static void off_plain(void)
{
	arch_irq_disable();
}

static void on_plain(void)
{
	arch_irq_enable();
}

KTEST(arch_irq_save, "arch.irq_save")
{
	KEXPECT(t, held_back(t, save_both, restore_both));
}

KTEST(arch_irq_restore, "arch.irq_restore")
{
	irq_state_t a = arch_irq_save(), b = arch_irq_save();
	bool between;

	arch_irq_restore(b);
	between = arch_irqs_off();
	arch_irq_restore(a);
	KEXPECT(t, between);
	KEXPECT(t, !arch_irqs_off());
}

KTEST(arch_irq_disable, "arch.irq_disable")
{
	KEXPECT(t, held_back(t, off_plain, on_plain));
}

KTEST(arch_irq_enable, "arch.irq_enable")
{
	arch_irq_disable();
	arch_irq_enable();
	KEXPECT(t, !arch_irqs_off());
	KEXPECT(t, held_back(t, off_plain, on_plain));
}

u32 conform_irq_count(unsigned int cpu, enum irq_kind kind)
{
	return READ_ONCE(cpus[cpu].irq_counts[kind]);
}

/*
 * After set-up no interrupt comes again and again, and those that the kernel wants
 * come.
 */
KTEST(arch_irq_init, "arch.irq_init")
{
	unsigned int c;

	for_each_online_cpu (c)
		KEXPECT(t, cpus[c].irq_counts[IRQ_SPURIOUS] < 1000);
	KEXPECT_EQ(t, cpu_call(~0u, put_from_here, NULL), 0);
}

static void ipi_others(void *arg)
{
	struct ktest_run *t = arg;
	unsigned int c, me = cpu_index();

	for_each_online_cpu (c) {
		u32 before = conform_irq_count(c, IRQ_IPI);

		if (c == me)
			continue;
		arch_ipi_send(c);
		KEXPECT(t, KWAIT(conform_irq_count(c, IRQ_IPI) != before));
	}
}

KTEST(arch_ipi_send, "arch.ipi_send")
{
	KNEED_TWO(t);
	conform_on_each_cpu(ipi_others, t);
}

/* One NMI comes to the CPU that it was sent to, with interrupts off or on. */
KTEST(arch_nmi_send, "arch.nmi_send")
{
	irq_state_t state = arch_irq_save();
	unsigned int c = cpu_index();
	u32 before = conform_irq_count(c, IRQ_NMI);
	int err = arch_nmi_send(c);

	for (unsigned int i = 0; !err && i < 1000; i++)
		arch_cpu_relax();
	arch_irq_restore(state);
	if (err)
		KSKIP(t, "this machine has no NMI");
	KEXPECT_EQ(t, conform_irq_count(c, IRQ_NMI) - before, 1);
	for_each_online_cpu (c) {
		before = conform_irq_count(c, IRQ_NMI);
		KEXPECT_EQ(t, arch_nmi_send(c), 0);
		KEXPECT(t, KWAIT(conform_irq_count(c, IRQ_NMI) == before + 1));
	}
}
