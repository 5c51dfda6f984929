/* SPDX-License-Identifier: MIT */
/*
 * The tracer function_graph: an entry in the ring when a function is called and another when it
 * returns, with how long that took. The trampolines write most of them (arch/arch_trace.h). This
 * file does the rest: a full page, limits, other users of the same calls, an NMI.
 */
#include <tracer/ring/ring_internal.h>
#include <tracer/graph/graph.h>
#include <tracer/ops/returns.h>
#include <tracer/core/calls.h>
#include <tracer/core/client.h>
#include <tracer/core/files_functions.h>
#include <tracer/core/filter.h>
#include <tracer/core/options.h>
#include <tracer/sites/sites.h>
#include <tracer/core/tracer.h>

#include <kernel/cpu/cpu.h>
#include <kernel/irq.h>
#include <kernel/lock/mutex.h>
#include <kernel/patch_path.h>

static_assert(TASK_RETURNS <= RING_TYPES, "every depth has its parent");
static_assert(TASK_RETURNS <= 1 << RING_DEPTH_BITS, "and its return");

struct graph_limits graph_limits;

static void graph_limits_changed(void)
{
	mutex_assert_held(&trace_mutex);
	WRITE_ONCE(graph_limits.any, graph_limits.depth || trace_thresh.ticks ||
					     filter_graph.count ||
					     filter_graph_hidden.count ||
					     !trace_option(OPT_GRAPH_IRQS));
	trace_refresh();
}

/* ---- Limits ------------------------------------------------------------------- */

enum verdict { RECORD, RECORD_RETURN, HIDE, LET_BE };

/*
 * Is the task still in its call number `place`, and that call's function in the filter whose bits
 * these are? While there are no limits, the call may have returned without C code, and another
 * one may have taken its place.
 */
static bool is_inside(const struct task *t, u32 place, const u32 *bits,
		      bool hidden)
{
	const struct task_return *r = &t->returns[place - 1];
	int site;

	if (!place || place >= t->nr_returns || !bits ||
	    (r->clock == RETURN_HIDDEN) != hidden)
		return false;
	site = site_find(r->ip - arch_site_length);
	return site >= 0 && site_test(bits, site);
}

/* A filter that is just being written may be read half old, half new, for one call. */
static noinline enum verdict judge_call(struct task *t,
					const struct task_return *r)
{
	const u32 *hidden = READ_ONCE(site_bits.graph_hidden);
	const u32 *roots = READ_ONCE(site_bits.graph);
	int site = site_find(r->ip - arch_site_length);

	if (site < 0 || is_inside(t, t->graph_hidden, hidden, true))
		return LET_BE;
	if (!trace_option(OPT_GRAPH_IRQS) && in_interrupt())
		return LET_BE;
	if (hidden && site_test(hidden, site))
		return HIDE;
	if (roots && filter_graph.count &&
	    !is_inside(t, t->graph_root, roots, false)) {
		if (!site_test(roots, site))
			return LET_BE;
		t->graph_root = t->nr_returns;
	}
	if (graph_limits.depth && t->graph_depth >= graph_limits.depth)
		return LET_BE;
	return trace_thresh.ticks ? RECORD_RETURN : RECORD;
}

static u32 text_offset(unsigned long ip)
{
	return ip - (unsigned long)_text;
}

/*
 * The depth is not the count of taken returns: an interrupt that comes while a return
 * is being taken must not stand deeper in the graph than the calls that are in the
 * ring. Likewise its time counts for the call that the graph shows around it.
 *
 * Interrupts are off in between. A task that selects another tracer, or clears the
 * buffer, interrupts every CPU after it has ended the session (tracer.c). So nothing
 * is written afterwards that the earlier tracer asked for.
 */
static bool graph_record(struct task_return *r, bool irqs_off)
{
	struct task *t = current_task();
	enum verdict verdict = RECORD;
	u64 clock = RING_NOW;

	if (!graph_session_runs(t))
		return false;
	if (__builtin_expect(READ_ONCE(graph_limits.any), 0))
		verdict = judge_call(t, r);
	if (verdict == LET_BE)
		return false;
	if (verdict == HIDE) {
		r->clock = RETURN_HIDDEN;
		t->graph_hidden = t->nr_returns;
		return true;
	}
	if (verdict == RECORD &&
	    !ring_write_at(text_offset(r->ip), RING_ENTRY(t->graph_depth),
			   ring_context(irqs_off), NULL, &clock))
		return false;
	/* To the tick: so readers know the return of the call, as the trampolines' ones. */
	r->clock = clock == RING_NOW ? arch_clock() : clock;
	t->graph_depth++;
	return true;
}

bool graph_enter(struct task_return *r, unsigned int depth)
{
	irq_state_t state = arch_irq_save();
	bool taken = graph_record(r, arch_irq_was_off(state));

	(void)depth;
	arch_irq_restore(state);
	return taken;
}
PATCH_INDIRECT(trace_take_return, graph_enter);

/*
 * Tracing may have been switched off since the call, or have begun anew. Then the ring does
 * not have the call any more. Other ops may do the work now: the session counts, not the ops.
 */
void graph_leave(struct task_return *r, unsigned int depth)
{
	irq_state_t state = arch_irq_save();
	bool irqs_off = arch_irq_was_off(state);
	u64 now = arch_clock(), ticks = now - r->clock;
	struct task *t = current_task();
	struct ring_event took;

	(void)depth;
	if (r->clock != RETURN_HIDDEN && graph_session_runs(t) &&
	    (s64)(r->clock - graph_session_began) >= 0) {
		took = (struct ring_event)RING_TOOK(ticks, --t->graph_depth,
						    t->returns_missed);
		if (ticks >= trace_thresh.ticks &&
		    (s64)(r->clock - rings[cpu_index()].began) >= 0)
			ring_write_at(RING_RETURN, text_offset(r->ip),
				      ring_context(irqs_off), &took, &now);
	}
	arch_irq_restore(state);
}
PATCH_INDIRECT(trace_returned, graph_leave);

/* While option sleep-time is 0, the time that a task was away is left out of its calls. */
static void graph_switched(struct task *prev, struct task *next, u64 away,
			   unsigned long hook_ip)
{
	(void)prev;
	(void)hook_ip;
	if (away && READ_ONCE(graph_session))
		returns_leave_out(next, next->nr_returns, away,
				  rings[cpu_index()].began);
}
PATCH_INDIRECT(clients_switched, graph_switched);

/* While C code must see the calls for other clients, too. */
static bool function_entered(struct task_return *r, unsigned int depth)
{
	struct seen_call c;
	bool taken;

	(void)depth;
	calls_begin(&c, r->ip, r->ret);
	taken = c.recorded && graph_record(r, c.irqs_off);
	calls_finish(&c);
	calls_end(&c);
	return taken;
}
PATCH_INDIRECT(trace_take_return, function_entered);

static struct trace_ops graph_c_ops = {
	.entry = trace_entry_return,
	.enter = function_entered,
	.leave = graph_leave,
};

static struct trace_ops trace_ops_graph = {
	.entry = trace_entry_graph,
	.enter = graph_enter,
	.leave = graph_leave,
};

TRACER(function_graph, .name = "function_graph", .ops = &trace_ops_graph,
       .c_ops = &graph_c_ops, .graph = true);

static u32 graph_need(void)
{
	return graph_limits.any ? NEED_C_FOR_RETURNS : 0;
}
TRACE_CLIENT(graph, .needs = graph_need,
	     .options_changed = graph_limits_changed,
	     .switched = graph_switched);

/* ---- Control files of the limits ------------------------------------------------ */

static void graph_depth_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "%u\n", READ_ONCE(graph_limits.depth));
}

static int graph_depth_write(struct ctl_handle *h, char *text)
{
	u64 v;
	int err = ctl_number(h, text, ~0u, "number of levels; 0 is all", &v);

	if (err)
		return err;
	WRITE_ONCE(graph_limits.depth, v);
	graph_limits_changed();
	return 0;
}
TRACE_FILE(max_graph_depth, .path = TRACING "max_graph_depth",
	   .show = graph_depth_show, .write = graph_depth_write,
	   .at_boot = "0");

FILTER_FILE(set_graph_function, &filter_graph);
FILTER_FILE(set_graph_notrace, &filter_graph_hidden);
