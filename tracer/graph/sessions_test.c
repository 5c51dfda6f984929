/* SPDX-License-Identifier: MIT */
/*
 * Proves that function_graph counts within one session: state that a task has kept from an earlier
 * one, or an idle task from before its CPU went away, hides none of its calls and shows none too
 * many.
 */
#include <tracer/testing.h>

#include <kernel/cpu/hotplug.h>
#include <kernel/image/symbols.h>
#include <kernel/time.h>
#include <tracer/ops/returns.h>
#include <tracer/ring/ring_read.h>
#include <kernel/test/again.h>

/* How many calls are in the buffer: of one function, or NULL: of all, by one task, or -1: by all,
 * on the CPUs of a mask. */
static u32 count_session_calls(const char *name, int pid, cpumask_t on)
{
	struct trace_iter *it = trace_iter_open(rings, on, true);
	const struct ring_entry *e;
	struct symbol s;
	u32 n = 0;

	for (; it && (e = trace_iter_peek(it)); trace_iter_next(it))
		n += e->graph == RING_GRAPH_ENTRY &&
		     (pid < 0 || e->pid == pid) &&
		     (!name || (symbol_at(e->ip, &s) && !strcmp(s.name, name)));
	trace_iter_close(it);
	return n;
}

/* This task's calls. */
static u32 own_calls(const char *name)
{
	return count_session_calls(name, current_task()->pid, cpus_present());
}

#define VICTIMS "victim_callback victim_outer victim_call victim_other"

/* Call fn from a function that function_graph records. */
static void call_inside(struct ktest_run *t, void (*fn)(unsigned long x))
{
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", VICTIMS), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function_graph"), 0);
	KEXPECT_EQ(t, victim_callback(fn, 1), 2);
	KEXPECT_EQ(t, trace_test_put("tracing_on", "0"), 0);
}

/* ---- Depths and roots ---- */

static notrace void restart_tracer(unsigned long x)
{
	trace_test_put("current_tracer", "nop");
	trace_test_put("current_tracer", "function_graph");
	victim_other(x);
	victim_outer(x);
}

KTEST(session_depth, "graph.session.max_graph_depth")
{
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("max_graph_depth", "1"), 0);
	call_inside(t, restart_tracer);
	KEXPECT_EQ(t, own_calls("victim_other"), 1);
	KEXPECT_EQ(t, own_calls("victim_outer"), 1);
	KEXPECT_EQ(t, own_calls("victim_call"), 0);
	trace_test_reset();
}

/* The call that was a root is none for the later session, which has not seen it begin. */
KTEST(session_root, "graph.session.set_graph_function")
{
	trace_test_reset();
	KEXPECT_EQ(t,
		   trace_test_put("set_graph_function",
				  "victim_callback victim_outer"),
		   0);
	call_inside(t, restart_tracer);
	KEXPECT_EQ(t, own_calls("victim_other"), 0);
	KEXPECT_EQ(t, own_calls("victim_outer"), 1);
	KEXPECT_EQ(t, own_calls("victim_call"), 1);
	trace_test_reset();
}

static notrace void narrow_graph(unsigned long x)
{
	trace_test_put("set_graph_function", "victim_outer");
	victim_other(x);
	victim_outer(x);
}

/* Nor is a call one that began before set_graph_function was written and is not in it. */
KTEST(session_narrowed, "graph.set_graph_function_inside_calls")
{
	trace_test_reset();
	call_inside(t, narrow_graph);
	KEXPECT_EQ(t, own_calls("victim_callback"), 1);
	KEXPECT_EQ(t, own_calls("victim_other"), 0);
	KEXPECT_EQ(t, own_calls("victim_outer"), 1);
	KEXPECT_EQ(t, own_calls("victim_call"), 1);
	trace_test_reset();
}

/* ---- Idle tasks ---- */

#define TRACES_SIZE                                                            \
	(offsetof(struct task, name) - offsetof(struct task, nr_returns))

static const char *traces_of(const struct task *task)
{
	return (const char *)&task->nr_returns;
}

static void end_new_task(void *arg)
{
	(void)arg;
}

/* Every byte that a task carries for the tracer, so also fields that are added later. */
KTEST(session_idle_bytes, "graph.idle_task_begins_as_a_fresh_one")
{
	unsigned int c = ktest_last_cpu();
	struct task *idle = cpus[c].idle, *fresh;
	u32 others = 0;

	KNEED_TWO(t);
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("set_graph_notrace", "cpu_idle_check"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function_graph"), 0);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT(t, idle->nr_returns && idle->graph_hidden);
	trace_test_reset();
	memset(&idle->nr_returns, 0x5a, TRACES_SIZE);
	KEXPECT_EQ(t, cpu_up(c), 0);
	fresh = task_create("fresh", PRIO_LOW, 1u << c, end_new_task, NULL);
	KASSERT(t, fresh);
	KEXPECT(t, KWAIT(READ_ONCE(fresh->state) == TASK_DEAD));
	for (size_t i = 0; i < TRACES_SIZE; i++)
		others += traces_of(idle)[i] != traces_of(fresh)[i];
	KEXPECT_EQ(t, others, 0);
	task_join(fresh);
}

/* An idle task parks inside a function that is hidden. When its CPU is back, it is not. */
KTEST(session_idle, "graph.idle_task_is_seen_again")
{
	unsigned int c = ktest_last_cpu();

	KNEED_TWO(t);
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("set_graph_notrace", "cpu_idle_check"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function_graph"), 0);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, trace_test_put("max_graph_depth", "20"), 0);
	KEXPECT_EQ(t, trace_test_put("set_graph_notrace", ""), 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT(t,
		KWAIT(count_session_calls("cpu_idle_check", 0, 1u << c) > 2));
	trace_test_reset();
}

static void end_at_once(void *arg)
{
	(void)arg;
}

/* A task's first function has no caller, so there is no return that could be refused. */
KTEST(graph_first_function, "graph.first_function_of_a_task")
{
	u32 refused = returns_refused;

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "task_start"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function_graph"), 0);
	KEXPECT_EQ(t,
		   task_join(task_create("first", PRIO_NORMAL, ~0u, end_at_once,
					 NULL)),
		   0);
	trace_test_reset();
	KEXPECT_EQ(t, returns_refused, refused);
}
