/* SPDX-License-Identifier: MIT */
/* The tracer's own code that writes, entries that are no calls (markers, a call's stack, how often
 * it came again), and the numbers of entries. */
#ifndef TRACER_RING_MORE_H
#define TRACER_RING_MORE_H

#include <tracer/ring/ring.h>

/*
 * The tracer's own code that may call traced functions stands between these two. The
 * events that it causes on this CPU are dropped and counted, and interrupts are off.
 * ring_enter() returns false in an NMI, and when the CPU is between them already: the event
 * has been counted as dropped, and ring_leave() must not be called.
 */
bool ring_enter(irq_state_t *state);
void ring_leave(irq_state_t state);

/* A marker of at most RING_MARK_MAX bytes, RING_MARK or RING_RAW, into the rings of a set. 0.
 * -EBUSY: this CPU does not record. -ENOSPC: its ring is full, and keeps its entries. */
int ring_mark_as(struct ring *set, u32 type, const void *bytes, size_t len);

static inline int ring_mark(struct ring *set, const char *text, size_t len)
{
	return ring_mark_as(set, RING_MARK, text, len);
}

/*
 * Context of the other two: interrupts off. irqs_off: they were before. No site.
 */

/* Record in an instance the calls that led to the site which returns to ip, innermost first.
 * behind: begin with the caller of the function that ip is in. */
void ring_stack(const struct trace_instance *in, unsigned long ip, bool behind,
		bool irqs_off);

/*
 * For option func-no-repeats: the running task has called a function. True: the same call was
 * this CPU's last entry of a call, so it is only counted. False: it is another, or the count is
 * full. If calls were counted before it, an entry says how many.
 */
bool ring_repeats(unsigned long ip, unsigned long parent, bool irqs_off);

/* trace_clock counter: count `more` entries, of all instances, and return the last one's number.
 * Any context but NMI. */
u64 ring_count(unsigned int more);

#endif
