/* SPDX-License-Identifier: MIT */
/* Conformance of a port with arch.h: the CPU's own register, its interrupts on and off,
 * its ways to wait. Section 3 of the guide. */
#include <arch/arch.h>
#include <arch/conform/conform.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/printk.h>
#include <kernel/sched/task.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

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

struct prober {
	struct task *self;
	u32 wrong;
	bool stop;
};

/* arch_current() names the running task, also after the task was preempted and moved. */
static void current_stays(void *arg)
{
	volatile struct prober *p = arg;
	struct task *me = p->self;

	while (!p->stop)
		p->wrong += arch_current() != me;
}

/* Move the tasks from CPU to CPU: where one is running, it is preempted for that. */
static void move_about(volatile struct prober *probe, unsigned int n)
{
	for (unsigned int round = 0; round < 30; round++)
		for (unsigned int i = 0; i < n; i++) {
			unsigned int c = (round + i) % nr_cpus;

			if (cpu_online(c))
				task_set_affinity(probe[i].self, 1u << c);
			task_sleep(20 * NSEC_PER_USEC);
		}
}

KTEST(arch_current, "arch.current")
{
	static volatile struct prober probe[6];

	for (unsigned int i = 0; i < ARRAY_SIZE(probe); i++) {
		probe[i].wrong = probe[i].stop = 0;
		/* Not before the creator has told the task which struct is its own. */
		preempt_disable();
		probe[i].self =
			task_create("current", PRIO_LOW, 1u << cpu_index(),
				    current_stays, (void *)&probe[i]);
		preempt_enable();
	}
	move_about(probe, ARRAY_SIZE(probe));
	for (unsigned int i = 0; i < ARRAY_SIZE(probe); i++)
		probe[i].stop = true;
	for (unsigned int i = 0; i < ARRAY_SIZE(probe); i++) {
		task_join(probe[i].self);
		KEXPECT_EQ(t, probe[i].wrong, 0);
	}
}

/* Opaque: the compiler may know that a task's current does not change. */
static __attribute__((noipa)) struct task *read_current(void)
{
	return arch_current();
}

static void set_current_here(void *arg)
{
	struct ktest_run *t = arg;
	irq_state_t state = arch_irq_save();
	struct task *me = arch_current(), *other = arch_this_cpu()->idle;
	struct task *seen, *stored;

	arch_set_current(other);
	seen = read_current();
	stored = arch_this_cpu()->head.current;
	arch_set_current(me);
	arch_irq_restore(state);
	KEXPECT(t, seen == other && stored == other);
	KEXPECT(t, read_current() == me && me != other);
}

KTEST(arch_set_current, "arch.set_current")
{
	conform_on_each_cpu(set_current_here, t);
}

/* ---- interrupts on and off ---- */

KTEST(arch_irqs_off, "arch.irqs_off")
{
	KEXPECT(t, !arch_irqs_off());
	arch_irq_disable();
	bool off = arch_irqs_off();
	arch_irq_enable();
	KEXPECT(t, off);
	KEXPECT(t, !arch_irqs_off());
}

KTEST(arch_irq_was_off, "arch.irq_was_off")
{
	irq_state_t on = arch_irq_save(), off = arch_irq_save();
	bool on_was_off = arch_irq_was_off(on), off_was_off;

	off_was_off = arch_irq_was_off(off);
	arch_irq_restore(on);
	KEXPECT(t, !on_was_off);
	KEXPECT(t, off_was_off);
}

/* Waits for no other CPU, so no arch_cpu_relax() is needed. */
static void spin_ticks(u64 ticks)
{
	u64 end = arch_clock() + ticks;

	while (arch_clock() < end)
		;
}

/* A timer that is long due fires when interrupts are turned on, and not before. */
static bool held_back(struct ktest_run *t, void (*off)(void), void (*on)(void))
{
	struct conform_flag f;
	bool early;

	preempt_disable();
	off();
	conform_flag_start(&f, 0);
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

/* ---- waiting ---- */

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

static u32 ipis_sent;

/* Sends IPIs to the CPU of that number until told to stop. */
static void send_ipis(void *cpu)
{
	while (!task_should_stop()) {
		arch_ipi_send((unsigned long)cpu);
		WRITE_ONCE(ipis_sent, ipis_sent + 1);
		task_sleep(100 * NSEC_PER_USEC);
	}
}

#define NAPS 20

static u64 relax_ns(void)
{
	irq_state_t state = arch_irq_save();
	u64 start = time_ns();

	for (int i = 0; i < NAPS; i++)
		arch_cpu_relax();
	start = time_ns() - start;
	arch_irq_restore(state);
	return start;
}

/* `ns` is what NAPS calls last while no interrupt waits. */
static void relax_while_interrupts_come(struct ktest_run *t, u32 ipis_least,
					u64 ns)
{
	struct conform_flag f;
	irq_state_t state = arch_irq_save();
	u32 ipis = conform_irq_count(cpu_index(), IRQ_IPI);
	u32 sent = READ_ONCE(ipis_sent);

	conform_flag_start(&f, NSEC_PER_USEC);
	for (int i = 0; i < 200 || READ_ONCE(ipis_sent) - sent < ipis_least;
	     i++)
		arch_cpu_relax();
	/* Where a call sleeps for 20 us or more, an interrupt that waits does not make it spin. */
	if (boot_info.icount && ns >= NAPS * 20 * NSEC_PER_USEC)
		KEXPECT(t, relax_ns() >= ns / 2);
	KEXPECT(t, arch_irqs_off());
	KEXPECT(t, !READ_ONCE(f.fired));
	KEXPECT_EQ(t, conform_irq_count(cpu_index(), IRQ_IPI), ipis);
	arch_irq_restore(state);
	KEXPECT(t, KWAIT(READ_ONCE(f.fired)));
	if (ipis_least)
		KEXPECT(t,
			KWAIT(conform_irq_count(cpu_index(), IRQ_IPI) != ipis));
	timer_cancel(&f.timer);
}

static void relax_beside_a_sender(void *arg)
{
	unsigned long me = cpu_index();
	u64 ns = relax_ns();
	u32 others = cpus_online & ~(1u << me);
	struct task *sender = others ? task_create("ipis", PRIO_HIGH, others,
						   send_ipis, (void *)me) :
				       NULL;

	KEXPECT((struct ktest_run *)arg, sender || !others);
	relax_while_interrupts_come(arg, sender ? 3 : 0, ns);
	if (sender) {
		task_stop(sender);
		task_join(sender);
	}
}

/* A CPU that spins with interrupts off takes none. None of those that come is lost. */
KTEST(arch_cpu_relax_irqs_off, "arch.cpu_relax.irqs_off")
{
	conform_on_each_cpu(relax_beside_a_sender, t);
}

/* Two CPUs wait for each other in turn. */
#define PASSES 20
static u32 ball;

static void play_ball(void *arg)
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
	a = task_create("play-0", PRIO_LOW, 1, play_ball, (void *)0);
	b = task_create("play-1", PRIO_LOW, 2, play_ball, (void *)1);
	task_join(a);
	task_join(b);
	KEXPECT(t, time_ns() - start < 100 * NSEC_PER_MSEC);
}

static void spin_and_say_so(void *arg)
{
	bool *runs = arg;

	WRITE_ONCE(*runs, true);
	while (!task_should_stop())
		;
}

/*
 * The other CPU, which spins for something else, gets one turn for each call. A second
 * one would last until its next tick: 4 ms of guest time.
 */
KTEST(arch_cpu_relax_one_turn, "arch.cpu_relax.one_turn")
{
	static bool runs;
	struct task *other;
	u64 start, ns;

	if (!boot_info.icount || !(cpus_online & 2))
		KSKIP(t, "two CPUs in one thread, so icount, are needed");
	task_set_affinity(current_task(), 1);
	runs = false;
	other = task_create("other", PRIO_LOW, 2, spin_and_say_so, &runs);
	KASSERT(t, other);
	KEXPECT(t, KWAIT(READ_ONCE(runs)));
	preempt_disable();
	start = time_ns();
	for (int i = 0; i < 50; i++)
		arch_cpu_relax();
	ns = time_ns() - start;
	preempt_enable();
	printk("# 50 times: %llu us\n", ns / NSEC_PER_USEC);
	task_stop(other);
	task_join(other);
	task_set_affinity(current_task(), ~0u);
	KEXPECT(t, ns < 20 * NSEC_PER_MSEC);
}

KTEST(arch_cpu_halt, "arch.cpu_halt")
{
	KSKIP(t,
	      "never returns: its effect is a panic's silence on other CPUs");
}
