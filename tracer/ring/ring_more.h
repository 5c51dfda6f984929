/* Entries that say more of a call than that it happened: its stack; how often it came again. */
#ifndef TRACER_RING_MORE_H
#define TRACER_RING_MORE_H

#include <kernel/types.h>

struct trace_instance;

/*
 * Context of both: interrupts off. irqs_off: they were before. No site.
 */

/* Record in an instance the calls that led to the site which returns to ip, innermost first.
 * behind: begin with the caller of the function that ip is in. */
void ring_stack(const struct trace_instance *in, unsigned long ip, bool behind,
		bool irqs_off);

/*
 * For option func-no-repeats: the running task has called a function. True: the same call was
 * this CPU's last entry of a call, so it is only counted. False: it is another, or the count is
 * full; if calls were counted before it, an entry says how many.
 */
bool ring_repeats(unsigned long ip, unsigned long parent, bool irqs_off);

#endif
