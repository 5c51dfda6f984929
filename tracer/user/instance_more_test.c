/* SPDX-License-Identifier: MIT */
/*
 * Proves of an instance's settings beside recording: its triggers, lists of pids, snapshots and
 * error_log are its own, change nothing else, and are gone when it is removed.
 */
#include <tracer/testing.h>

#include <kernel/mm/kmalloc.h>
#include <tracer/events/event_filter.h>
#include <tracer/events/events.h>
#include <tracer/core/instances.h>
#include <tracer/show/snapshot.h>
#include <tracer/ring/ring_control.h>
#include <kernel/test/again.h>

/* The instances of each test: a and b, both with function and a filter. */
static struct trace_instance *a, *b;

static int put_instance_file(const char *file, const char *text)
{
	return trace_test_put(file, text);
}

static bool begin_two_instances(const char *functions)
{
	char error[160];

	trace_test_reset();
	if (ctl_mkdir(TRACING "instances/a", error, sizeof(error)) ||
	    ctl_mkdir(TRACING "instances/b", error, sizeof(error)) ||
	    put_instance_file("instances/a/set_ftrace_filter", functions) ||
	    put_instance_file("instances/b/set_ftrace_filter", functions) ||
	    put_instance_file("instances/a/current_tracer", "function") ||
	    put_instance_file("instances/b/current_tracer", "function"))
		return false;
	a = instance_find("a");
	b = instance_find("b");
	return true;
}

static void end_two_instances(struct ktest_run *t)
{
	char error[160];

	KEXPECT_EQ(t, ctl_rmdir(TRACING "instances/a", error, sizeof(error)),
		   0);
	KEXPECT_EQ(t, ctl_rmdir(TRACING "instances/b", error, sizeof(error)),
		   0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
	KEXPECT(t, !events_are_on());
	trace_test_reset();
}

/* Entries written in an instance. All ones if the books do not add up. */
static u64 entries_written(const struct trace_instance *in)
{
	struct ring_stats s;

	return trace_test_books_of(in->buffer, &s) ? s.written : ~0ull;
}

static struct event *event_of(const char *name)
{
	struct event *e;

	for_each_event (e)
		if (!strcmp(e->name, name))
			return e;
	return NULL;
}

/* A function that is called in one instance's trace switches that instance alone. */
KTEST(instances_triggers, "instances.triggers")
{
	KASSERT(t, begin_two_instances("victim_call"));
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(
		t,
		trace_test_add("instances/a/set_ftrace_filter",
			       "victim_other:traceoff:2 victim_leaf:traceon"),
		0);
	KEXPECT(t,
		trace_test_says("instances/a/set_ftrace_filter",
				"victim_call\nvictim_leaf:traceon:unlimited\n"
				"victim_other:traceoff:count=2\n"));
	KEXPECT(t, trace_test_says("instances/b/set_ftrace_filter",
				   "victim_call\n"));
	KEXPECT(t, trace_test_says("set_ftrace_filter", "victim_call\n"));
	victim_call(1);
	victim_other(1);
	victim_call(2);
	KEXPECT(t, trace_test_says("instances/a/tracing_on", "0\n"));
	KEXPECT(t, trace_test_says("instances/b/tracing_on", "1\n"));
	KEXPECT(t, trace_test_says("tracing_on", "1\n"));
	KEXPECT_EQ(t, entries_written(a), 1);
	KEXPECT_EQ(t, entries_written(b), 2);
	KEXPECT_EQ(t, trace_test_written(), 2);
	victim_leaf(1);
	victim_call(3);
	KEXPECT_EQ(t, entries_written(a), 2);
	/* The top level's triggers do not switch an instance. */
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter", "victim_leaf:traceoff"),
		   0);
	victim_leaf(1);
	victim_call(4);
	KEXPECT_EQ(t, entries_written(a), 3);
	KEXPECT_EQ(t, trace_test_written(), 3);
	/* Nor does one take another's trigger back. */
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter", "!victim_leaf:traceon"),
		   -ENODEV);
	KEXPECT_EQ(t,
		   trace_test_add("instances/b/set_ftrace_filter",
				  "!victim_leaf:traceoff"),
		   -ENODEV);
	KEXPECT_EQ(t, put_instance_file("tracing_on", "1"), 0);
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter", "!victim_leaf:traceoff"),
		   0);
	victim_other(1);
	victim_call(5);
	KEXPECT_EQ(t, entries_written(a), 3);
	KEXPECT_EQ(t, trace_test_written(), 4);
	KEXPECT_EQ(t, put_instance_file("current_tracer", "nop"), 0);
	end_two_instances(t);
}

KTEST(instances_stacks, "instances.triggers_of_stacks_and_events")
{
	const struct event *e = event_of("kmalloc");
	u64 before;

	KASSERT(t, begin_two_instances("victim_call"));
	KEXPECT_EQ(t,
		   trace_test_add("instances/a/set_ftrace_filter",
				  "victim_call:stacktrace:1 "
				  "victim_other:enable_event:kmem:kmalloc "
				  "victim_leaf:disable_event:kmem:kmalloc"),
		   0);
	victim_call(1);
	KEXPECT_EQ(t, entries_written(a), 2);
	KEXPECT_EQ(t, entries_written(b), 1);
	KEXPECT_EQ(t, trace_test_written(), 0);
	/* The event is recorded where the trigger is, even if the top level records nothing. */
	KEXPECT_EQ(t, put_instance_file("tracing_cpumask", "0"), 0);
	kfree(kmalloc(64));
	KEXPECT_EQ(t, entries_written(a), 2);
	victim_other(1);
	KEXPECT(t, event_is_on(e, a));
	KEXPECT(t, !event_is_on(e, &trace_top) && !event_is_on(e, b));
	kfree(kmalloc(64));
	KEXPECT(t, entries_written(a) > 2);
	victim_leaf(1);
	KEXPECT(t, !event_is_on(e, a));
	before = entries_written(a);
	kfree(kmalloc(64));
	KEXPECT_EQ(t, entries_written(a), before);
	KEXPECT_EQ(t, entries_written(b), 1);
	KEXPECT_EQ(t, trace_test_written(), 0);
	victim_other(1);
	end_two_instances(t);
	KEXPECT(t, !event_is_on(e, a) && !(ring_mode & RING_APART));
}

/* A marker is written to one instance, and no other's triggers act on it. */
KTEST(instances_marker_triggers, "instances.triggers_of_markers")
{
	const char *file = "instances/a/events/ftrace/print/trigger";

	KASSERT(t, begin_two_instances("victim_call"));
	KEXPECT_EQ(t, put_instance_file(file, "traceoff"), 0);
	KEXPECT(t, trace_test_says(file, "traceoff:unlimited\n"));
	KEXPECT_EQ(t, put_instance_file("trace_marker", "top"), 0);
	KEXPECT_EQ(t, put_instance_file("instances/b/trace_marker", "b"), 0);
	KEXPECT(t, trace_test_says("tracing_on", "1\n"));
	KEXPECT(t, trace_test_says("instances/a/tracing_on", "1\n"));
	KEXPECT_EQ(t, put_instance_file("instances/a/trace_marker", "a"), 0);
	KEXPECT(t, trace_test_says("tracing_on", "1\n"));
	KEXPECT(t, trace_test_says("instances/a/tracing_on", "0\n"));
	KEXPECT(t, trace_test_says("instances/b/tracing_on", "1\n"));
	end_two_instances(t);
	KEXPECT(t, !event_marker.triggers);
}

KTEST(instances_event_triggers, "instances.triggers_of_events")
{
	KASSERT(t, begin_two_instances("victim_call"));
	KEXPECT_EQ(t, put_instance_file("tracing_cpumask", "0"), 0);
	KEXPECT_EQ(t,
		   put_instance_file("instances/a/events/kmem/kmalloc/trigger",
				     "traceoff:1 if bytes_req == 72"),
		   0);
	KEXPECT(t, trace_test_says("instances/a/events/kmem/kmalloc/trigger",
				   "traceoff:count=1 if bytes_req == 72\n"));
	KEXPECT_EQ(t,
		   trace_test_add("instances/b/events/kmem/kmalloc/trigger",
				  "traceoff if bytes_req == 80"),
		   0);
	KEXPECT(t, trace_test_says("instances/b/events/kmem/kmalloc/trigger",
				   "traceoff:unlimited if bytes_req == 80\n"));
	/* The star is for an instance's own triggers. */
	KEXPECT(t, trace_test_says("instances/a/events/kmem/kmalloc/enable",
				   "0*\n"));
	KEXPECT(t,
		trace_test_says("instances/a/events/kmem/kfree/enable", "0\n"));
	KEXPECT(t, trace_test_says("events/kmem/kmalloc/enable", "0\n"));
	kfree(kmalloc(72));
	KEXPECT(t, !a->on && b->on && trace_top.on);
	kfree(kmalloc(80));
	KEXPECT(t, !b->on && trace_top.on);
	KEXPECT_EQ(t,
		   trace_test_add("instances/b/events/kmem/kmalloc/trigger",
				  "!traceon"),
		   -ENODEV);
	KEXPECT_EQ(t,
		   put_instance_file("instances/b/events/kmem/kmalloc/trigger",
				     ""),
		   0);
	KEXPECT_EQ(t, put_instance_file("instances/b/tracing_on", "1"), 0);
	KEXPECT_EQ(t, put_instance_file("instances/a/tracing_on", "1"), 0);
	kfree(kmalloc(80));
	kfree(kmalloc(72));
	KEXPECT(t, b->on && a->on);
	end_two_instances(t);
	KEXPECT(t, !event_of("kmalloc")->triggers);
}

static void call_victim_in_task(void *arg)
{
	victim_call((unsigned long)arg);
}

KTEST(instances_pids, "instances.pids")
{
	struct task *child;
	char pid[12];

	KASSERT(t, begin_two_instances("victim_call"));
	snprintf(pid, sizeof(pid), "%d", current_task()->pid);
	KEXPECT_EQ(t, put_instance_file("instances/a/set_ftrace_pid", pid), 0);
	KEXPECT_EQ(t,
		   put_instance_file("instances/b/set_ftrace_notrace_pid", pid),
		   0);
	KEXPECT(t, trace_test_says("set_ftrace_pid", "no pid\n"));
	victim_call(1);
	KEXPECT_EQ(t, entries_written(a), 1);
	KEXPECT_EQ(t, entries_written(b), 0);
	child = task_create("child", PRIO_LOW, ~0u, call_victim_in_task, NULL);
	task_join(child);
	KEXPECT_EQ(t, entries_written(a), 1);
	KEXPECT_EQ(t, entries_written(b), 1);
	/* A task that it makes is listed where the option says so. */
	KEXPECT_EQ(t,
		   put_instance_file("instances/a/options/function-fork", "1"),
		   0);
	child = task_create("child", PRIO_LOW, ~0u, call_victim_in_task, NULL);
	task_join(child);
	KEXPECT_EQ(t, entries_written(a), 2);
	KEXPECT_EQ(t, entries_written(b), 2);
	KEXPECT_EQ(t, put_instance_file("instances/a/current_tracer", "nop"),
		   0);
	KEXPECT_EQ(t, put_instance_file("instances/b/current_tracer", "nop"),
		   0);
	/* The same for events. */
	KEXPECT_EQ(t, put_instance_file("instances/a/set_event_pid", "0"), 0);
	KEXPECT_EQ(t, put_instance_file("instances/b/set_event_pid", pid), 0);
	KEXPECT_EQ(t,
		   put_instance_file("instances/a/events/kmem/kmalloc/filter",
				     "bytes_req == 72"),
		   0);
	KEXPECT_EQ(t,
		   put_instance_file("instances/b/events/kmem/kmalloc/filter",
				     "bytes_req == 72"),
		   0);
	KEXPECT_EQ(t,
		   put_instance_file("instances/a/set_event", "kmem:kmalloc"),
		   0);
	KEXPECT_EQ(t,
		   put_instance_file("instances/b/set_event", "kmem:kmalloc"),
		   0);
	KEXPECT_EQ(t, put_instance_file("instances/a/trace", ""), 0);
	KEXPECT_EQ(t, put_instance_file("instances/b/trace", ""), 0);
	kfree(kmalloc(72));
	KEXPECT_EQ(t, entries_written(a), 0);
	KEXPECT_EQ(t, entries_written(b), 1);
	end_two_instances(t);
}

static u64 entries_set_aside(struct trace_instance *in)
{
	struct trace_iter *it;
	u64 n = 0;

	snapshot_hold(in);
	it = trace_iter_open(in->spares, snapshot_cpus(in), true);
	for (; it && trace_iter_peek(it); n++)
		trace_iter_next(it);
	trace_iter_close(it);
	snapshot_release(in);
	return n;
}

KTEST(instances_snapshot, "instances.snapshot")
{
	char text[400];

	KASSERT(t, begin_two_instances("victim_call"));
	KEXPECT_EQ(t,
		   put_instance_file("instances/a/options/context-info", "0"),
		   0);
	for (unsigned int i = 0; i < 5; i++)
		victim_call(i);
	KEXPECT_EQ(t, put_instance_file("instances/a/snapshot", "1"), 0);
	victim_call(5);
	KEXPECT_EQ(t, entries_set_aside(a), 5);
	KEXPECT_EQ(t, entries_written(a), 1);
	KEXPECT_EQ(t, entries_written(b), 6);
	trace_test_read("instances/a/snapshot", text, sizeof(text), 7);
	KEXPECT(t, !strncmp(text, "victim_call <-", 14));
	trace_test_read("snapshot", text, sizeof(text), 7);
	KEXPECT(t, strstr(text, "* Snapshot is freed *"));
	/* Another size, and a snapshot that a trigger takes on every CPU. */
	KEXPECT_EQ(t, put_instance_file("instances/a/buffer_size_kb", "64"), 0);
	KEXPECT_EQ(t, ring_kb(a->spares, 0), 64);
	KEXPECT_EQ(t,
		   trace_test_add("instances/a/set_ftrace_filter",
				  "victim_other:snapshot"),
		   0);
	victim_other(1);
	KEXPECT(t, KWAIT(snapshot_cpus(a) == cpus_present()));
	KEXPECT_EQ(t, entries_set_aside(a), 1);
	KEXPECT_EQ(t, entries_written(a), 0);
	KEXPECT_EQ(t, put_instance_file("instances/a/snapshot", "2"), 0);
	KEXPECT_EQ(t, entries_set_aside(a), 0);
	victim_call(6);
	victim_other(2);
	KEXPECT_EQ(t, entries_written(b), 7);
	KEXPECT(t, !ring_spares[0].pages);
	end_two_instances(t);
}

KTEST(instances_errors, "instances.error_log")
{
	char text[400];

	KASSERT(t, begin_two_instances("victim_call"));
	KEXPECT_EQ(t, put_instance_file("error_log", ""), 0);
	KEXPECT_EQ(t,
		   put_instance_file("instances/a/events/kmem/kmalloc/filter",
				     "nosuch == 1"),
		   -EINVAL);
	KEXPECT(t, trace_test_says("error_log", ""));
	KEXPECT(t, trace_test_says("instances/b/error_log", ""));
	trace_test_read("instances/a/error_log", text, sizeof(text), 100);
	KEXPECT(t, strstr(text, "Command: nosuch == 1\n"));
	/* An instance of the same name begins with none. */
	end_two_instances(t);
	KASSERT(t, begin_two_instances("victim_call"));
	KEXPECT(t, trace_test_says("instances/a/error_log", ""));
	end_two_instances(t);
}
