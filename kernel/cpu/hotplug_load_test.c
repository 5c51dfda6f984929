/* SPDX-License-Identifier: MIT */
/*
 * Proves that calls, rendezvous and new tasks reach exactly the CPUs that are online
 * while CPUs go and come at random, and that a load of tasks loses none of them.
 */
#include <kernel/cpu/hotplug.h>
#include <kernel/cpu/hotplug_testing.h>
#include <kernel/cpu/stop.h>
#include <kernel/lib/bits.h>
#include <kernel/lib/string.h>
#include <kernel/patch_path.h>
#include <kernel/sched/task.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

struct meeting {
	u32 members; /* in cpus_online, told by change() or by the first call */
	u32 came;
	u32 wrong, held;
};

static notrace void meet_change(void *arg)
{
	((struct meeting *)arg)->members = bit_count(READ_ONCE(cpus_online));
}

static notrace void meet_sync(void *arg)
{
	count_up(&((struct meeting *)arg)->came);
}

/* Every CPU that is online in the rendezvous syncs in it, and no other CPU does. */
PATCH_INDIRECT(stop_lead, meet_change);
PATCH_INDIRECT(stop_lead, meet_sync);
PATCH_INDIRECT(stop_hold, meet_sync);

static void meet_until_stopped(void *arg)
{
	struct meeting *m = arg;
	struct stop_work w = { meet_change, meet_sync, m, 0 };

	while (!task_should_stop()) {
		m->came = 0;
		m->wrong += stop_cpus(&w) || m->came != m->members;
		WRITE_ONCE(m->held, m->held + 1);
		arch_cpu_relax();
	}
}

static void count_meeting_call(void *arg)
{
	struct meeting *m = arg;
	cpumask_t online = READ_ONCE(cpus_online);

	/* All that run one call agree on the CPUs that are online. */
	if (!__atomic_fetch_add(&m->came, 1, __ATOMIC_RELAXED))
		m->members = online;
	else if (READ_ONCE(m->members) && m->members != online)
		m->wrong++;
}

static void call_round(void *arg)
{
	struct meeting *m = arg;

	while (!task_should_stop()) {
		m->came = m->members = 0;
		m->wrong += cpu_call(~0u, count_meeting_call, m) ||
			    m->came != bit_count(m->members);
		WRITE_ONCE(m->held, m->held + 1);
		arch_cpu_relax();
	}
}

static void breed_children(void *arg)
{
	struct meeting *m = arg;

	while (!task_should_stop()) {
		struct task *child = task_create("child", PRIO_LOW + 1, ~0u,
						 set_cpu_in_mask, &m->members);

		m->wrong += !child || task_join(child);
		WRITE_ONCE(m->held, m->held + 1);
		arch_cpu_relax();
	}
}

/*
 * Take random CPUs down and up. At the end all are up. Returns how many changes were
 * made.
 */
static u32 toggle_random_cpus(u32 seed, u32 rounds)
{
	u32 done = 0;

	while (rounds--) {
		unsigned int c = 1 + ktest_random(&seed) % (nr_cpus - 1);

		done += !(cpu_online(c) ? cpu_down(c) : cpu_up(c));
		if (ktest_random(&seed) % 4 == 0)
			task_sleep(ktest_random(&seed) % NSEC_PER_MSEC);
	}
	for (unsigned int c = 1; c < nr_cpus; c++)
		done += !cpu_up(c);
	return done;
}

#define TOGGLES 24

KTEST(hotplug_meetings, "hotplug.while_others_meet")
{
	static void (*const fn[])(void *) = { meet_until_stopped, call_round,
					      breed_children };
	static struct meeting m[ARRAY_SIZE(fn)];
	struct task *task[ARRAY_SIZE(fn)];
	cpumask_t all = cpus_online;

	KNEED_TWO(t);
	memset(m, 0, sizeof(m));
	for (unsigned int i = 0; i < ARRAY_SIZE(fn); i++)
		task[i] = task_create("meet", PRIO_LOW, ~0u, fn[i], &m[i]);
	KEXPECT_EQ(t, toggle_random_cpus(1, TOGGLES), TOGGLES + nr_cpus - 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(fn); i++) {
		KEXPECT(t, KWAIT(READ_ONCE(m[i].held) > 3));
		task_stop(task[i]);
		task_join(task[i]);
		KEXPECT_EQ(t, m[i].wrong, 0);
	}
	KEXPECT_EQ(t, cpus_online, all);
	KEXPECT_EQ(t, answering_cpus(), all);
}

/* ---- under load ---- */

struct churn {
	struct task *task;
	u32 seed, rounds;
	bool stays; /* does not change its own affinity */
};

static void churn_until_stopped(void *arg)
{
	struct churn *c = arg;

	for (; !task_should_stop(); WRITE_ONCE(c->rounds, c->rounds + 1)) {
		switch (ktest_random(&c->seed) % 4) {
		case 0:
			sched_yield();
			break;
		case 1:
			task_sleep(ktest_random(&c->seed) % 50000);
			break;
		case 2:
			if (c->stays)
				break;
			/* This is refused when no such CPU is online just now. */
			task_set_affinity(current_task(),
					  ktest_random(&c->seed));
			break;
		case 3:
			for (u32 n = ktest_random(&c->seed) % 5000; n; n--)
				asm volatile("");
			arch_cpu_relax();
		}
	}
}

KTEST(hotplug_churn, "hotplug.under_load")
{
	static struct churn churns[16];
	u32 before[16];

	KNEED_TWO(t);
	for (unsigned int i = 0; i < ARRAY_SIZE(churns); i++) {
		churns[i] = (struct churn){ .seed = i * 7919 + 1 };
		churns[i].task = task_create("churn", PRIO_LOW + i % 4, ~0u,
					     churn_until_stopped, &churns[i]);
		KASSERT(t, churns[i].task);
	}
	KEXPECT_EQ(t, toggle_random_cpus(2, TOGGLES), TOGGLES + nr_cpus - 1);
	/* No task was forgotten on a CPU: all of them still make progress, those of the highest
	 * priority first. They may leave none of a slow CPU's time to others until they end. */
	for (unsigned int i = 0; i < ARRAY_SIZE(churns); i++)
		before[i] = READ_ONCE(churns[i].rounds);
	for (unsigned int n = 0; n < ARRAY_SIZE(churns); n++) {
		unsigned int i = n % 4 * 4 + 3 - n / 4;

		KEXPECT(t, KWAIT(READ_ONCE(churns[i].rounds) != before[i]));
		task_stop(churns[i].task);
		KEXPECT_EQ(t, task_join(churns[i].task), 0);
	}
}

/* ---- affinities ---- */

static struct {
	struct task *task; /* whose affinity is set */
	u32 seed, changes, undone;
} moved;

static void set_affinities(void *arg)
{
	(void)arg;
	while (!task_should_stop()) {
		cpumask_t mask = ktest_random(&moved.seed) | 1;

		moved.undone += task_set_affinity(moved.task, mask) != 0;
		for (u32 n = ktest_random(&moved.seed) % 2000; n; n--)
			asm volatile("");
		moved.undone += READ_ONCE(moved.task->affinity) != mask;
		WRITE_ONCE(moved.changes, moved.changes + 1);
	}
}

/* Hotplug reads every task's affinity, and never writes it. So an affinity that a task
 * sets meanwhile stays. */
KTEST(hotplug_affinity, "hotplug.affinities_stay")
{
	static struct churn churned = { .stays = true };
	struct task *setter;

	KNEED_TWO(t);
	moved.changes = moved.undone = 0;
	moved.task = task_create("moved", PRIO_LOW, ~0u, churn_until_stopped,
				 &churned);
	KASSERT(t, moved.task);
	setter = task_create("setter", PRIO_LOW, ~0u, set_affinities, NULL);
	KASSERT(t, setter);
	KEXPECT_EQ(t, toggle_random_cpus(3, TOGGLES), TOGGLES + nr_cpus - 1);
	KEXPECT(t, KWAIT(READ_ONCE(moved.changes) > 10));
	task_stop(setter);
	task_join(setter);
	task_stop(moved.task);
	task_join(moved.task);
	KEXPECT_EQ(t, moved.undone, 0);
}
