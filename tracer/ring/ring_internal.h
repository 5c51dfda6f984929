/* What ring_control.c and tracers in C ask of ring.c: on the ring's CPU,
 * interrupts off; the first three also for a CPU that is not online. */
#ifndef TRACER_RING_INTERNAL_H
#define TRACER_RING_INTERNAL_H

#include <arch/cpu_head.h>
#include <tracer/ring/ring.h>

/* Begin anew in r->pages: empty, counts 0; page numbers go on, so that readers
 * see that theirs are gone. */
void ring_restart(struct ring *r, struct cpu_head *head);

/*
 * Let the spare ring have r's pages, with all that they hold and the counts, and begin anew
 * in the spare's pages. Both have as many. What the spare held is gone.
 */
void ring_exchange(struct ring *r, struct ring *spare, struct cpu_head *head);

/*
 * Take other pages, with the newest events of the old ones. r gets the array `pages` of nr,
 * in which pages that stay are exchanged for new ones. The caller frees all pages that
 * are in the old array then. What does not fit counts as overwritten.
 */
void ring_adopt(struct ring *r, struct cpu_head *head, struct ring_page **pages,
		u32 nr);

/* Empty a spare ring. Any CPU. */
void ring_forget(struct ring *spare);

/* Record, or stop recording. */
void ring_switch(struct ring *r, struct cpu_head *head, bool on);

/*
 * Write an entry: ip and parent as in arch/ring_event.h, 24 bits each, and a
 * second slot if there is one (else NULL). False: not recorded; from an NMI, or in
 * the middle of the tracer's code, counted as dropped. No site.
 */
bool ring_write(u32 ip, u32 parent, u32 context, const struct ring_event *more);

/* Record the calls that led to the site which returns to ip, innermost first. behind: begin
 * with the caller of the function that ip is in. */
void ring_stack(unsigned long ip, bool behind, bool irqs_off);

/* preempt_count as the trampoline would record it. Interrupts off. */
u32 ring_context(bool irqs_off);

#endif
