/* SPDX-License-Identifier: MIT */
/*
 * Calls that C code must see before they are recorded, or instead: while there are triggers,
 * or while the stack tracer or the profiler runs. Else the trampolines record calls by themselves.
 */
#ifndef TRACER_CALLS_H
#define TRACER_CALLS_H

#include <kernel/cpu/cpu.h>
#include <kernel/types.h>
#include <tracer/core/tracer.h>

/* A call, while C code deals with it. Interrupts are off meanwhile. */
struct seen_call {
	irq_state_t state;
	bool irqs_off;			/* they were before */
	int site;			/* negative: none that is known */
	bool recorded;			/* the filters let it pass */
	const struct trigger *triggers; /* that come behind it, or NULL */
};

/*
 * For ops of a room above: the work before the call that returns to ip is recorded, recording it
 * as the tracer function does, if that one runs, and the work behind it. calls_end() gives the
 * interrupts back. No site.
 */
void calls_begin(struct seen_call *c, unsigned long ip, unsigned long parent);
void calls_record(const struct seen_call *c, unsigned long ip,
		  unsigned long parent);
void calls_finish(const struct seen_call *c);
static always_inline void calls_end(const struct seen_call *c)
{
	arch_irq_restore(c->state);
}

/* The ops that trampolines must use with this tracer. NULL: its own. And the sites of word w
 * that must be on for that. Context: trace_mutex held. */
struct trace_ops *calls_ops(const struct tracer *tracer);
u32 calls_want(unsigned int w);

/* Does C see every call with the ops that calls_ops() has returned? Then C alone may write the
 * ring. */
bool calls_all_in_c(const struct trace_ops *ops);

/* Before sites are switched as calls_want() says, and afterwards. Context: trace_mutex held. */
void calls_before_update(void);
void calls_after_update(void);

/* The trampoline that deals with calls of the site. Context: trace_mutex held. */
void (*calls_entry(unsigned int site))(void);

/* How many are told of a call of the site: the top level's tracer, other instances, triggers, the
 * stack tracer, the profiler. Context: trace_mutex held. */
unsigned int calls_users(unsigned int site);

#endif
