/* SPDX-License-Identifier: MIT */
/*
 * Proves that tasks begin, sleep, are told to stop, end, are joined or freed by
 * themselves, and can be held at an instruction and released.
 */
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/errno.h>
#include <kernel/test/fault.h>
#include <kernel/test/ktest.h>
#include <kernel/image/symbols.h>
#include <kernel/sched/hold.h>
#include <kernel/sched/task.h>
#include <kernel/sched/task_list.h>
#include <kernel/time.h>
#include <kernel/sched/balance.h>
#include <kernel/test/again.h>

FAULT_DECLARE(task_bury_late);
FAULT_DECLARE(hold_late);

static void exit_with(void *arg)
{
	task_exit((unsigned long)arg);
}

static void return_at_once(void *arg)
{
	(void)arg;
}

KTEST(task_join, "task.join")
{
	struct task *a =
		task_create("exit-42", PRIO_LOW, ~0u, exit_with, (void *)42);
	struct task *b =
		task_create("returns", PRIO_HIGH, ~0u, return_at_once, NULL);

	KASSERT(t, a && b);
	KEXPECT(t, a->pid > 0 && b->pid > a->pid);
	KEXPECT_EQ(t, task_join(a), 42);
	/* By now the task has been dead for long. */
	task_sleep(NSEC_PER_MSEC);
	KEXPECT_EQ(t, task_join(b), 0);
}

KTEST(task_many, "task.many")
{
	struct task *task[40];

	for (unsigned long i = 0; i < ARRAY_SIZE(task); i++)
		task[i] = task_create("many", PRIO_LOW + i % 20, ~0u, exit_with,
				      (void *)i);
	for (unsigned long i = 0; i < ARRAY_SIZE(task); i++) {
		KASSERT(t, task[i]);
		KEXPECT_EQ(t, task_join(task[i]), i);
	}
}

static void sleep_long(void *arg)
{
	(void)arg;
	task_sleep(1000 * NSEC_PER_SEC);
	task_exit(task_should_stop() ? 7 : 0);
}

KTEST(task_detach, "task.detach")
{
	unsigned int before = task_count();
	struct task *a =
		task_create("detached", PRIO_HIGH, ~0u, sleep_long, NULL);
	struct task *b =
		task_create("was-dead", PRIO_HIGH, ~0u, return_at_once, NULL);

	KEXPECT(t, KWAIT(READ_ONCE(b->state) == TASK_DEAD));
	task_detach(b);
	task_detach(a);
	task_stop(a);
	KEXPECT(t, KWAIT(task_count() == before));
}

KTEST(task_sleep, "task.sleep")
{
	u64 start = time_ns();
	struct task *s;

	for (int i = 0; i < 3; i++) {
		task_sleep(3 * NSEC_PER_MSEC);
		KEXPECT(t, time_ns() - start >= 3 * NSEC_PER_MSEC);
		start = time_ns();
	}
	s = task_create("sleeper", PRIO_LOW, ~0u, sleep_long, NULL);
	KEXPECT(t, KWAIT(READ_ONCE(s->state) == TASK_BLOCKED));
	task_stop(s);
	KEXPECT_EQ(t, task_join(s), 7);
}

static bool has_name(struct task *task, void *arg)
{
	*(bool *)arg |= task == current_task();
	return true;
}

KTEST(task_list, "task.for_each")
{
	bool found = false;

	task_for_each(has_name, &found);
	KEXPECT(t, found);
	/* An idle task for each CPU, the reaper, and this one. */
	KEXPECT(t, task_count() >= nr_cpus + 2);
}

static u32 spun;

static noinline void spin_here(void)
{
	while (!task_should_stop())
		WRITE_ONCE(spun, spun + 1);
}

static void hold_me(void *arg)
{
	(void)arg;
	spin_here();
}

KTEST(task_hold, "task.hold")
{
	struct task *s =
		task_create_expendable("hold-me", PRIO_LOW, ~0u, hold_me, NULL);
	struct symbol sym;
	u32 before;

	KASSERT(t, symbol_at((unsigned long)spin_here, &sym));
	task_hold(s, sym.start, sym.start + sym.size);
	KEXPECT(t, task_wait_held(s, KWAIT_NS));
	KEXPECT_EQ(t, s->state, TASK_HELD);
	KEXPECT(t,
		task_pc(s) >= sym.start && task_pc(s) < sym.start + sym.size);
	before = READ_ONCE(spun);
	task_sleep(5 * NSEC_PER_MSEC);
	KEXPECT_EQ(t, spun, before);
	/* The task is held again, as long as the test wants. */
	task_release(s);
	KEXPECT(t, task_wait_held(s, KWAIT_NS));
	task_hold(s, 0, 0);
	before = READ_ONCE(spun);
	task_release(s);
	KEXPECT(t, KWAIT(READ_ONCE(spun) != before));
	KEXPECT(t, !task_wait_held(s, NSEC_PER_MSEC));
	task_stop(s);
	KEXPECT_EQ(t, task_join(s), 0);
}

static struct timer hold_timer;

static void do_nothing(struct timer *timer)
{
	(void)timer;
}

/* The task is held after a millisecond: by itself, or where an interrupt finds it. */
static void hold_later(void *arg)
{
	if (arg) {
		task_sleep(NSEC_PER_MSEC);
		task_hold_self();
	} else {
		timer_start(&hold_timer, NSEC_PER_MSEC);
		spin_here();
	}
}

/* The task that waits is told. Otherwise it would look again after a tick. */
KTEST(task_hold_told, "task.hold_tells")
{
	if (!boot_info.icount)
		KSKIP(t, "needs -icount: a busy host could take as long");
	timer_setup(&hold_timer, do_nothing);
	for (unsigned long by_itself = 0; by_itself < 2; by_itself++) {
		struct task *s =
			task_create_expendable("hold-me", PRIO_LOW, ~0u,
					       hold_later, (void *)by_itself);
		u64 begin = time_ns();

		KASSERT(t, s);
		if (!by_itself)
			task_hold(s, 0, ~0ul);
		KEXPECT(t, task_wait_held(s, KWAIT_NS));
		KEXPECT(t, time_ns() - begin < TICK_NS / 2);
		task_stop(s);
		KEXPECT_EQ(t, task_join(s), 0);
	}
}

static void nap_here(void *arg)
{
	(void)arg;
	while (!task_should_stop())
		task_sleep(100 * NSEC_PER_USEC);
}

/* The task runs in none of these ranges. One from the start of one of them to the end of another
 * would hold the task anywhere. */
KTEST(task_hold_ranges, "task.hold_has_one_range")
{
	static const unsigned long lo[] = { 0, ~15ul, 0 };
	cpumask_t there = 1u << ktest_last_cpu();
	struct task *s, *napper;

	KNEED_TWO(t);
	s = task_create_expendable("hold-me", PRIO_LOW, there, hold_me, NULL);
	/* The napper's timer interrupts the task that may be held. */
	napper = task_create("napper", PRIO_NORMAL, there, nap_here, NULL);
	KASSERT(t, s && napper);
	task_set_affinity(current_task(), 1);
	task_hold(s, lo[0], lo[0] + 15);
	fault_plant(&fault_hold_late, 1);
	for (unsigned int i = 1; i < ARRAY_SIZE(lo); i++) {
		task_hold(s, lo[i], lo[i] + 15);
		KEXPECT(t, READ_ONCE(s->state) != TASK_HELD);
	}
	fault_plant(&fault_hold_late, 0);
	task_set_affinity(current_task(), ~0u);
	task_stop(s);
	task_stop(napper);
	KEXPECT_EQ(t, task_join(s), 0);
	KEXPECT_EQ(t, task_join(napper), 0);
}

/* Whether it is held already, about to be, or runs. */
KTEST(task_stop_held, "task.stop_held")
{
	u32 seed = 5;

	for (unsigned int i = 0; i < 40; i++) {
		struct task *s = task_create_expendable("hold-me", PRIO_LOW,
							~0u, hold_me, NULL);

		KASSERT(t, s);
		task_hold(s, 0, ~0ul);
		if (i % 4)
			task_sleep(ktest_random(&seed) % (4 * NSEC_PER_MSEC));
		else
			KEXPECT(t, task_wait_held(s, KWAIT_NS));
		task_stop(s);
		KASSERT(t, KWAIT(READ_ONCE(s->state) == TASK_DEAD));
		KEXPECT_EQ(t, task_join(s), 0);
	}
}

/* A task that would never end is held wherever it is, and ended there. */
KTEST(task_bury, "task.bury")
{
	struct task *s =
		task_create_expendable("bury-me", PRIO_LOW, ~0u, hold_me, NULL);

	KASSERT(t, s);
	task_hold(s, 0, ~0ul);
	KEXPECT(t, task_wait_held(s, KWAIT_NS));
	task_bury(s);
	KEXPECT_EQ(t, task_join(s), -EFAULT);
}

static bool bury_now, joined;

static void bury_other(void *arg)
{
	while (!READ_ONCE(bury_now))
		task_sleep(NSEC_PER_MSEC);
	task_bury(arg);
}

static void join_other(void *arg)
{
	struct task *s = arg;

	while (READ_ONCE(s->state) != TASK_DEAD)
		task_sleep(NSEC_PER_MSEC);
	task_join(s);
	WRITE_ONCE(joined, true);
}

/* While its joiners are woken, another task that joins it must not free it. */
KTEST(task_bury_joined, "task.bury_joined")
{
	struct task *s, *burier, *joiner;
	cpumask_t here, others;

	KNEED_TWO(t);
	s = task_create_expendable("bury-me", PRIO_LOW, ~0u, hold_me, NULL);
	KASSERT(t, s);
	task_hold(s, 0, ~0ul);
	KEXPECT(t, task_wait_held(s, KWAIT_NS));
	bury_now = joined = false;
	burier = task_create("burier", PRIO_NORMAL, ~0u, bury_other, s);
	joiner = task_create("joiner", PRIO_NORMAL, ~0u, join_other, s);
	KASSERT(t, burier && joiner);
	/* CPUs may come and go elsewhere. */
	cpus_read_lock();
	here = cpus_online & -cpus_online;
	others = cpus_online & ~here;
	if (others) {
		task_set_affinity(current_task(), here);
		task_set_affinity(joiner, here);
		task_set_affinity(burier, others);
		fault_plant(&fault_task_bury_late, 1);
	}
	WRITE_ONCE(bury_now, true);
	if (others) {
		KEXPECT(t, KWAIT(READ_ONCE(fault_task_bury_late.times)));
		task_sleep(20 * NSEC_PER_MSEC);
		KEXPECT(t, !READ_ONCE(joined));
		fault_plant(&fault_task_bury_late, 0);
		task_set_affinity(current_task(), ~0u);
	}
	cpus_read_unlock();
	KEXPECT_EQ(t, task_join(burier), 0);
	KEXPECT_EQ(t, task_join(joiner), 0);
	KEXPECT(t, joined);
}

static struct wait_queue bury_wait = WAIT_QUEUE_INIT(bury_wait);

static void hold_in_wait(void *arg)
{
	(void)arg;
	wait_prepare(&bury_wait);
	task_hold_self();
}

/* Its memory is given back by task_join(), so no queue may know it any more. */
KTEST(task_bury_waiting, "task.bury_waiting")
{
	struct task *s = task_create_expendable("bury-me", PRIO_LOW, ~0u,
						hold_in_wait, NULL);

	KASSERT(t, s);
	KEXPECT(t, task_wait_held(s, KWAIT_NS));
	KEXPECT(t, bury_wait.tasks.next == &s->wait_link);
	task_bury(s);
	KEXPECT(t, list_empty(&bury_wait.tasks));
	KEXPECT_EQ(t, task_join(s), -EFAULT);
}
