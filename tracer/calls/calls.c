/* Calls that C code sees: calls.h. */
#include <tracer/calls/calls.h>

#include <kernel/cpu/cpu.h>
#include <kernel/lock/mutex.h>
#include <kernel/patch_path.h>
#include <kernel/sched/task.h>
#include <tracer/filter.h>
#include <tracer/graph/graph.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/sites/sites.h>
#include <tracer/options.h>
#include <tracer/calls/profile.h>
#include <tracer/calls/stack.h>
#include <tracer/calls/triggers.h>

/* Does the tracer record the site, or is it on for something else? */
static bool is_recorded(unsigned int site)
{
	return (!filter_trace.count || site_test(site_bits.filter, site)) &&
	       !site_test(site_bits.excluded, site);
}

/* A call, while C code deals with it. Interrupts are off meanwhile. */
struct call {
	irq_state_t state;
	bool irqs_off; /* they were before */
	int site;      /* negative: none that is known */
	bool recorded; /* the filters let it pass */
};

/* What comes before the call is recorded. */
static always_inline struct call begin(unsigned long ip)
{
	irq_state_t state = arch_irq_save();
	struct call c = {
		.state = state,
		.irqs_off = arch_irq_was_off(state),
		.site = site_find(ip - arch_site_length),
	};

	if (c.site < 0)
		return c;
	stack_check(c.site, ip);
	triggers_before(c.site);
	c.recorded = is_recorded(c.site);
	return c;
}

static always_inline void record(const struct call *c, unsigned long ip,
				 unsigned long parent)
{
	ring_write(ip - (unsigned long)_text, parent - (unsigned long)_text,
		   ring_context(c->irqs_off), NULL);
}

/* What comes behind it. */
static always_inline void finish(const struct call *c)
{
	if (c->site >= 0)
		triggers_after(c->site, c->irqs_off);
}

static void called(unsigned long ip, unsigned long parent,
		   struct trace_ops *ops);
static struct trace_ops call_ops = { .entry = trace_entry_call,
				     .func = called };
/* The same, for the tracer nop. */
static struct trace_ops quiet_ops = { .entry = trace_entry_call,
				      .func = called };

static void called(unsigned long ip, unsigned long parent,
		   struct trace_ops *ops)
{
	struct call c = begin(ip);

	if (c.recorded && ops == &call_ops) {
		record(&c, ip, parent);
		if (trace_option(OPT_FUNC_STACK))
			ring_stack(ip, false, c.irqs_off);
	}
	finish(&c);
	arch_irq_restore(c.state);
}
PATCH_ROOT(called);

static bool entered(struct task_return *r, unsigned int depth)
{
	struct call c = begin(r->ip);
	bool taken = c.recorded && graph_record(r, c.irqs_off);

	(void)depth;
	finish(&c);
	arch_irq_restore(c.state);
	return taken;
}
PATCH_ROOT(entered);

static struct trace_ops graph_ops = {
	.entry = trace_entry_return,
	.enter = entered,
	.leave = graph_leave,
};

static bool profiled(struct task_return *r, unsigned int depth);

static void profile_leave(struct task_return *r, unsigned int depth)
{
	irq_state_t state = arch_irq_save();

	(void)depth;
	profile_count(r);
	arch_irq_restore(state);
}
PATCH_ROOT(profile_leave);

/* While the profiler runs, with the tracer function and with nop. */
static struct trace_ops profile_ops = {
	.entry = trace_entry_return,
	.enter = profiled,
	.leave = profile_leave,
};
static struct trace_ops quiet_profile_ops = {
	.entry = trace_entry_return,
	.enter = profiled,
	.leave = profile_leave,
};

static bool profiled(struct task_return *r, unsigned int depth)
{
	struct call c = begin(r->ip);

	(void)depth;
	if (c.recorded && r->ops == &profile_ops)
		record(&c, r->ip, r->ret);
	finish(&c);
	r->clock = arch_clock();
	arch_irq_restore(c.state);
	return c.recorded;
}
PATCH_ROOT(profiled);

struct trace_ops *calls_ops(const struct tracer *tracer)
{
	bool wanted = trace_wants(tracer);

	if (profile_is_on())
		return wanted ? &profile_ops : &quiet_profile_ops;
	if (!triggers_any() && !stack_is_traced() &&
	    !(tracer->ops == &trace_ops_ring && trace_option(OPT_FUNC_STACK)))
		return NULL;
	return !wanted ? &quiet_ops : tracer->graph ? &graph_ops : &call_ops;
}

u32 calls_want(unsigned int w)
{
	return triggers_want(w) | stack_want(w) | profile_want(w);
}
