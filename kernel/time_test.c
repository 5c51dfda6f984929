/* SPDX-License-Identifier: MIT */
/*
 * Proves that time is the same on every CPU and never goes back, that clock
 * conversion neither overflows nor drifts, and that timers fire in order, not
 * early, and not at all once they are cancelled.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/test/ktest.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

/* ---- time ---- */

static struct spinlock last_lock = SPINLOCK_INIT("time_test");
static u64 last_ns; /* under last_lock */
static u32 backwards;

static void look_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		irq_state_t state = spin_lock(&last_lock);
		u64 now = time_ns();

		backwards += now < last_ns;
		last_ns = now;
		spin_unlock(&last_lock, state);
	}
}

KTEST(time_monotonic, "time.monotonic_across_cpus")
{
	struct task *task[MAX_CPUS];
	unsigned int c, n = 0;

	last_ns = 0;
	backwards = 0;
	for_each_online_cpu (c)
		task[n++] = task_create("looker", PRIO_LOW, 1u << c, look_often,
					NULL);
	while (n)
		task_join(task[--n]);
	KEXPECT_EQ(t, backwards, 0);
	KEXPECT(t, last_ns > 0);
}

KTEST(time_convert, "time.conversion")
{
	u64 hz = ns_to_clock_delta(NSEC_PER_SEC), ns;

	KEXPECT(t, hz >= 1000000);
	/* A day and a year are right to a thousand-millionth part. */
	ns = clock_delta_to_ns((hz - 1) * 86400);
	KEXPECT(t, ns / 86400 >= NSEC_PER_SEC - 2 * NSEC_PER_SEC / hz - 2);
	KEXPECT(t, ns / 86400 <= NSEC_PER_SEC);
	KEXPECT(t, clock_delta_to_ns(hz * 86400 * 365) / 86400 / 365 >=
			   NSEC_PER_SEC - 2);
	/* More ticks are never less time. Converting there and back is never sooner. */
	for (u64 ticks = 1, last = 0; ticks < 1ull << 56; ticks *= 3) {
		ns = clock_delta_to_ns(ticks);
		KEXPECT(t, ns >= last);
		KEXPECT(t, clock_delta_to_ns(ticks + 1) >= ns);
		last = ns;
	}
	for (ns = 1; ns < ~0ull / 3; ns *= 3)
		KEXPECT(t, ns_to_clock_delta(ns) >= ns_to_clock_delta(ns - 1));
	KEXPECT(t, ns_to_clock_delta(~0ull) >= ns_to_clock_delta(1ull << 56));
	KEXPECT_EQ(t, clock_to_ns(0), 0);
}

/* ---- timers ---- */

struct shot {
	struct timer timer;
	u64 due, fired;
	unsigned int nr, cpu;
	bool wrong_context;
};
static u32 nr_fired;

static void shot_fire(struct timer *timer)
{
	struct shot *s = container_of(timer, struct shot, timer);

	s->fired = time_ns();
	s->cpu = cpu_index();
	s->wrong_context = !arch_irqs_off() || !in_interrupt();
	s->nr = ++nr_fired;
}

static void shot_start(struct shot *s, u64 ns)
{
	s->due = time_ns() + ns;
	s->fired = 0;
	timer_start(&s->timer, ns);
}

/* Timers of one CPU fire in the order of their deadlines. */
KTEST(time_timers, "time.timers")
{
	static struct shot shot[4];
	static const u8 ms[4] = { 30, 10, 40, 20 };
	irq_state_t flags;
	u64 begun;

	for (int i = 0; i < 4; i++)
		timer_setup(&shot[i].timer, shot_fire);
	task_set_affinity(current_task(), 1);
	nr_fired = 0;
	flags = arch_irq_save();
	/*
	 * If the host held this CPU up, the deadlines may have changed order: then
	 * again.
	 */
	do {
		begun = time_ns();
		for (int i = 0; i < 4; i++)
			shot_start(&shot[i], ms[i] * NSEC_PER_MSEC);
		timer_cancel(&shot[0].timer);
		/* This timer is started anew: only its second deadline counts. */
		shot_start(&shot[1], 50 * NSEC_PER_MSEC);
	} while (time_ns() - begun > 5 * NSEC_PER_MSEC);
	arch_irq_restore(flags);
	KEXPECT(t, KWAIT(READ_ONCE(nr_fired) == 3));
	KEXPECT(t, !shot[0].fired);
	KEXPECT(t, shot[3].nr == 1 && shot[2].nr == 2 && shot[1].nr == 3);
	for (int i = 1; i < 4; i++) {
		KEXPECT(t, shot[i].fired >= shot[i].due);
		KEXPECT(t, !shot[i].wrong_context);
		KEXPECT_EQ(t, shot[i].cpu, 0);
	}
	timer_cancel(&shot[1].timer);
	task_set_affinity(current_task(), ~0u);
}

static void restart_timer(struct timer *timer)
{
	if (++nr_fired < 10)
		timer_start(timer, 100 * NSEC_PER_USEC);
}

KTEST(time_restart, "time.timer_restarts_itself")
{
	static struct timer timer;

	nr_fired = 0;
	timer_setup(&timer, restart_timer);
	timer_start(&timer, 0);
	KEXPECT(t, KWAIT(READ_ONCE(nr_fired) == 10));
	timer_cancel(&timer);
}

static void restart_for_ever(struct timer *timer)
{
	nr_fired++;
	timer_start(timer, 100 * NSEC_PER_USEC);
}

/* A timer that another CPU cancels while it fires does not fire again. */
KTEST(time_cancel, "time.cancel_from_elsewhere")
{
	static struct timer timer;
	unsigned int c;

	timer_setup(&timer, restart_for_ever);
	for_each_online_cpu (c) {
		u32 fired;

		task_set_affinity(current_task(), 1);
		nr_fired = 0;
		timer_start(&timer, 0);
		task_set_affinity(current_task(), 1u << c);
		KEXPECT(t, KWAIT(READ_ONCE(nr_fired) > 5));
		timer_cancel(&timer);
		fired = READ_ONCE(nr_fired);
		task_sleep(NSEC_PER_MSEC);
		KEXPECT_EQ(t, nr_fired, fired);
	}
	task_set_affinity(current_task(), ~0u);
}

static struct {
	struct timer timer;
	bool runs, may_end, ended;
} slow;

static void end_slowly(struct timer *timer)
{
	struct spin_limit limit = spin_limit_begin(KWAIT_NS);

	(void)timer;
	WRITE_ONCE(slow.runs, true);
	while (!READ_ONCE(slow.may_end) && !spin_limit_over(&limit))
		arch_cpu_relax();
	for (int i = 0; i < 2000; i++)
		arch_cpu_relax();
	WRITE_ONCE(slow.ended, true);
}

/* A task that cancels a timer may free it afterwards, even where another CPU ran its function. */
KTEST(time_cancel_runs, "time.timer_cancel.while_it_runs")
{
	KNEED_TWO(t);
	slow.runs = slow.may_end = slow.ended = false;
	timer_setup(&slow.timer, end_slowly);
	task_set_affinity(current_task(), 2);
	timer_start(&slow.timer, NSEC_PER_MSEC);
	task_set_affinity(current_task(), 1);
	KEXPECT(t, KWAIT(READ_ONCE(slow.runs)));
	WRITE_ONCE(slow.may_end, true);
	timer_cancel(&slow.timer);
	KEXPECT(t, READ_ONCE(slow.ended));
	KEXPECT(t, KWAIT(READ_ONCE(slow.ended)));
	task_set_affinity(current_task(), ~0u);
}

/* The host's pause between two looks is no time that a CPU has spun. */
KTEST(time_spin_limit, "time.spin_limit")
{
	const u64 ns = 3 * NSEC_PER_MSEC;
	u64 start = time_ns();
	struct spin_limit l = spin_limit_begin(ns);

	l.seen -= ns_to_clock_delta(1000 * ns);
	KEXPECT(t, !spin_limit_over(&l));
	while (!spin_limit_over(&l))
		;
	KEXPECT(t, time_ns() - start >= ns - SPIN_LOOK_NS);
}
