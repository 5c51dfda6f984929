/* SPDX-License-Identifier: MIT */
/* Conformance of a port with arch.h: interrupts, the console's among them, and the idle
 * CPU that waits for one. Section 5 of the guide. */
#include <arch/arch.h>
#include <arch/conform/conform.h>
#include <boot/boot_info.h>
#include <kernel/console.h>
#include <kernel/cpu/cpu.h>
#include <kernel/sched/task.h>
#include <kernel/test/fault.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>

FAULT_DECLARE(console_flood);

static void note_call_cpu(void *arg)
{
	__atomic_fetch_or((u32 *)arg, 1u << cpu_index(), __ATOMIC_RELAXED);
}

/*
 * After set-up no interrupt comes again and again, and those that the kernel wants
 * come.
 */
KTEST(arch_irq_init, "arch.irq_init")
{
	unsigned int c;
	u32 called = 0;

	for_each_online_cpu (c)
		KEXPECT(t, cpus[c].irq_counts[IRQ_SPURIOUS] < 1000);
	KEXPECT_EQ(t, cpu_call(~0u, note_call_cpu, &called), 0);
	KEXPECT_EQ(t, called, cpus_online);
}

/* No key is typed while tests run: nothing is received, and the call does not wait. */
KTEST(arch_console_getc, "arch.console_getc")
{
	for (int i = 0; i < 100; i++)
		KEXPECT_EQ(t, arch_console_getc(), -1);
}

static u64 console_interrupts(void)
{
	u64 events = 0;
	unsigned int c;

	for_each_online_cpu (c)
		events += READ_ONCE(cpus[c].irq_counts[IRQ_CONSOLE]);
	return events;
}

/* tools/run types a key when it reads this line, and a skip is a failure then. A guest that idles
 * for 4 s is taken for one that hangs. */
#define KEY_STEPS 300
#define KEY_STEP_NS (10 * NSEC_PER_MSEC)

KTEST(arch_console_irq_enable, "arch.console_irq_enable")
{
	if (!console_interrupts() && boot_info.icount)
		KSKIP(t, "under -icount no run would be like another one");
	if (!console_interrupts()) {
		printk("# type a key\n");
		for (int i = 0; !console_interrupts() && i < KEY_STEPS; i++)
			task_sleep(KEY_STEP_NS);
		if (!console_interrupts())
			KSKIP(t, "no key has interrupted a CPU");
	}
	KEXPECT(t, console_interrupts() < 100000); /* no storm of one */
}

/* Bytes that come without end are taken in pieces, and by timers if the device is silent. */
KTEST(arch_console_flood, "arch.console_irq_enable.flood")
{
	irq_state_t state;
	u32 first;

	fault_plant(&fault_console_flood, 1);
	state = arch_irq_save();
	console_interrupt();
	first = READ_ONCE(fault_console_flood.times);
	arch_irq_restore(state);
	KEXPECT(t, first < 100);
	KEXPECT(t, KWAIT(READ_ONCE(fault_console_flood.times) > 10 * first));
	fault_plant(&fault_console_flood, 0);
	console_clear_interrupt();
}

#define IDLE_US 10
#define IDLE_TURNS (IDLE_US * 1000) /* of a loop: they take longer than that */

/*
 * Set a timer, let so many turns of a loop pass, and one instruction more if `odd`, then
 * wait. Returns how long the wait took, in ns.
 */
static u64 idle_once(struct ktest_run *t, unsigned int turns, bool odd)
{
	struct conform_flag f;
	u64 start, took;

	preempt_disable();
	arch_irq_disable();
	conform_flag_start(&f, IDLE_US * NSEC_PER_USEC);
#pragma GCC unroll 1 /* an instruction a turn, at least */
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

static volatile u32 datum = 5;

static noinline u32 read_datum(u32 more)
{
	return datum + more;
}
static u32 (*volatile datum_reader)(u32 more) = read_datum;

static void call_by_pointer(void *wrong)
{
	while (!task_should_stop())
		*(u32 *)wrong += datum_reader(1) != 6;
}

/* Preempts the task that calls, at any instruction. Returns how often a call of its own was
 * wrong afterwards. */
static u32 sleep_and_read(void)
{
	u32 wrong = 0;

	for (u32 i = 0; i < 300; i++) {
		task_sleep(10 * NSEC_PER_USEC + i);
		wrong += read_datum(i) != 5 + i;
	}
	return wrong;
}
static u32 (*volatile sleeper)(void) = sleep_and_read;

/*
 * An ABI may have a register that is constant in C code, but that a function which is called
 * through a pointer makes anew (a TOC pointer). An interrupt among its first instructions finds
 * half of the value: its handler needs the whole, and the function goes on with the half.
 * A call through a pointer gives the test its own value back.
 */
KTEST(arch_irq_constant, "arch.irq_init.constant")
{
	u32 inside = 0, outside;
	struct task *caller;

	if (!boot_info.icount)
		KSKIP(t,
		      "interrupts come between blocks only: icount is needed");
	task_set_affinity(current_task(), 1);
	caller = task_create("caller", PRIO_LOW, 1, call_by_pointer, &inside);
	outside = sleeper();
	task_stop(caller);
	task_join(caller);
	task_set_affinity(current_task(), ~0u);
	KEXPECT_EQ(t, inside, 0);
	KEXPECT_EQ(t, outside, 0);
}
