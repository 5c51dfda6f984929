/*
 * The tracer function_graph: an entry in the ring when a function is called and
 * another when it returns, with how long that took. What it does while it records
 * is not in the time of the function, but in that of its callers.
 */
#include <tracer/ring/ring_internal.h>
#include <tracer/graph/returns.h>
#include <tracer/tracer.h>

#include <kernel/cpu/cpu.h>
#include <kernel/patch_path.h>
#include <kernel/image/symbols.h>

static_assert(TASK_RETURNS <= RING_TYPES, "every depth has its parent");

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
static bool graph_enter(struct task_return *r, unsigned int depth)
{
	bool irqs_off = arch_irqs_off(), written;
	irq_state_t state = arch_irq_save();
	struct task *t = current_task();

	(void)depth;
	written = READ_ONCE(trace_ops) == r->ops &&
		  ring_write(offset(r->ip), RING_ENTRY(t->graph_depth),
			     ring_context(irqs_off), NULL);
	t->graph_depth += written;
	r->clock = arch_clock();
	arch_irq_restore(state);
	return written;
}
PATCH_ROOT(graph_enter);

/*
 * Tracing may have been switched off since the call, or have begun anew. Then the
 * ring does not have the call any more.
 */
static void graph_leave(struct task_return *r, unsigned int depth)
{
	bool irqs_off = arch_irqs_off();
	irq_state_t state = arch_irq_save();
	u64 ticks = arch_clock() - r->clock;
	struct ring_event took =
		RING_TOOK(ticks, --current_task()->graph_depth);

	(void)depth;
	if (READ_ONCE(trace_ops) == r->ops &&
	    (s64)(r->clock - rings[cpu_index()].began) >= 0)
		ring_write(RING_RETURN, offset(r->ip), ring_context(irqs_off),
			   &took);
	arch_irq_restore(state);
}
PATCH_ROOT(graph_leave);

static struct trace_ops trace_ops_graph = {
	.entry = trace_entry_return,
	.enter = graph_enter,
	.leave = graph_leave,
};

TRACER(function_graph, .name = "function_graph", .ops = &trace_ops_graph,
       .graph = true);
