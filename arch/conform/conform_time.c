/* SPDX-License-Identifier: MIT */
/* Conformance of a port with arch.h: the clock, the one-shot timer, and the count of
 * instructions. */
#include <arch/arch.h>
#include <arch/conform/conform.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/lib/string.h>
#include <kernel/test/ktest.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

static u64 last_clock;

/* cpu_call() orders one CPU's call before the next one's. */
static void clock_forward(void *arg)
{
	u64 now = arch_clock();

	*(u32 *)arg += now < last_clock;
	last_clock = now;
}

KTEST(arch_clock, "arch.clock")
{
	u32 backwards = 0;
	unsigned int c;
	u64 start = arch_clock();

	last_clock = 0;
	for (int i = 0; i < 20; i++)
		for_each_online_cpu (c)
			cpu_call(1u << c, clock_forward, &backwards);
	KEXPECT_EQ(t, backwards, 0);
	KEXPECT(t, last_clock > start);
}

#define LONG_SECONDS 130

/*
 * A counter that runs over within two minutes is carried on (MIPS: 32 bits of 100 MHz). Under
 * -icount the time of an idle machine takes none of the host's.
 */
KTEST(arch_clock_minutes, "arch.clock.two_minutes")
{
	const u64 step = 5 * NSEC_PER_SEC;
	u64 before, took;

	if (!boot_info.icount)
		KSKIP(t, "two minutes would have to be waited for");
	for (unsigned int s = 0; s < LONG_SECONDS; s += 5) {
		before = arch_clock();
		task_sleep(step);
		took = clock_delta_to_ns(arch_clock() - before);
		KEXPECT(t, took >= step && took < step + step / 100);
	}
}

/*
 * time_init() uses the rate that it returned. A port that measures the rate may be a
 * little off.
 */
KTEST(arch_clock_init, "arch.clock_init")
{
	u64 hz = ns_to_clock_delta(NSEC_PER_SEC);

	KEXPECT(t, hz >= 1000000 && hz < 1ull << 33);
	if (boot_info.clock_hz)
		KEXPECT(t, hz >= boot_info.clock_hz - boot_info.clock_hz / 64 &&
				   hz <= boot_info.clock_hz +
						   boot_info.clock_hz / 64);
}

/* ---- the one-shot timer: the kernel's own use of it is put back after ---- */

static void timer_give_back(void)
{
	arch_this_cpu()->timers.programmed = ~0ull;
	time_program();
}

/* Had the first deadline of count_shots() passed before the last one was set? The host was slow. */
static bool shots_slow;

/* Does the CPU relax while it waits? A port may set the timer for that, to a time of its own. */
static bool shots_relax;

/* In a list of deadlines: the timer is made ready anew, and is silent. */
#define READY_AGAIN (1ull << 62)

/*
 * Set the deadlines in turn, so many ticks ahead, and let interrupts in until
 * one has come or `wait` ticks have passed: how many timer interrupts came?
 */
static u32 count_shots(const u64 *ahead, unsigned int n, u64 wait)
{
	unsigned int me;
	u32 before, came;
	u64 start;

	preempt_disable();
	arch_irq_disable();
	me = cpu_index();
	before = conform_irq_count(me, IRQ_TIMER);
	start = arch_clock();
	for (unsigned int i = 0; i < n; i++)
		if (ahead[i] == READY_AGAIN)
			arch_timer_init();
		else
			arch_timer_set(arch_clock() + ahead[i]);
	shots_slow = arch_clock() - start >= ahead[0];
	arch_irq_enable();
	do {
		if (shots_relax)
			arch_cpu_relax();
		came = conform_irq_count(me, IRQ_TIMER) - before;
	} while (!came && arch_clock() - start < wait);
	arch_irq_disable();
	timer_give_back();
	arch_irq_enable();
	preempt_enable();
	return came;
}

/*
 * No interrupt comes. A port may need one for itself now and then, but not each time. A deadline
 * that had passed before it was replaced may have raised one: then it says nothing.
 */
static bool stays_quiet(const u64 *ahead, unsigned int n)
{
	u64 wait = ns_to_clock_delta(NSEC_PER_MSEC);

	for (unsigned int tries = 0, fired = 0; fired < 2 && tries < 100;
	     tries++) {
		if (!count_shots(ahead, n, wait))
			return true;
		fired += !shots_slow;
	}
	return false;
}

/* One interrupt comes. The wait is long: only a timer that hangs uses it up. */
static bool fires_once(const u64 *ahead, unsigned int n)
{
	return count_shots(ahead, n, ns_to_clock_delta(KWAIT_NS));
}

static void check_timer(void *arg)
{
	struct ktest_run *t = arg;
	u64 ms = ns_to_clock_delta(NSEC_PER_MSEC);
	u64 near = ms / 50, far = 20000 * ms;

	KEXPECT(t, stays_quiet(&far, 1));
	/* No time but the deadline is an event. */
	shots_relax = true;
	KEXPECT(t, stays_quiet(&far, 1));
	shots_relax = false;
	KEXPECT(t, fires_once(&near, 1));
	/* Only the last request counts. */
	KEXPECT(t, fires_once((u64[]){ far, near }, 2));
	KEXPECT(t, stays_quiet((u64[]){ near, far }, 2));
	KEXPECT(t, stays_quiet((u64[]){ near, READY_AGAIN }, 2));
	/* A deadline that has passed fires at once: a clock that began at 0 may be young. */
	KEXPECT(t, fires_once((u64[]){ far, -near }, 2));
}

KTEST(arch_timer_set, "arch.timer_set")
{
	conform_on_each_cpu(check_timer, t);
}

#define ROUNDS 20
static u64 fired_at;

static void note_time(struct timer *timer)
{
	(void)timer;
	WRITE_ONCE(fired_at, time_ns());
}

static void spin_without_calls(void *arg)
{
	(void)arg;
	while (!task_should_stop())
		asm volatile("");
}

/*
 * A timer comes when it is due, however busy another CPU is. Under -icount that CPU runs as
 * soon as the timer is set, until it is due. So a port that looks at the clock after it has
 * set the timer finds the deadline over, and must not set it again. Now and then a tick that
 * is due at the same moment is handled first, is set anew, and lets the other CPU run.
 */
KTEST(arch_timer_set_busy, "arch.timer_set.other_cpu_busy")
{
	unsigned int late = 0;
	struct timer timer;
	struct task *s;
	u64 start;

	KNEED_TWO(t);
	if (!boot_info.icount)
		KSKIP(t, "needs -icount: else the host may hold up any CPU");
	timer_setup(&timer, note_time);
	task_set_affinity(current_task(), 1u << 0);
	s = task_create("spin", PRIO_NORMAL, 1u << 1, spin_without_calls, NULL);
	KASSERT(t, s);
	for (int i = 0; i < ROUNDS; i++) {
		WRITE_ONCE(fired_at, 0);
		start = time_ns();
		timer_start(&timer, NSEC_PER_MSEC);
		while (!READ_ONCE(fired_at) && time_ns() - start < KWAIT_NS)
			;
		late += fired_at - start > 3 * NSEC_PER_MSEC / 2;
	}
	KEXPECT(t, late < ROUNDS / 4);
	timer_cancel(&timer);
	task_stop(s);
	task_join(s);
	task_set_affinity(current_task(), ~0u);
}

/* ---- a timer that is set anew while the last one expires ---- */

#define RACE_NS (200 * NSEC_PER_MSEC)
/* A CPU that sleeps for this long sleeps past its timer, on any host. */
#define LOST_NS (5 * NSEC_PER_SEC)

static u64 longest_relax[MAX_CPUS];

/*
 * Set the timer to a moment that is about as far away as the next request, so that
 * the hardware (or QEMU's thread of devices) handles the old request while the CPU
 * makes the new one. Then relax, which on some ports sleeps until a timer of its
 * own. Interrupts are off, so nothing but a timer ends that sleep.
 */
static void race_timer(void *arg)
{
	u64 us = ns_to_clock_delta(NSEC_PER_USEC), *longest = arg;
	u64 start = arch_clock(), end = start + ns_to_clock_delta(RACE_NS);
	u32 seed = cpu_index() + 1;

	for (u64 now = start; now < end; now = arch_clock()) {
		arch_timer_set(now + ktest_random(&seed) % 32 * us);
		/* Not only clock reads: under -icount QEMU takes long for each. */
		for (u64 at = now + ktest_random(&seed) % 256 * us; now < at;
		     now = arch_clock())
			for (int n = 0; n < 32; n++)
				asm volatile("");
		for (int i = 0; i < 80; i++) {
			u64 before = arch_clock();

			arch_cpu_relax();
			longest[cpu_index()] = max(longest[cpu_index()],
						   arch_clock() - before);
		}
	}
	timer_give_back();
}

KTEST(arch_timer_set_race, "arch.timer_set.race")
{
	memset(longest_relax, 0, sizeof(longest_relax));
	cpu_call(~0u, race_timer, longest_relax);
	for (unsigned int c = 0; c < MAX_CPUS; c++)
		KEXPECT(t, clock_delta_to_ns(longest_relax[c]) < LOST_NS);
}

static void init_timer_again(void *arg)
{
	struct ktest_run *t = arg;
	u64 near = ns_to_clock_delta(20 * NSEC_PER_USEC);

	arch_irq_disable();
	arch_timer_init();
	timer_give_back();
	arch_irq_enable();
	KEXPECT(t, fires_once(&near, 1));
}

KTEST(arch_timer_init, "arch.timer_init")
{
	conform_on_each_cpu(init_timer_again, t);
}

#define LOOPS 100000

/* A round has two instructions at least: the loop may be one. Under -icount each of them takes a
 * nanosecond. The clock may have long ticks, so there are many rounds. */
KTEST(arch_instructions, "arch.instructions")
{
	irq_state_t state = arch_irq_save();
	u64 before = arch_clock(), start = arch_instructions(), taken, ns;

#pragma GCC unroll 1
	for (int i = 0; i < LOOPS; i++)
		asm volatile("nop");
	taken = arch_instructions() - start;
	ns = clock_delta_to_ns(arch_clock() - before);
	arch_irq_restore(state);
	KEXPECT(t, (s64)taken >= 0);
	if (!boot_info.icount)
		return;
	KEXPECT(t, taken >= LOOPS * 3 / 2 && taken < LOOPS * 10);
	KEXPECT(t, taken > ns - ns / 256 && taken < ns + ns / 256);
}
