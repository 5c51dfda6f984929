/* SPDX-License-Identifier: MIT */
/*
 * Proves of instances: each records its own functions, events and markers, as often as the test has
 * made them happen, and nothing else. Settings of one change no other. Making, removing and running
 * out of memory leave nothing behind.
 */
#include <tracer/testing.h>

#include <kernel/lib/bits.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/mm/page.h>
#include <tracer/events/events.h>
#include <tracer/core/instances.h>
#include <tracer/core/options.h>
#include <tracer/ring/ring_more.h>
#include <tracer/ring/ring_control.h>
#include <kernel/test/again.h>

#define CALLS 500

static char error[160];

static int add_instance(const char *name)
{
	char path[80];

	snprintf(path, sizeof(path), TRACING "instances/%s", name);
	return ctl_mkdir(path, error, sizeof(error));
}

static int remove_instance(const char *name)
{
	char path[80];

	snprintf(path, sizeof(path), TRACING "instances/%s", name);
	return ctl_rmdir(path, error, sizeof(error));
}

/* Entries written in an instance. All ones if the books do not add up. */
static u64 entries_written_in(const char *name)
{
	struct trace_instance *in = instance_find(name);
	struct ring_stats s;

	return in && trace_test_books_of(in->buffer, &s) ? s.written : ~0ull;
}

/* Of a set's entries, how many the running task has made. */
static u64 own_entries(const struct ring *set)
{
	struct trace_iter *it = trace_iter_open(set, cpus_present(), true);
	const struct ring_entry *e;
	u64 n = 0;

	while (it && (e = trace_iter_peek(it))) {
		n += e->pid == current_task()->pid;
		trace_iter_next(it);
	}
	trace_iter_close(it);
	return n;
}

KTEST(instances_folders, "instances.make_and_remove")
{
	char name[40] = "instances/b0/trace", text[200];
	struct ctl_handle *h;

	trace_test_reset();
	for (unsigned int i = 1; i < INSTANCES; i++) {
		snprintf(name, sizeof(name), "i%u", i);
		KEXPECT_EQ(t, add_instance(name), 0);
		/* The rings of 31 instances on 32 CPUs would be 248 MiB. */
		snprintf(text, sizeof(text), "instances/i%u/buffer_size_kb", i);
		KEXPECT_EQ(t, trace_test_put(text, "8"), 0);
	}
	KEXPECT_EQ(t, add_instance("more"), -ENOSPC);
	KEXPECT(t, !strcmp(error, "there are 31 instances already"));
	KEXPECT_EQ(t, add_instance("i1"), -EEXIST);
	KEXPECT_EQ(t, add_instance("a_name_that_is_longer_than_31_bytes"),
		   -EINVAL);
	KEXPECT_EQ(t, remove_instance("more"), -ENOENT);
	KEXPECT_EQ(t, remove_instance("i2"), 0);
	KEXPECT_EQ(t, add_instance("again"), 0);
	KEXPECT(t, trace_test_read("instances/again/trace", text, sizeof(text),
				   7) > 0);
	KEXPECT(t, !strncmp(text, "# tracer: nop\n#\n# entries-in-buffer", 34));
	KEXPECT(t, trace_test_says("instances/again/available_tracers",
				   "function nop\n"));
	KEXPECT_EQ(t,
		   trace_test_put("instances/again/current_tracer",
				  "function_graph"),
		   -EINVAL);
	KEXPECT_EQ(t,
		   trace_test_read("instances/again/stack_trace", text,
				   sizeof(text), 7),
		   -ENOENT);
	KEXPECT_EQ(t,
		   trace_test_put("instances/again/set_ftrace_filter",
				  "any:mod:any"),
		   0);
	KASSERT(t, !ctl_open(TRACING "instances/i3/trace", false, false, &h));
	KEXPECT_EQ(t, remove_instance("i3"), -EBUSY);
	KEXPECT(t, !strcmp(error, "a file in it is open"));
	ctl_close(h, NULL, 0);
	KEXPECT_EQ(t, remove_instance("again"), 0);
	for (unsigned int i = 1; i < INSTANCES; i++) {
		snprintf(name, sizeof(name), "i%u", i);
		KEXPECT_EQ(t, remove_instance(name), i == 2 ? -ENOENT : 0);
	}
	for (unsigned int i = 1; i < INSTANCES; i++)
		KEXPECT(t, !trace_instances[i].buffer && !site_bits.filter[i] &&
				   !site_bits.left_out[i] &&
				   !trace_instances[i].filter.modules &&
				   !trace_instances[i].on);
}

/* Each CPU's task calls victim_call() and, through it, nothing else. */
static unsigned long run_workers(struct ktest_run *t)
{
	struct trace_worker *w = trace_workers;

	KEXPECT(t, trace_workers_start(w, CALLS));
	return trace_workers_join(w);
}

/* Is the function in touched_functions, with no user? */
static bool function_is_touched(unsigned long (*fn)(unsigned long x))
{
	char *text = kmalloc(65536), line[60];
	bool found;

	snprintf(line, sizeof(line), "\n%s (0)\n",
		 site_function(trace_test_site(fn)));
	text[0] = '\n';
	trace_test_read("touched_functions", text + 1, 65535, 4096);
	found = strstr(text, line);
	kfree(text);
	return found;
}

static bool enabled_has(const char *line)
{
	char text[400];

	trace_test_read("enabled_functions", text, sizeof(text), 7);
	return strstr(text, line);
}

#define CALL_TRAMP "\ttramp: trace_entry_call+0x0"
#define RING_TRAMP "\ttramp: trace_entry_ring+0x0"

KTEST(instances_functions, "instances.functions")
{
	KNEED_CLIENT(t, "graph");
	struct ring_stats s;
	unsigned long calls;
	irq_state_t state;

	trace_test_reset();
	KEXPECT_EQ(t, add_instance("a"), 0);
	KEXPECT_EQ(t, add_instance("b"), 0);
	KEXPECT_EQ(t,
		   trace_test_put("instances/a/set_ftrace_filter",
				  "victim_call"),
		   0);
	KEXPECT_EQ(t,
		   trace_test_put("instances/b/set_ftrace_filter",
				  "victim_other victim_call"),
		   0);
	KEXPECT_EQ(t,
		   trace_test_put("instances/b/set_ftrace_notrace",
				  "victim_call"),
		   0);
	/* The top level's filter is its own. */
	KEXPECT(t, trace_test_says("set_ftrace_filter",
				   "#### all functions enabled ####\n"));
	KEXPECT_EQ(t, trace_test_put("instances/a/current_tracer", "function"),
		   0);
	KEXPECT_EQ(t, trace_test_put("instances/b/current_tracer", "function"),
		   0);
	KEXPECT(t, trace_test_says("current_tracer", "nop\n"));
	KEXPECT(t, enabled_has("victim_call (1)" CALL_TRAMP));
	KEXPECT(t, enabled_has("victim_other (1)\t"));
	KEXPECT_EQ(t, trace_test_put("instances/b/set_ftrace_notrace", ""), 0);
	KEXPECT(t, enabled_has("victim_call (2)\t"));
	KEXPECT_EQ(t,
		   trace_test_put("instances/b/set_ftrace_notrace",
				  "victim_call"),
		   0);
	calls = run_workers(t);
	victim_other(1);
	KEXPECT_EQ(t, calls, CALLS * bit_count(cpus_online));
	KEXPECT_EQ(t, entries_written_in("a"), calls);
	KEXPECT_EQ(t, entries_written_in("b"), 1);
	KEXPECT_EQ(t, trace_test_written(), 0);
	victim_call(1);
	calls++;
	KEXPECT_EQ(t, own_entries(instance_find("a")->buffer), 1);
	KEXPECT_EQ(t, own_entries(instance_find("b")->buffer), 1);
	/* Beside the top level, with each tracer there. */
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_leaf"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	victim_leaf(1);
	victim_other(1);
	KEXPECT_EQ(t, trace_test_written(), 1);
	KEXPECT_EQ(t, entries_written_in("b"), 2);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function_graph"), 0);
	victim_leaf(1);
	victim_other(1);
	KEXPECT_EQ(t, trace_test_written(), 2);
	KEXPECT_EQ(t, entries_written_in("b"), 3);
	/* tracing_on and tracing_cpumask are each one's own. */
	KEXPECT_EQ(t, trace_test_put("tracing_on", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("instances/a/tracing_cpumask", "0"), 0);
	victim_call(1);
	victim_other(1);
	victim_leaf(1);
	KEXPECT_EQ(t, trace_test_written(), 2);
	KEXPECT_EQ(t, entries_written_in("a"), calls);
	KEXPECT_EQ(t, entries_written_in("b"), 4);
	KEXPECT_EQ(t, trace_test_put("tracing_on", "1"), 0);
	KEXPECT_EQ(t, trace_test_put("instances/a/tracing_cpumask", "1"), 0);
	KEXPECT_EQ(t, trace_test_put("instances/b/tracing_on", "0"), 0);
	victim_leaf(1);
	victim_other(1);
	calls += run_workers(t) / bit_count(cpus_online); /* CPU 0's */
	KEXPECT_EQ(t, trace_test_written(), 4);
	KEXPECT_EQ(t, entries_written_in("a"), calls);
	KEXPECT_EQ(t, entries_written_in("b"), 4);
	/* A call from within the tracer is counted as lost, in each. */
	KEXPECT_EQ(t, trace_test_put("instances/b/tracing_on", "1"), 0);
	KASSERT(t, ring_enter(&state));
	victim_other(1);
	ring_leave(state);
	KEXPECT_EQ(t, entries_written_in("b"), 5);
	KASSERT(t, trace_test_books_of(instance_find("b")->buffer, &s));
	KEXPECT_EQ(t, s.dropped, 1);
	/* One gone, its functions are off, and the others stay. */
	KEXPECT_EQ(t, remove_instance("b"), 0);
	KEXPECT(t, trace_test_says("enabled_functions", "") == false);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "nop"), 0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 1);
	KEXPECT_EQ(t, remove_instance("a"), 0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
	KEXPECT(t, function_is_touched(victim_call) &&
			   function_is_touched(victim_other));
	KEXPECT(t, function_is_touched(victim_leaf));
	trace_test_reset();
}

/*
 * Calls that the top level alone wants do not go to C. While every CPU makes such calls, an
 * instance comes to want them, and wants them no more: the top level misses none.
 */
KTEST(instances_choose, "instances.choose")
{
	struct trace_worker *w = trace_workers;
	unsigned long calls;

	trace_test_reset();
	KEXPECT_EQ(t, add_instance("a"), 0);
	trace_test_put("instances/a/set_ftrace_filter", "victim_other");
	trace_test_put("instances/a/current_tracer", "function");
	trace_test_put("set_ftrace_filter", "victim_call victim_other");
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	KEXPECT(t, enabled_has("victim_call (1)" RING_TRAMP));
	KEXPECT(t, enabled_has("victim_other (2)" CALL_TRAMP));
	victim_call(1);
	victim_other(1);
	KEXPECT_EQ(t, trace_test_written(), 2);
	KEXPECT_EQ(t, entries_written_in("a"), 1);
	/* As if another function had the same bit. */
	memset(trace_in_c, 0xff, sizeof(trace_in_c));
	KEXPECT(t, enabled_has("victim_call (1)" CALL_TRAMP));
	victim_call(1);
	KEXPECT_EQ(t, trace_test_written(), 3);
	KEXPECT_EQ(t, entries_written_in("a"), 1);
	KEXPECT_EQ(t, trace_test_put("options/func_stack_trace", "1"), 0);
	KEXPECT(t, enabled_has("victim_call (1)" CALL_TRAMP));
	KEXPECT_EQ(t, trace_test_put("options/func_stack_trace", "0"), 0);
	KEXPECT(t, enabled_has("victim_call (1)" RING_TRAMP));
	trace_test_put("trace", "");
	KASSERT(t, trace_workers_start(w, CALLS));
	for (unsigned int i = 0; i < 10; i++) {
		trace_test_add("instances/a/set_ftrace_filter", "victim_call");
		trace_test_add("instances/a/set_ftrace_filter", "!victim_call");
	}
	calls = trace_workers_join(w);
	KEXPECT(t, enabled_has("victim_call (1)" RING_TRAMP));
	KEXPECT_EQ(t, trace_test_written(), calls);
	KEXPECT(t, entries_written_in("a") <= calls + 1);
	/* The instance records on where the top level does not. */
	KEXPECT_EQ(t, trace_test_put("tracing_on", "0"), 0);
	victim_call(1);
	calls = entries_written_in("a");
	victim_other(1);
	KEXPECT_EQ(t, trace_test_written(), CALLS * bit_count(cpus_online));
	KEXPECT_EQ(t, entries_written_in("a"), calls + 1);
	KEXPECT_EQ(t, remove_instance("a"), 0);
	KEXPECT(t, enabled_has("victim_call (1)\ttramp: trace_entry_off"));
	trace_test_reset();
}

/* Beside triggers and the profiler, which see calls in C as well. */
KTEST(instances_beside, "instances.beside_triggers")
{
	KNEED_CLIENT(t, "profiler");
	trace_test_reset();
	KEXPECT_EQ(t, add_instance("a"), 0);
	KEXPECT_EQ(t,
		   trace_test_put("instances/a/set_ftrace_filter",
				  "victim_call"),
		   0);
	KEXPECT_EQ(t, trace_test_put("instances/a/current_tracer", "function"),
		   0);
	KEXPECT_EQ(t,
		   trace_test_put("set_ftrace_filter", "victim_other:traceoff"),
		   0);
	victim_call(1);
	victim_other(1);
	victim_call(2);
	KEXPECT(t, trace_test_says("tracing_on", "0\n"));
	KEXPECT_EQ(t, entries_written_in("a"), 2);
	KEXPECT_EQ(t,
		   trace_test_put("set_ftrace_filter",
				  "!victim_other:traceoff"),
		   0);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "1"), 0);
	victim_call(3);
	KEXPECT_EQ(t, entries_written_in("a"), 3);
	KEXPECT_EQ(t, remove_instance("a"), 0);
	victim_call(4);
	trace_test_reset();
}

static void allocate_times(unsigned int times)
{
	while (times--)
		kfree(kmalloc(64));
}

/* How many lines of `trace` show the events of ten allocations of 64 bytes. */
static unsigned int lines_of_ten(void)
{
	char *text = kmalloc(65536);
	unsigned int n = 0;

	trace_test_put("trace", "");
	allocate_times(10);
	trace_test_put("tracing_on", "0");
	if (text && trace_test_read("trace", text, 65536, 4096) > 0)
		for (char *at = text; (at = strstr(at, " bytes_req=64 ")); at++)
			n++;
	kfree(text);
	trace_test_put("tracing_on", "1");
	return n;
}

KTEST(instances_events, "instances.events")
{
	char filter[60];

	trace_test_reset();
	KEXPECT_EQ(t, add_instance("a"), 0);
	KEXPECT_EQ(t, add_instance("b"), 0);
	snprintf(filter, sizeof(filter), "common_pid == %d",
		 current_task()->pid);
	KEXPECT_EQ(t,
		   trace_test_put("instances/a/events/kmem/kmalloc/filter",
				  filter),
		   0);
	KEXPECT_EQ(t,
		   trace_test_put("instances/a/events/kmem/kmalloc/enable",
				  "1"),
		   0);
	KEXPECT(t, trace_test_says("events/kmem/kmalloc/enable", "0\n"));
	KEXPECT(t, trace_test_says("events/kmem/kmalloc/filter", "none\n"));
	trace_test_put("instances/a/trace", "");
	allocate_times(10);
	trace_test_put("instances/a/tracing_on", "0");
	KEXPECT(t,
		entries_written_in("a") >= 10 && entries_written_in("a") < 20);
	KEXPECT_EQ(t, entries_written_in("b"), 0);
	KEXPECT_EQ(t, trace_test_written(), 0);
	/* With the top level and another filter. Each counts for itself. */
	snprintf(filter, sizeof(filter), "common_pid != %d",
		 current_task()->pid);
	KEXPECT_EQ(t, trace_test_put("events/kmem/kmalloc/filter", filter), 0);
	KEXPECT_EQ(t, trace_test_put("set_event", "kmalloc"), 0);
	KEXPECT_EQ(t, trace_test_put("instances/b/set_event", "kmem:kfree"), 0);
	KEXPECT(t, trace_test_says("instances/b/set_event", "kmem:kfree\n"));
	KEXPECT(t, trace_test_says("set_event", "kmem:kmalloc\n"));
	allocate_times(10);
	trace_test_put("instances/b/tracing_on", "0");
	KEXPECT(t, entries_written_in("b") >= 10);
	KEXPECT(t, entries_written_in("a") < 20);
	KEXPECT_EQ(t, own_entries(rings), 0);
	KEXPECT_EQ(t,
		   trace_test_put("events/kmem/kmalloc/filter",
				  "bytes_req == 64"),
		   0);
	KEXPECT_EQ(t, lines_of_ten(), 10);
	/* Nor is a filter needed for an event to go to both. */
	KEXPECT_EQ(t, trace_test_put("events/kmem/kmalloc/filter", "0"), 0);
	KEXPECT_EQ(t, lines_of_ten(), 10);
	/* The last one off: records begin in the ring again. */
	KEXPECT_EQ(t, trace_test_put("instances/b/set_event", ""), 0);
	KEXPECT(t, ring_mode & RING_APART);
	KEXPECT_EQ(t, remove_instance("a"), 0);
	KEXPECT(t, !(ring_mode & RING_APART));
	KEXPECT_EQ(t, remove_instance("b"), 0);
	trace_test_reset();
}

/* A text of a instance's buffer, its clock and its options. */
KTEST(instances_own, "instances.options_clock_and_markers")
{
	char text[500];

	trace_test_reset();
	KEXPECT_EQ(t, add_instance("a"), 0);
	KEXPECT_EQ(t, trace_test_put("instances/a/trace_marker", "for a"), 0);
	KEXPECT_EQ(t, trace_test_put("trace_marker", "for the top"), 0);
	KEXPECT_EQ(t, trace_test_written(), 1);
	KEXPECT_EQ(t, entries_written_in("a"), 1);
	KEXPECT_EQ(t, trace_test_put("instances/a/options/context-info", "0"),
		   0);
	KEXPECT(t, trace_option(OPT_CONTEXT_INFO));
	KEXPECT(t, trace_test_says("instances/a/trace",
				   "tracing_mark_write: for a\n"));
	KEXPECT_EQ(t,
		   trace_test_put("instances/a/trace_options", "funcgraph-cpu"),
		   -EINVAL);
	KEXPECT_EQ(t, trace_test_put("instances/a/trace_clock", "uptime"), 0);
	KEXPECT(t,
		trace_test_says("trace_clock",
				"[local] global counter uptime mono boot\n"));
	KEXPECT_EQ(t, entries_written_in("a"), 0);
	KEXPECT_EQ(t, trace_test_written(), 1);
	/* Its size, and option overwrite, which chooses the entries that a full buffer keeps. */
	KEXPECT_EQ(t, trace_test_put("instances/a/buffer_size_kb", "8"), 0);
	KEXPECT_EQ(t, ring_kb(rings, 0), RING_DEFAULT_KB);
	KEXPECT_EQ(t, trace_test_put("instances/a/options/overwrite", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("instances/a/options/markers", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("instances/a/trace_marker", "no"),
		   -EINVAL);
	KEXPECT_EQ(t,
		   trace_test_put("instances/a/set_ftrace_filter",
				  "victim_call"),
		   0);
	KEXPECT_EQ(t, trace_test_put("instances/a/current_tracer", "function"),
		   0);
	task_set_affinity(current_task(), 1);
	for (unsigned int i = 0; i < 5000; i++)
		victim_call(i);
	task_set_affinity(current_task(), ~0u);
	trace_test_read("instances/a/per_cpu/cpu0/stats", text, sizeof(text),
			100);
	KEXPECT(t, strstr(text, "\noverrun: 0\n"));
	KEXPECT(t, strstr(text, "\nwritten: 5000\n"));
	KEXPECT_EQ(t, remove_instance("a"), 0);
	trace_test_reset();
}

#define KEPT 40 /* pages, fewer than a ring of one CPU has */

KTEST(instances_memory, "instances.out_of_memory")
{
	trace_test_reset();
	trace_test_memory_take(KEPT);
	KEXPECT_EQ(t, add_instance("a"), -ENOMEM);
	KEXPECT(t, strstr(error, "no memory for another buffer"));
	KEXPECT(t, !instance_find("a"));
	trace_test_memory_give();
	KEXPECT_EQ(t, add_instance("a"), 0);
	KEXPECT_EQ(t, remove_instance("a"), 0);
}
