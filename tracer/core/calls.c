/* SPDX-License-Identifier: MIT */
/* Calls that C code sees: calls.h. */
#include <tracer/core/calls.h>

#include <kernel/cpu/cpu.h>
#include <kernel/lock/mutex.h>
#include <kernel/patch_path.h>
#include <kernel/sched/task.h>
#include <tracer/core/filter.h>
#include <tracer/ops/returns.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/ring/ring_more.h>
#include <tracer/sites/sites.h>
#include <tracer/core/options.h>
#include <tracer/core/client.h>
#include <tracer/core/triggers.h>

/* The work of a call that precedes its entry in the ring. */
static always_inline struct seen_call begin_call(unsigned long ip,
						 unsigned long parent)
{
	irq_state_t state = arch_irq_save();
	struct seen_call c = {
		.state = state,
		.irqs_off = arch_irq_was_off(state),
		.site = site_find(ip - arch_site_length),
	};

	if (c.site < 0)
		return c;
	if (READ_ONCE(clients_call_hook))
		clients_called(c.site, ip);
	c.triggers = triggers_before(c.site);
	c.recorded = instance_takes(&trace_top, c.site);
	instances_call(c.site, ip, parent, c.irqs_off);
	return c;
}

static always_inline bool record_in_ring(unsigned long ip, unsigned long parent,
					 bool irqs_off)
{
	return ring_write(ip - (unsigned long)_text,
			  parent - (unsigned long)_text, ring_context(irqs_off),
			  NULL);
}

/* The work that follows the entry. */
static always_inline void finish_call(const struct seen_call *c)
{
	if (c->triggers)
		triggers_after(c->triggers, c->irqs_off);
}

static void function_called(unsigned long ip, unsigned long parent,
			    struct trace_ops *ops);
static struct trace_ops call_ops = { .entry = trace_entry_call,
				     .func = function_called };
/* The same, where the tracer function records by itself the calls that no other client wants. */
static struct trace_ops choose_ops = { .entry = trace_entry_choose,
				       .func = function_called };

#define MORE_OF_A_CALL (1u << OPT_FUNC_STACK | 1u << OPT_FUNC_NO_REPEATS)

static noinline void record_more(unsigned long ip, unsigned long parent,
				 bool irqs_off)
{
	if (trace_option(OPT_FUNC_NO_REPEATS) &&
	    ring_repeats(ip, parent, irqs_off))
		return;
	if (record_in_ring(ip, parent, irqs_off) &&
	    trace_option(OPT_FUNC_STACK))
		ring_stack(&trace_top, ip, false, irqs_off);
}

/*
 * Record a call as the tracer function does, if that is the one that runs: a task may have loaded
 * its ops long before another tracer was selected.
 */
static always_inline void record_call(const struct seen_call *c,
				      unsigned long ip, unsigned long parent)
{
	const struct tracer *tracer = READ_ONCE(trace_top.tracer);

	if (!c->recorded || tracer->graph || !trace_wants(tracer))
		return;
	if (READ_ONCE(trace_top.options) & MORE_OF_A_CALL)
		record_more(ip, parent, c->irqs_off);
	else
		record_in_ring(ip, parent, c->irqs_off);
}

static void function_called(unsigned long ip, unsigned long parent,
			    struct trace_ops *ops)
{
	struct seen_call c = begin_call(ip, parent);

	(void)ops;
	record_call(&c, ip, parent);
	finish_call(&c);
	arch_irq_restore(c.state);
}
PATCH_INDIRECT(trace_entry_call, function_called);

void calls_begin(struct seen_call *c, unsigned long ip, unsigned long parent)
{
	*c = begin_call(ip, parent);
}

void calls_record(const struct seen_call *c, unsigned long ip,
		  unsigned long parent)
{
	record_call(c, ip, parent);
}

void calls_finish(const struct seen_call *c)
{
	finish_call(c);
}

/* ---- Which calls go to C ------------------------------------------------------
 *
 * Sites whose addresses differ by a multiple of 4 * TRACE_IN_C_BITS share a bit. A call that
 * goes to C without need is recorded all the same, but costs more. So bits are set before the
 * sites are on, and cleared when others are off.
 */
u32 trace_in_c[TRACE_IN_C_BITS / 32];

static u32 *in_c_word(u32 *map, unsigned int site, u32 *bit)
{
	unsigned long n = (site_address(site) + arch_site_length) / 4;

	*bit = 1u << n % 32;
	return &map[n / 32 % (TRACE_IN_C_BITS / 32)];
}

/* Set the bits of all calls that clients want, and clear the others? */
static void set_in_c(bool exact)
{
	u32 map[TRACE_IN_C_BITS / 32] = { 0 }, bit, *word;

	for (unsigned int w = 0; w < site_words; w++) {
		u32 want = calls_want(w);

		for (unsigned int i = 32 * w; want && i < site_count; i++) {
			word = in_c_word(map, i, &bit);
			if (want & 1)
				*word |= bit;
			want >>= 1;
		}
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(map); i++)
		WRITE_ONCE(trace_in_c[i],
			   exact ? map[i] : trace_in_c[i] | map[i]);
}

void calls_before_update(void)
{
	if (trace_ops == &choose_ops)
		set_in_c(false);
}

void calls_after_update(void)
{
	if (trace_ops == &choose_ops)
		set_in_c(true);
}

/* Can calls that no client wants be recorded by trace_entry_ring? */
static bool may_choose(const struct tracer *tracer)
{
	return trace_wants(tracer) == &trace_ops_ring && !triggers_any() &&
	       !(trace_top.options & MORE_OF_A_CALL);
}

void (*calls_entry(unsigned int site))(void)
{
	const struct trace_ops *ops = READ_ONCE(trace_ops);
	u32 bit, *word;

	mutex_assert_held(&trace_mutex);
	if (ops->entry != trace_entry_choose)
		return ops->entry;
	word = in_c_word(trace_in_c, site, &bit);
	return *word & bit ? trace_entry_call : trace_entry_ring;
}

/* ---- The work of trampolines -------------------------------------------------------- */

struct trace_ops *calls_ops(const struct tracer *tracer)
{
	const struct trace_ops *wanted = trace_wants(tracer);
	struct trace_ops *own = clients_ops();

	clients_hook_calls();
	if (own)
		return own;
	if (!(clients_need() & NEED_CALLS) && !instances_trace() &&
	    !(wanted == &trace_ops_ring &&
	      (trace_top.options & MORE_OF_A_CALL)))
		return NULL;
	if (may_choose(tracer)) {
		if (trace_ops != &choose_ops)
			set_in_c(true);
		return &choose_ops;
	}
	return tracer->c_ops ?: &call_ops;
}

bool calls_all_in_c(const struct trace_ops *ops)
{
	return ops && ops != &choose_ops;
}

unsigned int calls_users(unsigned int site)
{
	return instances_users(site) + clients_users(site) +
	       (trace_wants(trace_top.tracer) &&
		instance_takes(&trace_top, site));
}

u32 calls_want(unsigned int w)
{
	return clients_want(w) | instances_want(w);
}
