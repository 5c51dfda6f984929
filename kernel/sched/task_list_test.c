/* SPDX-License-Identifier: MIT */
/*
 * Proves that a walk over all tasks lets interrupts in between two of them, however many there
 * are, and that it meets each task that stays while others end.
 */
#include <kernel/sched/task_list.h>

#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/sched/task.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

#define TASKS 60u
#define LOOK_NS (100 * NSEC_PER_USEC)

static void stay_alive(void *arg)
{
	(void)arg;
	while (!task_should_stop())
		task_sleep(NSEC_PER_SEC);
}

static struct task *stayers[TASKS];

static bool make_stayers(void)
{
	bool all = true;

	for (unsigned int i = 0; i < TASKS; i++) {
		stayers[i] =
			task_create("stay", PRIO_LOW, ~0u, stay_alive, NULL);
		all &= !!stayers[i];
	}
	return all;
}

/* Every second one, or the others. */
static void end_stayers(unsigned int from)
{
	for (unsigned int i = from; i < TASKS; i += 2)
		if (stayers[i]) {
			task_stop(stayers[i]);
			task_join(stayers[i]);
		}
}

/* An interrupt every LOOK_NS, and how long one was overdue. */
static struct {
	struct timer timer;
	u64 due, latest;
} pulse;

static void begin_pulse(void)
{
	pulse.due = time_ns() + LOOK_NS;
	timer_start(&pulse.timer, LOOK_NS);
}

static void pulse_beat(struct timer *timer)
{
	(void)timer;
	pulse.latest = max(pulse.latest, time_ns() - pulse.due);
	begin_pulse();
}

struct looks {
	unsigned int tasks, stayers;
};

static bool look_slowly(struct task *t, void *arg)
{
	struct looks *seen = arg;
	u64 began = time_ns();

	seen->tasks++;
	for (unsigned int i = 0; i < TASKS; i += 2)
		seen->stayers += t == stayers[i];
	while (time_ns() - began < LOOK_NS)
		;
	return true;
}

KTEST(task_list_interrupts, "task_list.interrupts_between_tasks")
{
	struct looks seen = { 0 };

	if (!boot_info.icount)
		KSKIP(t, "the host may keep an interrupt from coming");
	KASSERT(t, make_stayers());
	timer_setup(&pulse.timer, pulse_beat);
	task_set_affinity(current_task(), 1u << cpu_index());
	pulse.latest = 0;
	begin_pulse();
	task_for_each(look_slowly, &seen);
	timer_cancel(&pulse.timer);
	task_set_affinity(current_task(), ~0u);
	KEXPECT(t, seen.tasks > TASKS);
	KEXPECT(t, pulse.latest < 10 * LOOK_NS);
	end_stayers(0);
	end_stayers(1);
}

static void end_odd(void *arg)
{
	(void)arg;
	end_stayers(1);
}

KTEST(task_list_ends, "task_list.tasks_end_meanwhile")
{
	struct looks seen = { 0 };
	struct task *ender;

	KASSERT(t, make_stayers());
	ender = task_create("ender", PRIO_HIGH, ~0u, end_odd, NULL);
	KASSERT(t, ender);
	task_for_each(look_slowly, &seen);
	task_join(ender);
	KEXPECT_EQ(t, seen.stayers, TASKS / 2);
	end_stayers(0);
}
