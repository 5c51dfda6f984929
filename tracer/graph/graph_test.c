/* SPDX-License-Identifier: MIT */
/*
 * Proves of function_graph: that calls and returns come out as they were nested, with
 * times that fit into each other, that the counts add up, in the smallest ring and with
 * readers that take each other's entries away, and that a return is not recorded if the
 * buffer does not know its call.
 */
#include <tracer/testing.h>
#include <tracer/graph/graph.h>
#include <tracer/ring/ring_control.h>
#include <tracer/ring/ring_more.h>

#include <kernel/image/symbols.h>
#include <kernel/time.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/test/again.h>

#define TINY "8"

static int begin_graph(const char *filter)
{
	int err;

	trace_test_reset();
	err = trace_test_put("set_ftrace_filter", filter);
	return err ? err : trace_test_put("current_tracer", "function_graph");
}

static bool entry_is(const struct ring_entry *e, enum ring_graph graph,
		     const char *name, unsigned int depth)
{
	struct symbol s;

	return e && e->graph == graph && e->depth == depth &&
	       symbol_at(e->ip, &s) && !strcmp(s.name, name) &&
	       e->pid == current_task()->pid;
}

/* ---- Entries and returns ------------------------------------------------------- */

#define SPIN_NS (50 * NSEC_PER_USEC)

static notrace void spin_then_call(unsigned long x)
{
	u64 end = arch_clock() + ns_to_clock_delta(SPIN_NS);

	while ((s64)(arch_clock() - end) < 0)
		;
	victim_call(x);
}

/* A call's duration fits between its two events, and into its caller's duration. */
KTEST(graph_nesting, "graph.nesting_and_durations")
{
	static const char *const names[] = { "victim_callback", "victim_call" };
	struct ring_entry e[4] = { 0 };
	struct trace_iter *it;
	unsigned int n;

	KEXPECT_EQ(t, begin_graph("victim_callback victim_call"), 0);
	victim_callback(spin_then_call, 1);
	it = trace_iter_open(rings, cpus_present(), true);
	KASSERT(t, it);
	for (n = 0; n < 4 && trace_iter_peek(it); n++) {
		e[n] = *trace_iter_peek(it);
		trace_iter_next(it);
	}
	KEXPECT(t, !trace_iter_peek(it));
	trace_iter_close(it);
	for (unsigned int i = 0; i < 2; i++) {
		KEXPECT(t, entry_is(&e[i], RING_GRAPH_ENTRY, names[i], i));
		KEXPECT(t, entry_is(&e[3 - i], RING_GRAPH_RETURN, names[i], i));
		KEXPECT(t, e[3 - i].ticks <= e[3 - i].clock - e[i].clock);
	}
	KEXPECT(t, e[3].ticks > 0 && e[3].ticks >= e[2].ticks);
	KEXPECT(t, clock_delta_to_ns(e[3].ticks) >= SPIN_NS);
	trace_test_reset();
}

/* A call that makes no traced call is one line, and counts as two entries. */
KTEST(graph_leaf, "graph.leaf_is_entry_and_return")
{
	struct trace_iter *it;
	struct ring_stats s;

	KEXPECT_EQ(t, begin_graph("victim_outer victim_call"), 0);
	preempt_disable(); /* a leaf returns on the CPU that called it */
	victim_outer(1);
	preempt_enable();
	it = trace_iter_open(rings, cpus_present(), true);
	KASSERT(t, it);
	KEXPECT(t, entry_is(trace_iter_peek_line(it), RING_GRAPH_ENTRY,
			    "victim_outer", 0));
	KEXPECT(t, trace_iter_consume(it));
	KEXPECT(t, entry_is(trace_iter_peek_line(it), RING_GRAPH_LEAF,
			    "victim_call", 1));
	KEXPECT(t, trace_iter_consume(it));
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.read, 3);
	KEXPECT(t, entry_is(trace_iter_peek_line(it), RING_GRAPH_RETURN,
			    "victim_outer", 0));
	trace_iter_next(it);
	KEXPECT(t, !trace_iter_peek_line(it));
	trace_iter_close(it);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.held, 1);
	trace_test_reset();
}

/* Another reader takes the entry and leaves the return. */
KTEST(graph_part, "graph.leaf_taken_apart")
{
	struct trace_iter *one, *other;
	struct ring_stats s;

	KEXPECT_EQ(t, begin_graph("victim_call"), 0);
	preempt_disable(); /* a leaf returns on the CPU that called it */
	victim_call(1);
	preempt_enable();
	one = trace_iter_open(rings, cpus_present(), true);
	other = trace_iter_open(rings, cpus_present(), true);
	KASSERT(t, one && other);
	KEXPECT(t, entry_is(trace_iter_peek_line(one), RING_GRAPH_LEAF,
			    "victim_call", 0));
	KEXPECT(t, trace_iter_peek(other) && trace_iter_consume(other));
	KEXPECT(t, !trace_iter_consume(one));
	KEXPECT(t, entry_is(trace_iter_peek_line(one), RING_GRAPH_RETURN,
			    "victim_call", 0));
	KEXPECT(t, trace_iter_consume(one));
	KEXPECT(t, trace_iter_peek(other) && !trace_iter_consume(other));
	trace_iter_close(one);
	trace_iter_close(other);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.read, 2);
	trace_test_reset();
}

/* ---- Books ------------------------------------------------------------------ */

struct reader {
	struct task *task;
	u64 read;
};

static void read_graph_on(void *arg)
{
	struct trace_iter *it = trace_iter_open(rings, cpus_present(), false);
	const struct ring_entry *e;
	struct reader *r = arg;

	while (it && !task_should_stop()) {
		e = trace_iter_peek_line(it);
		if (!e) {
			arch_cpu_relax();
			sched_yield();
		} else {
			u64 n = e->graph == RING_GRAPH_LEAF ? 2 : 1;

			r->read += trace_iter_consume(it) ? n : 0;
		}
	}
	trace_iter_close(it);
}

/* How many entries are left. A leaf counts as two. */
static u64 count_entries_left(void)
{
	struct trace_iter *it = trace_iter_open(rings, cpus_present(), true);
	const struct ring_entry *e;
	u64 n = 0;

	while (it && (e = trace_iter_peek_line(it))) {
		n += e->graph == RING_GRAPH_LEAF ? 2 : 1;
		trace_iter_next(it);
	}
	trace_iter_close(it);
	return n;
}

/* Every call is two entries, however often the ring has been overwritten. */
KTEST(graph_books, "graph.books_add_up")
{
	unsigned long kb = ring_kb(rings, 0), calls;
	struct reader readers[2] = { 0 };
	struct trace_worker *w = trace_workers;
	struct ring_stats s;

	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", TINY), 0);
	KEXPECT_EQ(t, begin_graph("victim_call"), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(readers); i++)
		readers[i].task =
			task_create("reader", PRIO_LOW, cpus_present(),
				    read_graph_on, &readers[i]);
	KEXPECT(t, trace_workers_start(w, 5000));
	calls = trace_workers_join(w);
	for (unsigned int i = 0; i < ARRAY_SIZE(readers); i++) {
		task_stop(readers[i].task);
		task_join(readers[i].task);
	}
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, 2 * calls);
	KEXPECT_EQ(t, s.read, readers[0].read + readers[1].read);
	KEXPECT_EQ(t, count_entries_left(), s.held);
	trace_test_put("trace", "");
	for (unsigned int i = 0; i < 1000; i++)
		victim_call(i);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, 2000);
	KEXPECT(t, s.overwritten > 0);
	KEXPECT_EQ(t, count_entries_left(), s.held);
	trace_test_reset();
	trace_test_size(kb);
}

/* ---- Returns that come too late --------------------------------------------- */

static void turn_off(unsigned long x)
{
	(void)x;
	trace_test_put("tracing_on", "0");
}

static void clear_trace(unsigned long x)
{
	(void)x;
	trace_test_put("trace", "");
}

static void select_nop(unsigned long x)
{
	(void)x;
	trace_test_put("current_tracer", "nop");
}

static void select_function(unsigned long x)
{
	(void)x;
	trace_test_put("current_tracer", "function");
}

static void select_again(unsigned long x)
{
	trace_test_put("current_tracer", "nop");
	trace_test_put("current_tracer", "function_graph");
	victim_other(x);
}

static void turn_off_and_on(unsigned long x)
{
	turn_off(x);
	victim_other(x);
	trace_test_put("tracing_on", "1");
}

/* How many entries victim_callback(fn) leaves in the buffer under function_graph. */
static u64 entries_after(struct ktest_run *t, void (*fn)(unsigned long x))
{
	u32 depth = current_task()->nr_returns;
	struct ring_stats s;

	KEXPECT_EQ(t, begin_graph("victim_callback victim_other"), 0);
	KEXPECT_EQ(t, victim_callback(fn, 7), 8);
	KEXPECT_EQ(t, current_task()->nr_returns, depth);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.held, s.written);
	return s.held;
}

KTEST(graph_late, "graph.late_returns")
{
	struct ring_stats s;

	KEXPECT_EQ(t, entries_after(t, turn_off), 1);
	KEXPECT_EQ(t, entries_after(t, clear_trace), 0);
	KEXPECT_EQ(t, entries_after(t, select_nop), 0);
	KEXPECT_EQ(t, entries_after(t, select_function), 0);
	/*
	 * Selects another tracer, under which the sites stay on, then function_graph
	 * again.
	 */
	victim_other(1);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.held, 1);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function_graph"), 0);
	victim_other(1);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.held, 2);
	/* First only victim_other() is in the buffer, then only victim_callback(). */
	KEXPECT_EQ(t, entries_after(t, select_again), 2);
	KEXPECT_EQ(t, entries_after(t, turn_off_and_on), 2);
	trace_test_reset();
}

/*
 * Call C code as a trampoline would: with ops that it has loaded before another tracer was
 * selected, and a parent that is no return address. Where the function's frame would be lies an
 * array, which has to stay as it is.
 */
static u32 changed_by(unsigned long ip, unsigned long parent,
		      struct trace_ops *ops)
{
	struct task *me = current_task();
	u32 depth = me->nr_returns, shown = me->graph_depth, wrong = 0;
	unsigned long frame[128] = { 0 };
	struct ring_stats s;

	trace_test_put("trace", "");
	trace_take_return(ip, parent, ops, (unsigned long)&frame[16]);
	wrong += me->nr_returns != depth;
	me->nr_returns = depth;
	me->graph_depth = shown;
	for (unsigned int i = 0; i < ARRAY_SIZE(frame); i++)
		wrong += frame[i] != 0;
	return wrong + !trace_test_books(&s) + s.held;
}

KTEST(graph_refuses, "graph.refuses")
{
	unsigned long ip, text = (unsigned long)_text;
	struct trace_ops *ops;

	KEXPECT_EQ(t, begin_graph("victim_call"), 0);
	victim_call(1); /* its frame is known now */
	ip = site_address(trace_test_site(victim_call)) +
	     trace_test_site_length;
	ops = trace_ops;
	KEXPECT_EQ(t, changed_by(ip, (unsigned long)&ip, ops), 0);
	KEXPECT(t, changed_by(ip, text, ops) > 0);
	trace_test_put("current_tracer", "function");
	KEXPECT_EQ(t, changed_by(ip, text, ops), 0);
	trace_test_reset();
}

/* ---- Which functions, which CPUs -------------------------------------------- */

static u64 entries_of_outer(void)
{
	struct ring_stats s;

	trace_test_put("trace", "");
	victim_outer(1);
	return trace_test_books(&s) ? s.held : ~0ull;
}

KTEST(graph_filters, "graph.filters_and_cpus")
{
	struct trace_worker *w = trace_workers;
	struct ring_stats s;

	KEXPECT_EQ(t, begin_graph("victim_*"), 0);
	KEXPECT_EQ(t, entries_of_outer(), 4);
	trace_test_put("set_ftrace_notrace", "victim_call");
	KEXPECT_EQ(t, entries_of_outer(), 2);
	trace_test_put("set_ftrace_notrace", "");
	trace_test_put("set_ftrace_filter", "victim_other");
	KEXPECT_EQ(t, entries_of_outer(), 0);
	trace_test_put("set_ftrace_filter", "victim_call");
	KEXPECT_EQ(t, entries_of_outer(), 2);
	trace_test_put("trace", "");
	trace_test_put("tracing_cpumask", "1");
	KASSERT(t, trace_workers_start(w, 100));
	trace_workers_join(w);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, 200);
	trace_test_reset();
}

/* victim_outer() calls victim_call(). This calls both, and victim_other() behind them. */
static notrace void call_outer_and_other(unsigned long x)
{
	victim_outer(x);
	victim_other(x);
}

/* Entries and returns that victim_callback(inner) leaves. */
static u64 entries_of_callback(void)
{
	struct ring_stats s;

	trace_test_put("trace", "");
	victim_callback(call_outer_and_other, 1);
	return trace_test_books(&s) ? s.held : ~0ull;
}

/* Whether the return of spin_then_call()'s caller, which takes SPIN_NS, is recorded alone. */
static bool only_spin_is_long(void)
{
	struct trace_iter *it;
	bool alone = false;

	trace_test_put("trace", "");
	victim_callback(spin_then_call, 1);
	it = trace_iter_open(rings, cpus_present(), true);
	if (!it)
		return false;
	if (entry_is(trace_iter_peek(it), RING_GRAPH_RETURN, "victim_callback",
		     0)) {
		trace_iter_next(it);
		alone = !trace_iter_peek(it);
	}
	trace_iter_close(it);
	return alone;
}

KTEST(graph_limits, "graph.limits")
{
	struct ring_stats s;
	int tries = 0;

	KEXPECT_EQ(t, begin_graph("victim_*"), 0);
	KEXPECT_EQ(t, entries_of_callback(), 8);
	KEXPECT_EQ(t, trace_test_put("set_graph_function", "victim_outer"), 0);
	KEXPECT_EQ(t, entries_of_callback(), 4);
	victim_call(1); /* by itself it is not asked for */
	KEXPECT(t, trace_test_books(&s) && s.held == 4);
	KEXPECT_EQ(t, trace_test_add("set_graph_function", "victim_o*"), 0);
	KEXPECT_EQ(t, entries_of_callback(), 6);
	KEXPECT_EQ(t, trace_test_put("set_graph_function", "nosuch"), -EINVAL);
	KEXPECT_EQ(t, entries_of_callback(), 6);
	KEXPECT_EQ(t, trace_test_put("set_graph_function", ""), 0);
	/* victim_outer(), and the calls that it makes, are hidden. Later calls are not. */
	KEXPECT_EQ(t, trace_test_put("set_graph_notrace", "victim_outer"), 0);
	KEXPECT_EQ(t, entries_of_callback(), 4);
	KEXPECT_EQ(t, trace_test_put("set_graph_notrace", ""), 0);
	KEXPECT_EQ(t, trace_test_put("max_graph_depth", "2"), 0);
	KEXPECT_EQ(t, entries_of_callback(), 6);
	KEXPECT_EQ(t, trace_test_put("max_graph_depth", "1"), 0);
	KEXPECT_EQ(t, entries_of_callback(), 2);
	KEXPECT_EQ(t, trace_test_put("max_graph_depth", "deep"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("max_graph_depth", "0"), 0);
	KEXPECT_EQ(t, entries_of_callback(), 8);
	KEXPECT_EQ(t, trace_test_put("tracing_thresh", "40"), 0);
	/* victim_call(), which spin_then_call() calls, takes as long only if the host stops
	 * the guest. */
	while (!only_spin_is_long() && ++tries < 100)
		;
	KEXPECT(t, tries < 100);
	KEXPECT_EQ(t, trace_test_put("tracing_thresh", "-1"), -EINVAL);
	trace_test_reset();
	KEXPECT(t, !graph_limits.any);
}

/* The tracer's own calls are counted as dropped, and return as they should. */
KTEST(graph_recursion, "graph.recursion_is_counted")
{
	struct ring_stats s;
	irq_state_t state;

	KEXPECT_EQ(t, begin_graph("victim_*"), 0);
	KASSERT(t, ring_enter(&state));
	KEXPECT_EQ(t, victim_outer(1), 5);
	ring_leave(state);
	KEXPECT_EQ(t, victim_outer(1), 5);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.dropped, 2);
	KEXPECT_EQ(t, s.held, 4);
	trace_test_reset();
}

/* ---- Files ------------------------------------------------------------------ */

/* Chunks of any size give the same bytes, and trace_pipe shows the same as trace. */
KTEST(graph_files, "graph.trace_and_trace_pipe")
{
	char *one = kmalloc(4096), *two = kmalloc(4096), *body;

	KASSERT(t, one && two);
	KEXPECT_EQ(t, begin_graph("victim_outer victim_call"), 0);
	victim_outer(1);
	ring_mark(rings, "a note", 6);
	victim_outer(2);
	trace_test_put("tracing_on", "0");
	KEXPECT(t, trace_test_read("trace", one, 4096, 4096) > 0);
	KEXPECT(t, trace_test_read("trace", two, 4096, 7) > 0);
	KEXPECT(t, !strcmp(one, two));
	body = strchr(one, '|');
	body = body ? strstr(body, "   |   |   |\n") : NULL;
	KASSERT(t, body);
	body += strlen("   |   |   |\n");
	KEXPECT(t, strstr(body, "|  victim_outer() {\n"));
	KEXPECT(t, strstr(body, "|    victim_call();\n"));
	KEXPECT(t, strstr(body, "|  /* a note */\n"));
	KEXPECT(t, trace_test_read("trace_pipe", two, 4096, 5) > 0);
	KEXPECT(t, !strcmp(body, two));
	kfree(one);
	kfree(two);
	trace_test_reset();
}
