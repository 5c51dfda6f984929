/* SPDX-License-Identifier: MIT */
/*
 * Proves the scheduler's rules: priorities, round robin, preemption by timer and
 * by wake-up, affinity, balancing, an idle CPU without a tick, and that no move
 * loses a task.
 */
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/test/fault.h>
#include <kernel/test/ktest.h>
#include <kernel/sched/balance.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/lib/string.h>
#include <kernel/lock/wait.h>
#include <kernel/test/again.h>

/* The test itself stays on this CPU, so that it competes with its tasks. */
#define HERE 1u

static void pin_here(void)
{
	task_set_affinity(current_task(), HERE);
}

static void unpin_task(void)
{
	task_set_affinity(current_task(), ~0u);
}

static unsigned int order[3], nr_order;

static void log_turn(void *arg)
{
	order[nr_order++] = (unsigned long)arg;
}

KTEST(sched_priority, "sched.priority")
{
	struct task *a, *b, *c;

	nr_order = 0;
	pin_here();
	a = task_create("prio-4", 4, HERE, log_turn, (void *)4);
	b = task_create("prio-6", 6, HERE, log_turn, (void *)6);
	c = task_create("prio-5", 5, HERE, log_turn, (void *)5);
	/* This task has priority 8, so none of the others has run yet. */
	KEXPECT_EQ(t, nr_order, 0);
	task_join(a);
	task_join(b);
	task_join(c);
	KEXPECT_EQ(t, nr_order, 3);
	KEXPECT(t, order[0] == 6 && order[1] == 5 && order[2] == 4);
	unpin_task();
}

/* ---- round robin ---- */

static u32 last_turn, turns[3];

/* Counts how often another task ran since this one last looked. */
static void count_turns(void *arg)
{
	u32 me = (unsigned long)arg;

	while (!task_should_stop()) {
		arch_cpu_relax();
		if (READ_ONCE(last_turn) == me)
			continue;
		WRITE_ONCE(last_turn, me);
		WRITE_ONCE(turns[me], turns[me] + 1);
	}
}

KTEST(sched_round_robin, "sched.round_robin")
{
	struct task *task[3];
	u32 seen[3];

	last_turn = ~0u;
	/* On their CPU, so that none of them has a turn while this task looks at all three. */
	pin_here();
	for (unsigned long i = 0; i < 3; i++) {
		turns[i] = 0;
		task[i] = task_create("turns", PRIO_LOW, HERE, count_turns,
				      (void *)i);
	}
	KEXPECT(t, KWAIT(READ_ONCE(turns[0]) >= 4 && READ_ONCE(turns[1]) >= 4 &&
			 READ_ONCE(turns[2]) >= 4));
	/* Now: a task that is stopped may count once more, or not. */
	memcpy(seen, turns, sizeof(seen));
	for (int i = 0; i < 3; i++)
		task_stop(task[i]);
	for (int i = 0; i < 3; i++)
		task_join(task[i]);
	/*
	 * The tasks run in a circle, so none is a whole round ahead. Without -icount a
	 * slow host may let a slice pass before its task has done anything in it.
	 */
	for (int i = 0; boot_info.icount && i < 3; i++)
		KEXPECT(t, seen[i] + 1 >= seen[0] && seen[i] <= seen[0] + 1);
	unpin_task();
}

static void wake_often(void *arg)
{
	(void)arg;
	while (!task_should_stop())
		task_sleep(TICK_NS / 4);
}

/* A task that is preempted in each of its slices still comes to the end of one. */
KTEST(sched_slice, "sched.slice_survives_preemption")
{
	struct task *often =
		task_create("often", PRIO_HIGH, HERE, wake_often, NULL);
	struct task *task[2];

	last_turn = ~0u;
	for (unsigned long i = 0; i < 2; i++) {
		turns[i] = 0;
		task[i] = task_create("turns", PRIO_LOW, HERE, count_turns,
				      (void *)i);
	}
	KEXPECT(t, KWAIT(READ_ONCE(turns[0]) >= 4 && READ_ONCE(turns[1]) >= 4));
	for (int i = 0; i < 2; i++)
		task_stop(task[i]);
	for (int i = 0; i < 2; i++)
		task_join(task[i]);
	task_stop(often);
	task_join(often);
}

/* ---- preemption ---- */

struct waiter {
	struct wait_queue wait;
	bool go, ran;
};

static void wait_then_run(void *arg)
{
	struct waiter *w = arg;

	wait_event(&w->wait, READ_ONCE(w->go));
	WRITE_ONCE(w->ran, true);
}

static void spin_until_stopped(void *arg)
{
	(void)arg;
	while (!task_should_stop())
		arch_cpu_relax();
}

static void waiter_init(struct waiter *w)
{
	wait_init(&w->wait);
	w->go = w->ran = false;
}

static void waiter_wake(struct waiter *w)
{
	WRITE_ONCE(w->go, true);
	wake_one(&w->wait);
}

KTEST(sched_preempt_wake, "sched.preempt_wake")
{
	static struct waiter w;
	struct task *high;

	pin_here();
	waiter_init(&w);
	high = task_create("high", PRIO_HIGH, HERE, wait_then_run, &w);
	waiter_wake(&w);
	/* The woken task has run before the wake-up returned. */
	KEXPECT(t, w.ran);
	task_join(high);
	unpin_task();
}

KTEST(sched_preempt_disabled, "sched.preempt_disabled")
{
	static struct waiter w;
	struct task *high;
	bool ran;

	pin_here();
	waiter_init(&w);
	high = task_create("high", PRIO_HIGH, HERE, wait_then_run, &w);
	preempt_disable();
	preempt_disable();
	KEXPECT_EQ(t, preempt_depth(), 2);
	KEXPECT(t, !may_sleep());
	waiter_wake(&w);
	preempt_enable();
	ran = w.ran;
	preempt_enable();
	KEXPECT(t, !ran);
	KEXPECT(t, w.ran);
	KEXPECT(t, may_sleep());
	task_join(high);
	unpin_task();
}

/* A wake-up by interrupt takes the CPU from a task that never gives it up. */
KTEST(sched_preempt_timer, "sched.preempt_timer")
{
	struct task *spinner;

	pin_here();
	spinner = task_create("spinner", PRIO_LOW, HERE, spin_until_stopped,
			      NULL);
	for (int i = 0; i < 5; i++)
		task_sleep(NSEC_PER_MSEC);
	KEXPECT(t, spinner->switches > 0);
	KEXPECT(t, spinner->preempted);
	KEXPECT(t, task_pc(spinner) == arch_frame_pc(spinner->frame));
	task_stop(spinner);
	task_join(spinner);
	unpin_task();
}

KTEST(sched_yield, "sched.yield")
{
	struct task *peer;

	pin_here();
	nr_order = 0;
	peer = task_create("peer", current_task()->prio, HERE, log_turn, NULL);
	sched_yield();
	KEXPECT_EQ(t, nr_order, 1);
	task_join(peer);
	unpin_task();
}

/* ---- affinity ---- */

struct stay {
	unsigned int cpu, wrong, rounds;
};

static void stay_put(void *arg)
{
	struct stay *s = arg;

	for (s->rounds = 0; s->rounds < 50; s->rounds++) {
		preempt_disable();
		s->wrong += cpu_index() != s->cpu;
		preempt_enable();
		if (s->rounds % 8)
			sched_yield();
		else
			task_sleep(50 * NSEC_PER_USEC);
	}
}

KTEST(sched_affinity, "sched.affinity")
{
	static struct stay stays[MAX_CPUS * 2];
	struct task *task[MAX_CPUS * 2] = { NULL };
	unsigned int c;

	for_each_online_cpu (c)
		for (unsigned int i = c * 2; i < c * 2 + 2; i++) {
			stays[i] = (struct stay){ .cpu = c };
			task[i] = task_create("stay", PRIO_LOW, 1u << c,
					      stay_put, &stays[i]);
		}
	for (unsigned int i = 0; i < MAX_CPUS * 2; i++) {
		if (!task[i])
			continue;
		task_join(task[i]);
		KEXPECT_EQ(t, stays[i].rounds, 50);
		KEXPECT_EQ(t, stays[i].wrong, 0);
	}
}

static unsigned int seen_cpu;

static void tell_cpu(void *arg)
{
	(void)arg;
	while (!task_should_stop()) {
		WRITE_ONCE(seen_cpu, cpu_index());
		arch_cpu_relax();
	}
}

KTEST(sched_move, "sched.affinity_moves")
{
	struct task *m = task_create("mover", PRIO_LOW, 1, tell_cpu, NULL);
	unsigned int c;

	for_each_online_cpu (c) {
		KEXPECT_EQ(t, task_set_affinity(m, 1u << c), 0);
		KEXPECT(t, KWAIT(READ_ONCE(seen_cpu) == c));
	}
	/* A task changes its own affinity, and goes on elsewhere at once. */
	for_each_online_cpu (c) {
		task_set_affinity(current_task(), 1u << c);
		KEXPECT_EQ(t, cpu_index(), c);
	}
	KEXPECT_EQ(t, task_set_affinity(m, 0), -EINVAL);
	KEXPECT_EQ(t, task_set_affinity(m, ~cpus_online), -EINVAL);
	unpin_task();
	task_stop(m);
	task_join(m);
}

FAULT_DECLARE(place_late);

static cpumask_t place_to;

static void move_when_late(void *arg)
{
	struct task *m = arg;

	while (!READ_ONCE(fault_place_late.times) && !task_should_stop())
		arch_cpu_relax();
	task_set_affinity(m, place_to);
}

static void sleep_and_tell(void *arg)
{
	sched_set_state(current_task(), TASK_BLOCKED);
	task_block();
	tell_cpu(arg);
}

/* Its CPU was chosen, and it may not run there any more when it is put there. */
KTEST(sched_place_again, "sched.place_again")
{
	struct task *m, *other;

	KNEED_TWO(t);
	place_to = cpus_online & 4 ? 4 : 1;
	task_set_affinity(current_task(), 1);
	for (int i = 0; i < 10 && !t->failures; i++) {
		m = task_create("mover", PRIO_LOW, 2, sleep_and_tell, NULL);
		KEXPECT(t, KWAIT(READ_ONCE(m->state) == TASK_BLOCKED &&
				 !READ_ONCE(m->on_cpu)));
		WRITE_ONCE(seen_cpu, 31);
		fault_plant(&fault_place_late, 0);
		other = task_create("other", PRIO_LOW, cpus_online & 4 ? 4 : 2,
				    move_when_late, m);
		task_sleep(2 * NSEC_PER_MSEC);
		fault_plant_once(&fault_place_late, 1);
		task_wake(m);
		KEXPECT(t, KWAIT(1u << READ_ONCE(seen_cpu) == place_to));
		task_stop(other);
		task_join(other);
		task_stop(m);
		task_join(m);
	}
	fault_plant(&fault_place_late, 0);
	unpin_task();
}

/* ---- balancing ---- */

static u32 cpus_seen;

static void mark_cpu(void *arg)
{
	(void)arg;
	while (!task_should_stop()) {
		__atomic_fetch_or(&cpus_seen, 1u << cpu_index(),
				  __ATOMIC_RELAXED);
		arch_cpu_relax();
	}
}

/* There are as many tasks as CPUs, and none gives up its CPU. So every CPU gets one. */
KTEST(sched_balance, "sched.balance")
{
	struct task *task[MAX_CPUS];
	unsigned int c, n = 0;

	cpus_seen = 0;
	for_each_online_cpu (c)
		task[n++] =
			task_create("spread", PRIO_LOW, ~0u, mark_cpu, NULL);
	KEXPECT(t, KWAIT(READ_ONCE(cpus_seen) == cpus_online));
	while (n--) {
		task_stop(task[n]);
		task_join(task[n]);
	}
}

/* Two tasks are on one CPU, then both may leave it: an idle CPU takes one. */
KTEST(sched_pull, "sched.idle_pulls")
{
	struct task *a, *b;

	KNEED_TWO(t);
	a = task_create("pull-a", PRIO_LOW, HERE, mark_cpu, NULL);
	b = task_create("pull-b", PRIO_LOW, HERE, mark_cpu, NULL);
	task_sleep(2 * NSEC_PER_MSEC);
	cpus_seen = 0;
	task_set_affinity(a, ~0u);
	task_set_affinity(b, ~0u);
	KEXPECT(t, KWAIT(READ_ONCE(cpus_seen) & ~HERE));
	task_stop(a);
	task_stop(b);
	task_join(a);
	task_join(b);
}

KTEST(sched_tickless, "sched.idle_has_no_tick")
{
	unsigned int c, idle = MAX_CPUS;
	u64 ticks, switches;

	pin_here();
	for_each_online_cpu (c)
		if (c != cpu_index())
			idle = c;
	if (idle == MAX_CPUS) {
		unpin_task();
		KSKIP(t, "one CPU");
	}
	task_sleep(20 * NSEC_PER_MSEC);
	switches = cpus[idle].rq.switches;
	ticks = cpus[idle].irq_counts[IRQ_TIMER];
	task_sleep(100 * NSEC_PER_MSEC);
	/*
	 * If the CPU had a tick, there would be 25. A port may need some interrupts for
	 * itself.
	 */
	if (cpus[idle].rq.switches == switches)
		KEXPECT(t, cpus[idle].irq_counts[IRQ_TIMER] - ticks < 5);
	unpin_task();
}

/* ---- everything at once ---- */

struct churn {
	struct task *task;
	u32 seed, rounds;
};

#define CHURN_ROUNDS 40

static void churn_rounds(void *arg)
{
	struct churn *c = arg;

	for (c->rounds = 0; c->rounds < CHURN_ROUNDS; c->rounds++) {
		switch (ktest_random(&c->seed) % 4) {
		case 0:
			sched_yield();
			break;
		case 1:
			task_sleep(ktest_random(&c->seed) % 50000);
			break;
		case 2:
			task_set_affinity(current_task(),
					  ktest_random(&c->seed));
			break;
		case 3:
			for (u32 n = ktest_random(&c->seed) % 5000; n; n--)
				asm volatile("");
		}
	}
}

KTEST(sched_churn, "sched.none_lost")
{
	static struct churn churns[24];

	for (unsigned int i = 0; i < ARRAY_SIZE(churns); i++) {
		churns[i].seed = i * 7919 + 1;
		churns[i].task = task_create("churn", PRIO_LOW + i % 6, ~0u,
					     churn_rounds, &churns[i]);
		KASSERT(t, churns[i].task);
	}
	/* This task moves them meanwhile. */
	for (u32 n = 0, seed = 5; n < 200; n++) {
		u32 r = ktest_random(&seed);

		task_set_affinity(churns[r % ARRAY_SIZE(churns)].task, r >> 8);
		if (n % 16 == 0)
			task_sleep(100 * NSEC_PER_USEC);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(churns); i++) {
		KEXPECT_EQ(t, task_join(churns[i].task), 0);
		KEXPECT_EQ(t, churns[i].rounds, CHURN_ROUNDS);
	}
}
