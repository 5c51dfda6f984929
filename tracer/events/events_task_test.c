/* SPDX-License-Identifier: MIT */
/*
 * Events of tasks against the counts of the run queues: switches, a task's life, whose event it is,
 * and the lists of pids.
 */
#include <tracer/events/testing.h>
#include <tracer/testing.h>

#include <kernel/assert.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/sched/hold.h>
#include <kernel/time.h>
#include <tracer/events/events.h>
#include <kernel/test/again.h>

/* ---- sched -------------------------------------------------------------------------- */

static struct {
	s32 running[MAX_CPUS]; /* pid, or -1 */
	u32 switches[MAX_CPUS];
	u64 from[MAX_CPUS], to[MAX_CPUS]; /* arch_clock() */
} sched;

/* On each CPU, the task that a switch leaves is the one that the last switch began. */
static void look_switch(struct ktest_run *t, const struct ring_entry *r)
{
	if (!event_test_is(r, "sched_switch"))
		return;
	KEXPECT_EQ(t, event_test_value(r, "prev_pid"), r->pid);
	if (sched.running[r->cpu] >= 0)
		KEXPECT_EQ(t, event_test_value(r, "prev_pid"),
			   sched.running[r->cpu]);
	sched.running[r->cpu] = event_test_value(r, "next_pid");
	if (r->clock > sched.from[r->cpu] && r->clock < sched.to[r->cpu])
		sched.switches[r->cpu]++;
}

static u64 counted[MAX_CPUS];

static void note_begin(void *arg)
{
	unsigned int cpu = cpu_index();

	(void)arg;
	counted[cpu] = cpus[cpu].rq.switches;
	sched.from[cpu] = arch_clock();
}

static void note_cpu_end(void *arg)
{
	unsigned int cpu = cpu_index();

	(void)arg;
	counted[cpu] = cpus[cpu].rq.switches - counted[cpu];
	sched.to[cpu] = arch_clock();
}

/* As many switches as each run queue counts, while tasks hand a CPU to each other. */
KTEST(events_switch, "events.sched_switch")
{
	struct trace_worker *w = trace_workers;
	unsigned int cpu;
	u64 all = 0;

	memset(&sched, 0, sizeof(sched));
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		sched.running[cpu] = -1;
	event_test_begin("sched:*");
	KASSERT(t, trace_workers_start(w, 0));
	cpu_call(~0u, note_begin, NULL);
	for (int i = 0; i < 30; i++)
		task_sleep(NSEC_PER_MSEC);
	trace_workers_join(w);
	/* And while CPUs are idle in between. */
	for (int i = 0; i < 30; i++)
		task_sleep(NSEC_PER_MSEC);
	cpu_call(~0u, note_cpu_end, NULL);
	trace_test_put("tracing_on", "0");
	event_test_each(t, look_switch);
	for_each_online_cpu (cpu) {
		KEXPECT_EQ(t, sched.switches[cpu], counted[cpu]);
		all += counted[cpu];
	}
	KEXPECT(t, all > 50);
	event_test_end();
}

static struct {
	s32 pid;
	unsigned int forks, wakes, exits, slept, dead;
} life;

static void look_life(struct ktest_run *t, const struct ring_entry *r)
{
	if (event_test_is(r, "sched_process_fork") &&
	    event_test_value(r, "child_pid") == life.pid) {
		KEXPECT_EQ(t, event_test_value(r, "parent_pid"),
			   current_task()->pid);
		KEXPECT_EQ(t, life.forks++ + life.wakes + life.exits, 0);
	}
	if (event_test_is(r, "sched_wakeup") &&
	    event_test_value(r, "pid") == life.pid) {
		KEXPECT(t, event_test_value(r, "target_cpu") < nr_cpus);
		KEXPECT_EQ(t, life.forks == 1 && !life.exits, 1);
		life.wakes++;
	}
	if (event_test_is(r, "sched_switch") && r->pid == life.pid) {
		long state = event_test_value(r, "prev_state");

		life.slept += state == 1;
		life.dead += state == 0x10;
		KEXPECT(t, !life.dead || life.exits);
	}
	if (event_test_is(r, "sched_process_exit") && r->pid == life.pid) {
		KEXPECT_EQ(t, life.forks == 1 && life.wakes, 1);
		life.exits++;
	}
}

static void sleep_twice(void *arg)
{
	(void)arg;
	task_sleep(NSEC_PER_MSEC);
	task_sleep(NSEC_PER_MSEC);
}

/* A task's life, in its order: made, woken as often as it slept, gone. */
KTEST(events_life, "events.life_of_a_task")
{
	struct task *child;

	memset(&life, 0, sizeof(life));
	event_test_begin("sched:*");
	child = task_create("child", PRIO_NORMAL, ~0u, sleep_twice, NULL);
	KASSERT(t, child);
	life.pid = child->pid;
	task_join(child);
	trace_test_put("tracing_on", "0");
	event_test_each(t, look_life);
	KEXPECT_EQ(t, life.forks, 1);
	KEXPECT_EQ(t, life.wakes, 2);
	KEXPECT_EQ(t, life.exits, 1);
	KEXPECT_EQ(t, life.slept, 2);
	KEXPECT_EQ(t, life.dead, 1);
	event_test_end();
}

static struct {
	s32 pid;  /* of the task that ends */
	s32 from; /* the task in which it happens: by itself, or by another */
	s64 signal;
	unsigned int signals, exits;
} killed;

static void look_killed(struct ktest_run *t, const struct ring_entry *r)
{
	if (event_test_is(r, "signal_generate") &&
	    event_test_value(r, "pid") == killed.pid) {
		KEXPECT_EQ(t, event_test_value(r, "sig"), killed.signal);
		KEXPECT_EQ(t, r->pid, killed.from);
		KEXPECT_EQ(t, killed.signals++ + killed.exits, 0);
	}
	if (event_test_is(r, "sched_process_exit") && r->pid == killed.pid)
		killed.exits++;
}

static void end_well(void *arg)
{
	(void)arg;
}

static void events_store_to_null(void *arg)
{
	*(volatile u32 *)arg = 0;
}

static void break_precondition(void *arg)
{
	(void)arg;
	assert_irqs_off();
}

static void spin_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		arch_cpu_relax();
}

/* Run fn() in a task, which is to end by this signal. 0: by itself. */
static void end_by(struct ktest_run *t, void (*fn)(void *arg), s64 signal)
{
	bool by_another = signal == SIGNAL_KILL;
	struct task_fault fault = { 0 };
	struct task *child;

	event_test_begin("sched:* signal:*");
	child = task_create_watched("child", fn, &fault);
	KASSERT(t, child);
	killed.pid = child->pid;
	killed.from = by_another ? current_task()->pid : child->pid;
	killed.signal = signal;
	killed.signals = killed.exits = 0;
	if (by_another) {
		task_hold(child, 0, ~0ul);
		KASSERT(t, task_wait_held(child, KWAIT_NS));
		task_bury(child);
	}
	KEXPECT_EQ(t, task_join(child), signal ? -EFAULT : 0);
	trace_test_put("tracing_on", "0");
	event_test_each(t, look_killed);
	KEXPECT_EQ(t, killed.signals, signal != 0);
	KEXPECT_EQ(t, killed.exits, !by_another);
}

/* A task that is killed tells the signal before it is gone. A task that ends by itself tells
 * none. */
KTEST(events_killed, "events.signal_of_a_killed_task")
{
	end_by(t, end_well, 0);
	end_by(t, events_store_to_null, SIGNAL_FAULT);
	end_by(t, break_precondition, SIGNAL_ABORT);
	end_by(t, spin_for_ever, SIGNAL_KILL);
	event_test_end();
}

static struct {
	s32 pid;
	bool enough;
	unsigned int of_it, to_it, others;
} listed;

static void sleep_until_enough(void *arg)
{
	(void)arg;
	while (!READ_ONCE(listed.enough))
		task_sleep(NSEC_PER_MSEC);
}

static void look_listed(struct ktest_run *t, const struct ring_entry *r)
{
	(void)t;
	if (event_test_is(r, "sched_switch") &&
	    event_test_value(r, "next_pid") == listed.pid)
		listed.to_it++;
	else if (event_test_is(r, "sched_wakeup") &&
		 event_test_value(r, "pid") == listed.pid)
		listed.to_it++;
	else if (r->pid == listed.pid)
		listed.of_it++;
	else
		listed.others++;
}

/* The events of one task, and its own switches and wake-ups by others. */
KTEST(events_pids, "events.set_event_pid")
{
	struct task *child, *other;
	char pid[12];

	memset(&listed, 0, sizeof(listed));
	event_test_begin("");
	child = task_create("listed", PRIO_NORMAL, ~0u, sleep_until_enough,
			    NULL);
	KASSERT(t, child);
	listed.pid = child->pid;
	snprintf(pid, sizeof(pid), "%d", child->pid);
	KEXPECT_EQ(t, trace_test_put("set_event", "sched:* timer:timer_start"),
		   0);
	KEXPECT_EQ(t, trace_test_put("set_event_pid", pid), 0);
	trace_test_put("trace", "");
	other = task_create("other", PRIO_NORMAL, ~0u, sleep_twice, NULL);
	KASSERT(t, other);
	task_join(other);
	task_sleep(5 * NSEC_PER_MSEC);
	WRITE_ONCE(listed.enough, true);
	task_join(child);
	trace_test_put("tracing_on", "0");
	event_test_each(t, look_listed);
	KEXPECT(t, listed.of_it > 0);
	KEXPECT(t, listed.to_it > 0);
	KEXPECT_EQ(t, listed.others, 0);
	KEXPECT_EQ(t, trace_test_put("set_event_pid", "x"), -EINVAL);
	event_test_end();
}

/* ---- Whose event it is --------------------------------------------------------- */

static struct {
	s32 pid;
	unsigned int events, strange;
} owner;

/* Allocations of that size are this task's. */
#define OWN_SIZE 1234

static void allocate_once(void *arg)
{
	(void)arg;
	kfree(kmalloc(OWN_SIZE));
}

static void look_owner(struct ktest_run *t, const struct ring_entry *r)
{
	(void)t;
	if (!event_test_is(r, "kmalloc") ||
	    event_test_value(r, "bytes_req") != OWN_SIZE)
		return;
	owner.events++;
	owner.strange += r->pid != owner.pid;
}

static void run_owner(void)
{
	struct task *child =
		task_create("owner", PRIO_NORMAL, ~0u, allocate_once, NULL);

	if (!child)
		return;
	owner.pid = child->pid;
	task_join(child);
}

static void run_owner_between(enum patch_step step, bool synced)
{
	if (step == PATCH_BREAK && synced)
		run_owner();
}

/* An event knows its task from the moment on at which its label may be taken. */
KTEST(events_owner, "events.first_event_knows_its_task")
{
	struct patch_stats p;

	patch_stats(&p);
	memset(&owner, 0, sizeof(owner));
	event_test_begin("");
	if (trace_test_put("patch_strategy", "breakpoint")) {
		event_test_end();
		KSKIP(t, "`breakpoint` is refused");
	}
	patch_step_hook = run_owner_between;
	KEXPECT_EQ(t, trace_test_put("events/kmem/kmalloc/enable", "1"), 0);
	patch_step_hook = NULL;
	KEXPECT_EQ(t, trace_test_put("patch_strategy", p.strategy), 0);
	trace_test_put("tracing_on", "0");
	event_test_each(t, look_owner);
	KEXPECT_EQ(t, owner.events, 1);
	KEXPECT_EQ(t, owner.strange, 0);
	event_test_end();
}

/* A task whose calls are passed over has events all the same, and they are its own. */
KTEST(events_passed, "events.of_a_task_that_is_passed_over")
{
	char pid[12];

	memset(&owner, 0, sizeof(owner));
	event_test_begin("kmem:kmalloc");
	snprintf(pid, sizeof(pid), "%d", current_task()->pid);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_call"), 0);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_pid", pid), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	run_owner();
	trace_test_put("tracing_on", "0");
	event_test_each(t, look_owner);
	KEXPECT_EQ(t, owner.events, 1);
	KEXPECT_EQ(t, owner.strange, 0);
	event_test_end();
}
