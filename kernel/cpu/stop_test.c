/* SPDX-License-Identifier: MIT */
/*
 * Proves that a rendezvous holds every CPU, runs sync on each one once, and
 * refuses where it could only hang. The functions that run inside have no sites,
 * as real ones: tools/patchpath follows them too.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/errno.h>
#include <kernel/test/ktest.h>
#include <kernel/cpu/stop.h>
#include <kernel/event/latency.h>
#include <kernel/lib/string.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

/* Long enough for other CPUs to be seen moving, if they were not held. */
#define HOLD_NS (10 * NSEC_PER_USEC)

struct probe {
	u32 alive[MAX_CPUS];  /* counted by a task on each CPU */
	u32 synced[MAX_CPUS]; /* counted by sync() */
	u32 changes;	      /* counted by change(), not atomically */
	bool moved;	      /* a task ran during change() */
	bool irqs_on;
	int nested;
};
static struct probe probe;

static notrace u32 sum_alive(const struct probe *p)
{
	u32 sum = 0;

	for (int c = 0; c < MAX_CPUS; c++)
		sum += READ_ONCE(p->alive[c]);
	return sum;
}

static notrace void probe_change(void *arg)
{
	struct probe *p = arg;
	u32 before = sum_alive(p);
	u64 end = arch_clock() + ns_to_clock_delta(HOLD_NS);

	p->irqs_on |= !arch_irqs_off();
	p->changes++;
	while (arch_clock() < end)
		;
	p->moved |= sum_alive(p) != before;
}

static notrace void probe_sync(void *arg)
{
	struct probe *p = arg;

	p->irqs_on |= !arch_irqs_off() || !stop_active();
	p->synced[cpu_index()]++;
}

PATCH_INDIRECT(stop_lead, probe_change);
PATCH_INDIRECT(stop_lead, probe_sync);
PATCH_INDIRECT(stop_hold, probe_sync);

#define LINGER_NS (20 * NSEC_PER_MSEC)

static notrace void change_nothing(void *arg)
{
	(void)arg;
}

/* The highest CPU takes its time. */
static notrace void sync_late(void *arg)
{
	u64 end = arch_clock() + ns_to_clock_delta(LINGER_NS);

	(void)arg;
	while (cpu_index() == nr_cpus - 1 && arch_clock() < end)
		;
}

PATCH_INDIRECT(stop_lead, change_nothing);
PATCH_INDIRECT(stop_hold, change_nothing);
PATCH_INDIRECT(stop_lead, sync_late);
PATCH_INDIRECT(stop_hold, sync_late);

KTEST(stop_of_those, "stop.time_of_those_held")
{
	struct stop_work late = { change_nothing, sync_late, NULL, 0 };
	struct stop_work quick = { change_nothing, change_nothing, NULL, 0 };
	u64 least = ~0ull;

	KNEED_TWO(t);
	KEXPECT_EQ(t, stop_cpus(&late), 0);
	KEXPECT(t, late.held_ns >= LINGER_NS - NSEC_PER_USEC);
	KEXPECT_EQ(t, cpu_down(nr_cpus - 1), 0);
	for (int i = 0; i < 20; i++) {
		KEXPECT_EQ(t, stop_cpus(&quick), 0);
		least = min(least, quick.held_ns);
	}
	KEXPECT(t, least < LINGER_NS);
	KEXPECT_EQ(t, cpu_up(nr_cpus - 1), 0);
}

/* tools/bench-scale reads the line: how the time grows with the CPUs. */
KTEST(stop_cost, "stop.cost")
{
	struct stop_work quick = { change_nothing, change_nothing, NULL, 0 };
	u64 least = ~0ull;

	for (int i = 0; i < 20; i++) {
		KEXPECT_EQ(t, stop_cpus(&quick), 0);
		least = min(least, quick.held_ns);
	}
	printk("# stop.cost: %u CPUs held for %llu ns\n", nr_cpus,
	       (unsigned long long)least);
}

static void count_alive(void *arg)
{
	u32 *alive = arg;

	while (!task_should_stop()) {
		WRITE_ONCE(*alive, *alive + 1);
		arch_cpu_relax();
	}
}

static void check_rounds(struct ktest_run *t, u32 rounds)
{
	unsigned int c;

	KEXPECT_EQ(t, probe.changes, rounds);
	for_each_online_cpu (c)
		KEXPECT_EQ(t, probe.synced[c], rounds);
	KEXPECT(t, !probe.moved);
	KEXPECT(t, !probe.irqs_on);
	KEXPECT(t, !stop_active());
}

KTEST(stop_holds, "stop.holds_every_cpu")
{
	struct task *busy[MAX_CPUS];
	unsigned int c, from, rounds = 0;

	probe = (struct probe){ 0 };
	for_each_online_cpu (c)
		busy[c] = task_create("alive", PRIO_LOW, 1u << c, count_alive,
				      &probe.alive[c]);
	for_each_online_cpu (c)
		KEXPECT(t, KWAIT(READ_ONCE(probe.alive[c])));
	for_each_online_cpu (from) {
		struct stop_work w = { probe_change, probe_sync, &probe, 0 };

		task_set_affinity(current_task(), 1u << from);
		KEXPECT_EQ(t, stop_cpus(&w), 0);
		KEXPECT(t, w.held_ns >= HOLD_NS);
		KEXPECT(t, !arch_irqs_off() && !preempt_depth());
		/* Not preemptible is as good. */
		preempt_disable();
		KEXPECT_EQ(t, stop_cpus(&w), 0);
		preempt_enable();
		rounds += 2;
	}
	task_set_affinity(current_task(), ~0u);
	check_rounds(t, rounds);
	for_each_online_cpu (c) {
		u32 before = READ_ONCE(probe.alive[c]);

		KEXPECT(t, KWAIT(READ_ONCE(probe.alive[c]) != before));
		task_stop(busy[c]);
		task_join(busy[c]);
	}
}

/* ---- several at the same time, and cpu_call() among them ---- */

#define CALLER_ROUNDS 4

static void call_nothing(void *arg)
{
	(void)arg;
}

static void stop_often(void *arg)
{
	int *errors = arg;

	for (int i = 0; i < CALLER_ROUNDS; i++) {
		struct stop_work w = { probe_change, probe_sync, &probe, 0 };

		*errors += stop_cpus(&w) != 0;
		*errors += cpu_call(~0u, call_nothing, NULL) != 0;
	}
}

KTEST(stop_concurrent, "stop.concurrent_callers")
{
	struct task *task[MAX_CPUS];
	int errors[MAX_CPUS] = { 0 };
	unsigned int c, n = 0;

	probe = (struct probe){ 0 };
	for_each_online_cpu (c)
		task[n++] = task_create("stopper", PRIO_LOW, 1u << c,
					stop_often, &errors[c]);
	for (unsigned int i = 0; i < n; i++)
		task_join(task[i]);
	for_each_online_cpu (c)
		KEXPECT_EQ(t, errors[c], 0);
	check_rounds(t, n * CALLER_ROUNDS);
}

/* ---- refusals ---- */

static notrace void sync_nothing(void *arg)
{
	(void)arg;
}

PATCH_INDIRECT(stop_lead, sync_nothing);
PATCH_INDIRECT(stop_hold, sync_nothing);

static void stop_again(void *arg)
{
	struct stop_work w = { sync_nothing, sync_nothing, NULL, 0 };

	*(int *)arg = stop_cpus(&w);
}

/*
 * This looks like a call from within a rendezvous, where no function with a site may
 * run.
 */
KTEST(stop_nested, "stop.nesting_refused")
{
	irq_state_t state = irq_save();
	int err = 0;

	arch_this_cpu()->in_stop = true;
	stop_again(&err);
	arch_this_cpu()->in_stop = false;
	irq_restore(state);
	KEXPECT_EQ(t, err, -EBUSY);
}

/*
 * This function has a site and no annotation: it would run while its own site changes.
 */
static void with_site(void *arg)
{
	(void)arg;
}

static void stop_with(void *arg)
{
	struct stop_work w = { sync_nothing, with_site, arg, 0 };

	stop_cpus(&w);
}

KTEST(stop_unannotated, "stop.refuses_what_was_not_followed")
{
	struct task_fault fault = { 0 };
	struct task *v = task_create_watched("broken", stop_with, &fault);

	KASSERT(t, v);
	KEXPECT_EQ(t, task_join(v), -EFAULT);
	KEXPECT(t, fault.what && strstr(fault.what, "patching path"));
}

static struct {
	struct timer timer;
	int err, call_err;
	bool done;
} from_irq;

static void stop_in_interrupt(struct timer *timer)
{
	(void)timer;
	stop_again(&from_irq.err);
	from_irq.call_err = cpu_call(~0u, sync_nothing, NULL);
	WRITE_ONCE(from_irq.done, true);
}

KTEST(stop_refuses, "stop.refuses_to_hang")
{
	irq_state_t state = arch_irq_save();
	int err = 0;

	stop_again(&err);
	arch_irq_restore(state);
	KEXPECT_EQ(t, err, -EDEADLK);
	from_irq.done = false;
	timer_setup(&from_irq.timer, stop_in_interrupt);
	timer_start(&from_irq.timer, NSEC_PER_MSEC);
	KEXPECT(t, KWAIT(READ_ONCE(from_irq.done)));
	KEXPECT_EQ(t, from_irq.err, -EDEADLK);
	KEXPECT_EQ(t, from_irq.call_err, -EDEADLK);
}
