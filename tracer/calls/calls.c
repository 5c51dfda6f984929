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
	bool irqs_off = arch_irqs_off();
	irq_state_t state = arch_irq_save();
	int site = site_find(ip - arch_site_length);

	if (site >= 0) {
		stack_check(site, ip);
		triggers_before(site);
		if (ops == &call_ops && is_recorded(site))
			ring_write(ip - (unsigned long)_text,
				   parent - (unsigned long)_text,
				   ring_context(irqs_off), NULL);
		if (ops == &call_ops && is_recorded(site) &&
		    trace_option(OPT_FUNC_STACK))
			ring_stack(ip, false, irqs_off);
		triggers_after(site, irqs_off);
	}
	arch_irq_restore(state);
}
PATCH_ROOT(called);

static bool entered(struct task_return *r, unsigned int depth)
{
	bool irqs_off = arch_irqs_off(), taken = false;
	irq_state_t state = arch_irq_save();
	int site = site_find(r->ip - arch_site_length);

	(void)depth;
	if (site >= 0) {
		stack_check(site, r->ip);
		triggers_before(site);
		if (is_recorded(site))
			taken = graph_record(r, irqs_off);
		triggers_after(site, irqs_off);
	}
	arch_irq_restore(state);
	return taken;
}
PATCH_ROOT(entered);

static struct trace_ops graph_ops = {
	.entry = trace_entry_return,
	.enter = entered,
	.leave = graph_leave,
};

static bool profile_call(struct task_return *r, bool record)
{
	bool irqs_off = arch_irqs_off();
	irq_state_t state = arch_irq_save();
	int site = site_find(r->ip - arch_site_length);
	bool wanted = site >= 0 && is_recorded(site);

	if (site >= 0) {
		stack_check(site, r->ip);
		triggers_before(site);
		if (record && wanted)
			ring_write(r->ip - (unsigned long)_text,
				   r->ret - (unsigned long)_text,
				   ring_context(irqs_off), NULL);
		triggers_after(site, irqs_off);
	}
	r->clock = arch_clock();
	arch_irq_restore(state);
	return wanted;
}

static bool profiled(struct task_return *r, unsigned int depth)
{
	(void)depth;
	return profile_call(r, true);
}
PATCH_ROOT(profiled);

static bool profiled_quietly(struct task_return *r, unsigned int depth)
{
	(void)depth;
	return profile_call(r, false);
}
PATCH_ROOT(profiled_quietly);

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
	.enter = profiled_quietly,
	.leave = profile_leave,
};

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
