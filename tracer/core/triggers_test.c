/* SPDX-License-Identifier: MIT */
/*
 * Proves of triggers: that they act at their function and nowhere else, as often as their
 * count says and under each tracer, that entries beside them stay right, that a
 * wrong word changes nothing, and that they may come and go while all CPUs call.
 */
#include <tracer/testing.h>
#include <kernel/lib/bits.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/core/triggers.h>
#include <kernel/test/again.h>

#define TEXT 4096

static int add_function_trigger(const char *text)
{
	return trace_test_add("set_ftrace_filter", text);
}

/* The call that stops tracing is the last that is recorded. */
KTEST(triggers_off, "triggers.traceoff_and_traceon")
{
	KEXPECT_EQ(t, trace_test_victim(), 0);
	trace_test_put("set_ftrace_filter", "victim_call victim_leaf");
	KEXPECT_EQ(t, add_function_trigger("victim_leaf:traceoff"), 0);
	trace_test_put("trace", "");
	victim_call(1);
	KEXPECT_EQ(t, trace_test_written(), 1);
	victim_leaf(1);
	KEXPECT_EQ(t, trace_test_written(), 2);
	KEXPECT(t, trace_test_says("tracing_on", "0\n"));
	victim_call(1);
	victim_leaf(1);
	KEXPECT_EQ(t, trace_test_written(), 2);
	KEXPECT_EQ(t, trace_test_put("trace_marker", "late"), -EBADF);
	/* A function that is not in the filter may have a trigger, too. */
	KEXPECT_EQ(t, add_function_trigger("victim_other:traceon"), 0);
	victim_other(1);
	KEXPECT(t, trace_test_says("tracing_on", "1\n"));
	KEXPECT_EQ(t, trace_test_written(), 2);
	victim_call(1);
	KEXPECT_EQ(t, trace_test_written(), 3);
	/* Without triggers tracing_on stays as they left it. */
	victim_leaf(1);
	KEXPECT_EQ(t, trace_test_written(), 4);
	KEXPECT_EQ(t,
		   add_function_trigger(
			   "!victim_leaf:traceoff !victim_other:traceon"),
		   0);
	KEXPECT(t, trace_test_says("tracing_on", "0\n"));
	victim_call(1);
	KEXPECT_EQ(t, trace_test_written(), 4);
	trace_test_put("tracing_on", "1");
	victim_leaf(1);
	victim_call(1);
	KEXPECT_EQ(t, trace_test_written(), 6);
	trace_test_reset();
}

static u64 entries_held(void)
{
	struct ring_stats s;
	u64 n = 0;

	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++) {
		ring_stats(rings, cpu, &s);
		n += s.held;
	}
	return n;
}

static void switch_tasks(void)
{
	for (unsigned int i = 0; i < 1500; i++)
		task_sleep(1);
}

static void go_on(void *pid)
{
	*(s32 *)pid = current_task()->pid;
	victim_other(1);
	victim_call(1);
}

/* After traceoff the ring stays as it is, however often tasks and events come. Where recording
 * goes on, the entry is the task's that runs. */
KTEST(triggers_ring_stays, "triggers.ring_stays_after_traceoff")
{
	KNEED_CLIENT(t, "events");
	unsigned int cpu = cpu_index();
	const struct ring_entry *e;
	struct trace_iter *it;
	s32 pid = 0, last = -1;
	u64 n;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	task_set_affinity(current_task(), 1u << cpu);
	trace_test_size(8);
	trace_test_put("set_ftrace_filter", "victim_call victim_leaf");
	KEXPECT_EQ(t,
		   add_function_trigger(
			   "victim_leaf:traceoff victim_other:traceon"),
		   0);
	trace_test_put("trace", "");
	for (unsigned int i = 0; i < 100; i++)
		victim_call(i);
	victim_leaf(1);
	KEXPECT_EQ(t, entries_held(), 101);
	switch_tasks();
	KEXPECT_EQ(t, entries_held(), 101);
	task_join(task_create("other", PRIO_NORMAL, 1u << cpu, go_on, &pid));
	it = trace_iter_open(rings, 1u << cpu, true);
	for (; it && (e = trace_iter_peek(it)); trace_iter_next(it))
		last = e->pid;
	trace_iter_close(it);
	KEXPECT(t, pid > 0);
	KEXPECT_EQ(t, last, pid);
	KEXPECT_EQ(t, entries_held(), 102);
	trace_test_reset();
	/* The same of an event's trigger. */
	trace_test_size(8);
	trace_test_put("set_event", "sched:sched_switch");
	switch_tasks();
	trace_test_put("events/sched/sched_switch/trigger", "traceoff");
	task_sleep(1);
	KEXPECT(t, trace_test_says("tracing_on", "0\n"));
	n = entries_held();
	KEXPECT(t, n > 50);
	switch_tasks();
	KEXPECT_EQ(t, entries_held(), n);
	trace_test_put("events/sched/sched_switch/trigger", "!traceoff");
	task_set_affinity(current_task(), ~0u);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}

/* With the tracer nop the stacks alone are in the buffer. */
KTEST(triggers_count, "triggers.count")
{
	char *text = kmalloc(TEXT);

	KASSERT(t, text);
	trace_test_reset();
	KEXPECT_EQ(t, add_function_trigger("victim_call:stacktrace:3"), 0);
	KEXPECT(t, trace_test_says("set_ftrace_filter",
				   "#### all functions enabled ####\n"
				   "victim_call:stacktrace:count=3\n"));
	victim_other(1);
	KEXPECT_EQ(t, trace_test_written(), 0);
	for (unsigned int i = 0; i < 2; i++)
		victim_outer(i);
	KEXPECT_EQ(t, trace_test_written(), 2);
	KEXPECT(t, trace_test_says("set_ftrace_filter",
				   "#### all functions enabled ####\n"
				   "victim_call:stacktrace:count=1\n"));
	for (unsigned int i = 0; i < 5; i++)
		victim_call(i);
	KEXPECT_EQ(t, trace_test_written(), 3);
	KEXPECT(t, trace_test_read("trace", text, TEXT, 4096) > 0);
	KEXPECT(t, strstr(text, ": <stack trace>\n => victim_call\n"
				" => victim_outer\n => ktest_"));
	KEXPECT_EQ(t, add_function_trigger("victim_call:stacktrace"),
		   0); /* another */
	victim_call(1);
	KEXPECT_EQ(t, trace_test_written(), 4);
	KEXPECT_EQ(t, add_function_trigger("!victim_call:stacktrace"), 0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
	/* A command that changes nothing costs no turn. The file's own line takes it back. */
	KEXPECT_EQ(t, add_function_trigger("victim_call:traceon:1"), 0);
	victim_call(1);
	KEXPECT_EQ(t, trace_test_put("tracing_on", "0"), 0);
	victim_call(2);
	KEXPECT(t, trace_test_says("tracing_on", "1\n"));
	KEXPECT_EQ(t, trace_test_put("tracing_on", "0"), 0);
	victim_call(3);
	KEXPECT(t, trace_test_says("tracing_on", "0\n"));
	KEXPECT_EQ(t, add_function_trigger("!victim_call:traceon"), -ENODEV);
	KEXPECT_EQ(t, add_function_trigger("!victim_call:traceon:count=0"), 0);
	trace_test_reset();
	kfree(text);
}

KTEST(triggers_graph, "triggers.function_graph")
{
	KNEED_CLIENT(t, "graph");
	trace_test_reset();
	trace_test_put("set_ftrace_filter", "victim_outer victim_call");
	trace_test_put("current_tracer", "function_graph");
	KEXPECT_EQ(t,
		   add_function_trigger(
			   "victim_call:stacktrace victim_other:traceoff"),
		   0);
	trace_test_put("trace", "");
	KEXPECT_EQ(t, victim_outer(1), 5);
	KEXPECT_EQ(t, trace_test_written(),
		   5); /* two entries, two returns, a stack */
	victim_other(1);
	KEXPECT_EQ(t, victim_outer(1), 5);
	KEXPECT_EQ(t, trace_test_written(), 5);
	trace_test_put("tracing_on", "1");
	KEXPECT_EQ(t, victim_outer(1), 5);
	KEXPECT_EQ(t, trace_test_written(), 10);
	trace_test_reset();
	KEXPECT_EQ(t, current_task()->graph_depth, 0);
}

KTEST(triggers_refused, "triggers.wrong_words_change_nothing")
{
	static const struct {
		const char *text;
		int err;
	} wrong[] = {
		{ "victim_call:nosuch", -EINVAL },
		{ "victim_call:mod:", -EINVAL },
		{ "victim_call:traceoff:0", -EINVAL },
		{ "victim_call:traceoff:many", -EINVAL },
		{ "victim_call:", -EINVAL },
		{ "nosuch:traceoff", -EINVAL },
		{ "!victim_call:traceoff", -ENODEV },
		{ "!victim_other:stacktrace:0", -ENODEV },
		{ "victim_leaf victim_call:traceon nosuch", -EINVAL },
		{ "victim_leaf nosuch:traceon", -EINVAL },
		{ "victim_call:traceon victim_call:nosuch", -EINVAL },
	};

	trace_test_reset();
	trace_test_put("set_ftrace_filter", "victim_outer");
	KEXPECT_EQ(t, add_function_trigger("victim_other:stacktrace"), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(wrong); i++) {
		KEXPECT_EQ(t, add_function_trigger(wrong[i].text),
			   wrong[i].err);
		KEXPECT(t, *trace_test_error);
		KEXPECT(t,
			trace_test_says("set_ftrace_filter",
					"victim_outer\n"
					"victim_other:stacktrace:unlimited\n"));
	}
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 1);
	trace_test_reset();
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
}

/* Each CPU calls without a pause while its trigger comes and goes, by each strategy. */
PATCH_TEST(triggers_load, "triggers.come_and_go")
{
	KNEED_CLIENT(t, "graph");
	struct trace_worker *w = trace_workers;
	unsigned long calls;
	u64 before, after;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	trace_test_put("trace", "");
	KASSERT(t, trace_workers_start(w, 0));
	for (unsigned int i = 0; i < 20; i++) {
		task_sleep(NSEC_PER_MSEC / 10); /* one CPU: they run now */
		KEXPECT_EQ(t,
			   add_function_trigger("victim_call:stacktrace:5 "
						"victim_call:traceon"),
			   0);
		KEXPECT_EQ(t,
			   trace_test_put("current_tracer",
					  i % 2 ? "nop" : "function_graph"),
			   0);
		KEXPECT_EQ(t,
			   add_function_trigger(
				   i % 3 ? "!victim_call:stacktrace:0 "
					   "!victim_call:traceon" :
					   "!victim_*:traceon "
					   "!victim_call:stacktrace:0"),
			   0);
	}
	calls = trace_workers_join(w);
	KEXPECT(t, calls > 0);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		KEXPECT_EQ(t, w[cpu].task ? w[cpu].wrong : 0, 0);
	/* And every call is recorded once, as before. */
	trace_test_put("current_tracer", "function");
	KEXPECT_EQ(t, add_function_trigger("victim_other:stacktrace"), 0);
	before = trace_test_written();
	KASSERT(t, trace_workers_start(w, 100));
	calls = trace_workers_join(w);
	after = trace_test_written();
	KEXPECT_EQ(t, after - before, calls);
	trace_test_reset();
}

/* A list that replaces another goes on counting where that one is. */
KTEST(triggers_count_kept, "triggers.count_is_kept_while_others_change")
{
	struct trace_worker *w = trace_workers;

	trace_test_reset();
	KEXPECT_EQ(t, add_function_trigger("victim_call:stacktrace:500"), 0);
	KASSERT(t, trace_workers_start(w, 300));
	for (unsigned int i = 0; i < 20; i++) {
		KEXPECT_EQ(t, add_function_trigger("victim_other:traceon"), 0);
		KEXPECT_EQ(t, add_function_trigger("!victim_other:traceon"), 0);
	}
	trace_workers_join(w);
	for (unsigned int i = 0; i < 500; i++)
		victim_call(i);
	KEXPECT_EQ(t, trace_test_written(), 500);
	KEXPECT_EQ(t, add_function_trigger("!victim_call:stacktrace:0"), 0);
	trace_test_reset();
}

/* The trigger stands on a function that each of reset's own steps calls. */
KTEST(triggers_reset, "triggers.reset_ends_with_recording_on")
{
	KNEED_CLIENT(t, "events");
	trace_test_reset();
	for (unsigned int i = 0; i < 3; i++) {
		KEXPECT_EQ(t, add_function_trigger("mutex_lock:traceoff"), 0);
		trace_test_reset();
		KEXPECT(t, trace_test_says("tracing_on", "1\n"));
		KEXPECT_EQ(t,
			   trace_test_put("events/kmem/kmalloc/trigger",
					  "traceoff"),
			   0);
		trace_test_reset();
		KEXPECT(t, trace_test_says("tracing_on", "1\n"));
	}
}

/* Each function has the triggers that were written for it, before and behind the call, in the order
 * written. */
KTEST(triggers_many, "triggers.many_stand_on_many_functions")
{
	KNEED_CLIENT(t, "events");
	char *text = kmalloc(TEXT);

	KASSERT(t, text);
	trace_test_reset();
	KEXPECT_EQ(t,
		   add_function_trigger(
			   "victim_c*:stacktrace:7 victim_*:traceon "
			   "victim_call:enable_event:kmem:kmalloc"),
		   0);
	KEXPECT_EQ(t,
		   add_function_trigger(
			   "!victim_call:traceon victim_other:stacktrace"),
		   0);
	KEXPECT(t, trace_test_read("set_ftrace_filter", text, TEXT, 64) > 0);
	KEXPECT(t, strstr(text, "victim_call:enable_event:kmem:kmalloc:"
				"unlimited\nvictim_call:stacktrace:count=7\n"));
	KEXPECT(t, !strstr(text, "victim_call:traceon"));
	KEXPECT(t, strstr(text, "victim_other:traceon:unlimited\n"
				"victim_other:stacktrace:unlimited\n"));
	KEXPECT(t, strstr(text, "victim_leaf:traceon:unlimited\n"));
	victim_leaf(1);
	KEXPECT_EQ(t, trace_test_written(), 0);
	trace_test_put("tracing_on", "0");
	victim_call(1); /* its traceon has been taken back */
	KEXPECT(t, trace_test_says("tracing_on", "0\n"));
	victim_leaf(1);
	KEXPECT(t, trace_test_says("tracing_on", "1\n"));
	trace_test_put("set_event", "");
	trace_test_put("trace", "");
	victim_other(1);
	KEXPECT_EQ(t, trace_test_written(), 1);
	trace_test_reset();
	kfree(text);
}
