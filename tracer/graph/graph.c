/*
 * The tracer function_graph: an entry in the ring when a function is called and
 * another when it returns, with how long that took. The trampolines write most of them
 * (arch/arch_trace.h). What is left to this file: a full page, limits, other users of
 * the same calls, an NMI.
 */
#include <tracer/ring/ring_internal.h>
#include <tracer/graph/graph.h>
#include <tracer/graph/returns.h>
#include <tracer/filter.h>
#include <tracer/options.h>
#include <tracer/sites/sites.h>
#include <tracer/tracer.h>

#include <kernel/cpu/cpu.h>
#include <kernel/irq.h>
#include <kernel/lock/mutex.h>
#include <kernel/patch_path.h>

static_assert(TASK_RETURNS <= RING_TYPES, "every depth has its parent");
static_assert(TASK_RETURNS <= 1 << RING_DEPTH_BITS, "and its return");

struct graph_limits graph_limits;

void graph_limits_changed(void)
{
	mutex_assert_held(&trace_mutex);
	WRITE_ONCE(graph_limits.any,
		   graph_limits.depth || graph_limits.thresh ||
			   filter_graph.count || filter_graph_hidden.count ||
			   !trace_option(OPT_GRAPH_IRQS));
	trace_refresh();
}

enum verdict { RECORD, RECORD_RETURN, HIDE, LET_BE };

/* A filter that is just being written may be read half old, half new, for one call. */
static noinline enum verdict judge(const struct task *t,
				   const struct task_return *r)
{
	const u32 *hidden = READ_ONCE(site_bits.graph_hidden);
	const u32 *roots = READ_ONCE(site_bits.graph);
	int site = site_find(r->ip - arch_site_length);

	if (t->graph_hidden || site < 0)
		return LET_BE;
	if (!trace_option(OPT_GRAPH_IRQS) && in_interrupt())
		return LET_BE;
	if (hidden && site_test(hidden, site))
		return HIDE;
	if (roots && filter_graph.count && !t->graph_depth &&
	    !site_test(roots, site))
		return LET_BE;
	if (graph_limits.depth && t->graph_depth >= graph_limits.depth)
		return LET_BE;
	return graph_limits.thresh ? RECORD_RETURN : RECORD;
}

static u32 offset(unsigned long ip)
{
	return ip - (unsigned long)_text;
}

/*
 * The depth is not the count of taken returns: an interrupt that comes while a return
 * is being taken must not stand deeper in the graph than the calls that are in the
 * ring. Likewise its time counts for the call that the graph shows around it.
 *
 * Interrupts are off in between. A task that selects another tracer, or clears the
 * buffer, interrupts every CPU after it has changed trace_ops (tracer.c). So nothing
 * is written afterwards that the earlier tracer asked for.
 */
bool graph_record(struct task_return *r, bool irqs_off)
{
	struct task *t = current_task();
	enum verdict verdict = RECORD;
	bool taken = false;

	if (__builtin_expect(READ_ONCE(graph_limits.any), 0))
		verdict = judge(t, r);
	if (READ_ONCE(trace_ops) == r->ops && verdict != LET_BE)
		taken = verdict != RECORD ||
			ring_write(offset(r->ip), RING_ENTRY(t->graph_depth),
				   ring_context(irqs_off), NULL);
	if (verdict == HIDE)
		t->graph_hidden = taken;
	else
		t->graph_depth += taken;
	r->clock = verdict == HIDE ? RETURN_HIDDEN : arch_clock();
	return taken;
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
 * Tracing may have been switched off since the call, or have begun anew. Then the
 * ring does not have the call any more.
 */
void graph_leave(struct task_return *r, unsigned int depth)
{
	irq_state_t state = arch_irq_save();
	bool irqs_off = arch_irq_was_off(state);
	u64 ticks = arch_clock() - r->clock;
	struct ring_event took;

	(void)depth;
	if (r->clock == RETURN_HIDDEN) {
		current_task()->graph_hidden = false;
		arch_irq_restore(state);
		return;
	}
	took = (struct ring_event)RING_TOOK(ticks,
					    --current_task()->graph_depth,
					    current_task()->returns_missed);
	if (READ_ONCE(trace_ops) == r->ops && ticks >= graph_limits.thresh &&
	    (s64)(r->clock - rings[cpu_index()].began) >= 0)
		ring_write(RING_RETURN, offset(r->ip), ring_context(irqs_off),
			   &took);
	arch_irq_restore(state);
}
PATCH_INDIRECT(trace_returned, graph_leave);

void graph_switched(struct task *prev, struct task *next)
{
	bool counts = trace_option(OPT_SLEEP_TIME);
	u64 now = counts ? 0 : arch_clock();

	prev->left_at = now;
	if (next->left_at && !counts)
		returns_leave_out(next, next->nr_returns, now - next->left_at,
				  rings[cpu_index()].began);
	next->left_at = 0;
}

static struct trace_ops trace_ops_graph = {
	.entry = trace_entry_graph,
	.enter = graph_enter,
	.leave = graph_leave,
};

TRACER(function_graph, .name = "function_graph", .ops = &trace_ops_graph,
       .graph = true);
