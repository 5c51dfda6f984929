/* SPDX-License-Identifier: MIT */
/*
 * Proves that nothing is written behind a closed gate: each writer of entries acts while each gate
 * is closed that it has to respect, and its ring stays as it is. Where a gate is not meant for the
 * writer, as in Linux, it writes.
 */
#include <tracer/testing.h>

#include <kernel/event/latency.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/time.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/ring/ring_more.h>
#include <kernel/test/again.h>

#define IN_FOLDER "instances/gated/"

/* ---- Writers ---- */

enum {
	CALLS = 1,
	EVENTS = 2,
	OTHERS = 4, /* markers, triggers' stacks, notes of latencies */
	ALL = CALLS | EVENTS | OTHERS,
};

static void call_victim(struct ring *set)
{
	(void)set;
	victim_call(1);
}

static notrace void spin_awhile(unsigned long us)
{
	u64 end = arch_clock() + ns_to_clock_delta(us * NSEC_PER_USEC);

	while (arch_clock() < end)
		;
}

static void call_slowly(struct ring *set)
{
	(void)set;
	victim_callback(spin_awhile, 5);
}

static void call_again(struct ring *set)
{
	(void)set;
	victim_call(1);
	victim_call(2);
	victim_other(1);
}

static void cause_event(struct ring *set)
{
	(void)set;
	kfree(kmalloc(8));
}

static void write_marker(struct ring *set)
{
	ring_mark_as(set, RING_MARK, "mark", 4);
}

static void write_raw_marker(struct ring *set)
{
	ring_mark_as(set, RING_RAW, "\1\0\0\0raw", 8);
}

static void have_section(struct ring *set)
{
	(void)set;
	latency_hooks->irqs_off((unsigned long)have_section + 1);
	latency_hooks->irqs_on((unsigned long)have_section + 1);
}

#define ONE_VICTIM                                                             \
	{                                                                      \
		"set_ftrace_filter", "victim_call"                             \
	}
#define ONE_EVENT                                                              \
	{                                                                      \
		"set_event", "kmem:kmalloc"                                    \
	}

static const struct writer {
	const char *name;
	unsigned int kind;
	void (*act)(struct ring *set);
	struct {
		const char *file, *text;
	} files[4];	/* that are written before */
	bool in_folder; /* they are those of another instance than the top level */
} writers[] = {
	{ "function",
	  CALLS,
	  call_victim,
	  { ONE_VICTIM, { "current_tracer", "function" } },
	  false },
	{ "function in C",
	  CALLS,
	  call_victim,
	  { ONE_VICTIM,
	    { "current_tracer", "function" },
	    { "function_profile_enabled", "1" } },
	  false },
	{ "function with its stack",
	  CALLS,
	  call_victim,
	  { ONE_VICTIM,
	    { "options/func_stack_trace", "1" },
	    { "current_tracer", "function" } },
	  false },
	{ "graph",
	  CALLS,
	  call_victim,
	  { ONE_VICTIM, { "current_tracer", "function_graph" } },
	  false },
	{ "graph in C",
	  CALLS,
	  call_victim,
	  { ONE_VICTIM,
	    { "set_ftrace_filter", "victim_other:traceon" },
	    { "current_tracer", "function_graph" } },
	  false },
	{ "graph with a limit",
	  CALLS,
	  call_victim,
	  { ONE_VICTIM,
	    { "max_graph_depth", "9" },
	    { "current_tracer", "function_graph" } },
	  false },
	{ "graph's returns alone",
	  CALLS,
	  call_slowly,
	  { { "set_ftrace_filter", "victim_callback" },
	    { "tracing_thresh", "1" },
	    { "current_tracer", "function_graph" } },
	  false },
	{ "function that came again",
	  CALLS,
	  call_again,
	  { { "set_ftrace_filter", "victim_call victim_other" },
	    { "options/func-no-repeats", "1" },
	    { "current_tracer", "function" } },
	  false },
	{ "event", EVENTS, cause_event, { ONE_EVENT }, false },
	{ "event with a filter",
	  EVENTS,
	  cause_event,
	  { ONE_EVENT, { "events/kmem/kmalloc/filter", "bytes_req > 0" } },
	  false },
	{ "event with its stack",
	  EVENTS,
	  cause_event,
	  { ONE_EVENT, { "options/stacktrace", "1" } },
	  false },
	{ "event with a trigger",
	  EVENTS,
	  cause_event,
	  { ONE_EVENT,
	    { "events/sched/sched_process_exit/trigger", "traceon" } },
	  false },
	{ "event beside another instance",
	  EVENTS,
	  cause_event,
	  { ONE_EVENT, { IN_FOLDER "set_event", "sched:sched_switch" } },
	  false },
	{ "a trigger's stack",
	  OTHERS,
	  call_victim,
	  { { "set_ftrace_filter", "victim_call:stacktrace" } },
	  false },
	{ "marker", OTHERS, write_marker, {}, false },
	{ "raw marker", OTHERS, write_raw_marker, {}, false },
	{ "latency",
	  OTHERS,
	  have_section,
	  { { "options/function-trace", "0" },
	    { "current_tracer", "irqsoff" } },
	  false },
	{ "function of an instance",
	  CALLS,
	  call_victim,
	  { ONE_VICTIM, { "current_tracer", "function" } },
	  true },
	{ "event of an instance", EVENTS, cause_event, { ONE_EVENT }, true },
	{ "marker of an instance", OTHERS, write_marker, {}, true },
	{ "event trigger's stack",
	  OTHERS,
	  cause_event,
	  { { "events/kmem/kmalloc/trigger", "stacktrace" } },
	  true },
};

/* ---- Gates ---- */

/* Gates that need more than one file to be closed or opened. */
enum special { NONE, MASKED, PIDS, PAUSED, FULL, BUSY };

static const struct gate {
	const char *name;
	unsigned int kinds; /* of writers for which it is meant */
	const char *file, *close, *open;
	enum special special;
} gates[] = {
	{ "tracing_on", ALL, "tracing_on", "0", "1", NONE },
	{ "tracing_cpumask", ALL, "tracing_cpumask", NULL, NULL, MASKED },
	{ "set_ftrace_pid", CALLS, "set_ftrace_pid", "999999", "", NONE },
	{ "set_ftrace_notrace_pid", CALLS, "set_ftrace_notrace_pid", NULL, "",
	  PIDS },
	{ "set_event_pid", EVENTS, "set_event_pid", "999999", "", NONE },
	{ "set_event_notrace_pid", EVENTS, "set_event_notrace_pid", NULL, "",
	  PIDS },
	{ "a reader's pause", ALL, "options/pause-on-trace", "1", "0", PAUSED },
	{ "a full buffer", ALL, "options/overwrite", "0", "1", FULL },
	{ "a busy CPU", ALL, NULL, NULL, NULL, BUSY },
};

/* ---- One of each ---- */

static const struct writer *writer;
static struct ring *ring_set;
static struct ctl_handle *reader;

static int put_here(const char *file, const char *text)
{
	char path[80];

	snprintf(path, sizeof(path), "%s%s", writer->in_folder ? IN_FOLDER : "",
		 file);
	return trace_test_put(path, text);
}

/* Does the writer write, at this moment? An event takes its room first, and gives it back when a
 * list of pids refuses it: where a page has just ended, that leaves an empty one. A latency that is
 * kept takes the pages away. */
static bool writer_acts(bool busy)
{
	irq_state_t state = arch_irq_save();
	struct ring *top = &rings[cpu_index()], *r = &ring_set[cpu_index()];
	struct ring_page **pages = r->pages;
	const char *before = r->at->cur;
	u32 head = r->head;
	bool written;

	top->busy = busy;
	ring_reopen(top);
	writer->act(ring_set);
	top->busy = false;
	ring_reopen(top);
	if (r->pages == pages && r->head == head + 1)
		before = (char *)r->pages[r->head % r->nr]->slots;
	written = r->at->cur != before;
	arch_irq_restore(state);
	return written;
}

/* A negative error: this writer has no such gate. */
static int close_gate(const struct gate *g)
{
	char text[160];
	int err = 0;

	if (g->special == MASKED)
		snprintf(text, sizeof(text), "%x",
			 cpus_present() & ~(1u << cpu_index()));
	else if (g->special == PIDS)
		snprintf(text, sizeof(text), "%d", current_task()->pid);
	else
		string_copy(text, g->close ?: "", sizeof(text));
	if (g->file)
		err = put_here(g->file, text);
	if (!err && g->special == PAUSED) {
		snprintf(text, sizeof(text), TRACING "%strace",
			 writer->in_folder ? IN_FOLDER : "");
		err = ctl_open(text, false, false, &reader);
	}
	if (!err && g->special == FULL)
		for (unsigned int i = 0; i < 10000; i++)
			ring_mark(ring_set, "to the brim", 11);
	return err;
}

static void open_gate(struct ktest_run *t, const struct gate *g)
{
	char all[12];

	snprintf(all, sizeof(all), "%x", cpus_present());
	if (g->special == PAUSED)
		ctl_abandon(reader);
	if (g->file)
		KEXPECT_EQ(t, put_here(g->file, g->open ?: all), 0);
	if (g->special == FULL)
		KEXPECT_EQ(t, put_here("trace", ""), 0);
}

static void try_gate(struct ktest_run *t, const struct gate *g)
{
	bool meant = g->kinds & writer->kind;
	u32 failures = t->failures;

	KEXPECT(t, writer_acts(false));
	/* Not while a latency tracer runs (latency.gates.overwrite). */
	if (close_gate(g)) {
		KEXPECT_EQ(t, g->special, FULL);
		return;
	}
	for (unsigned int i = 0; i < 3; i++)
		KEXPECT_EQ(t, writer_acts(g->special == BUSY), !meant);
	open_gate(t, g);
	KEXPECT(t, writer_acts(false));
	if (t->failures != failures)
		printk("# %s, %s\n", writer->name, g->name);
}

static void prepare_writer(struct ktest_run *t)
{
	trace_test_reset();
	KEXPECT_EQ(t,
		   ctl_mkdir(TRACING "instances/gated", trace_test_error, 160),
		   0);
	ring_set = writer->in_folder ? instance_find("gated")->buffer : rings;
	KEXPECT_EQ(t, put_here("buffer_size_kb", "8"), 0);
	for (unsigned int i = 0; writer->files[i].file; i++)
		KEXPECT_EQ(t,
			   put_here(writer->files[i].file,
				    writer->files[i].text),
			   0);
}

KTEST(writers_gates, "writers.nothing_behind_a_closed_gate")
{
	KNEED_CLIENT(t, "graph");
	KNEED_CLIENT(t, "events");
	KNEED_CLIENT(t, "latency");
	KNEED_CLIENT(t, "profiler");
	task_set_affinity(current_task(), 1u << cpu_index());
	for (unsigned int w = 0; w < ARRAY_SIZE(writers); w++) {
		writer = &writers[w];
		prepare_writer(t);
		for (unsigned int g = 0; g < ARRAY_SIZE(gates); g++)
			try_gate(t, &gates[g]);
		trace_test_size(RING_DEFAULT_KB);
		trace_test_reset();
		ctl_rmdir(TRACING "instances/gated", trace_test_error, 160);
	}
	task_set_affinity(current_task(), ~0u);
}
