/* SPDX-License-Identifier: MIT */
/* Functions of ring.c for ring_control.c and tracers in C: on the ring's CPU,
 * interrupts off, the first three also for a CPU that is not online. */
#ifndef TRACER_RING_INTERNAL_H
#define TRACER_RING_INTERNAL_H

#include <arch/cpu_head.h>
#include <kernel/cpu/cpu.h>
#include <tracer/ring/ring.h>

/* Begin anew in r->pages: empty, counts 0. Page numbers go on, so that readers
 * see that theirs are below r->tail, and gone. */
void ring_restart(struct ring *r);

/*
 * Let the spare ring have r's pages, with all that they hold and the counts, and begin anew in the
 * spare's pages. Both have as many. The spare's old entries are gone.
 */
void ring_exchange(struct ring *r, struct ring *spare);

/* Take a page from its readers, and settle the books for the entries that it held. On the ring's
 * CPU, interrupts off. */
void ring_take_page_back(struct ring *r, struct ring_page *p);

/* Empty a spare ring. Any CPU. */
void ring_forget(struct ring *spare);

/* ring_mode or r->busy may have changed. */
void ring_reopen(const struct ring *r);

/* Record, or stop recording, while that task runs. Its calls are recorded or not. */
void ring_switch(struct ring *r, s32 pid, bool on, bool traced);

/*
 * Write an entry: ip and parent as in arch/ring_event.h, 24 bits each, and a
 * second slot if there is one (else NULL). False: not recorded. From an NMI, or in
 * the middle of the tracer's code, counted as dropped. *clock: arch_clock() when it
 * happened, or RING_NOW. It becomes the time that the entry has. No site.
 */
#define RING_NOW                                                               \
	0ull /* the ring reads the clock itself, no entry has this time */
bool ring_write_at(u32 ip, u32 parent, u32 context,
		   const struct ring_event *more, u64 *clock);
static inline bool ring_write(u32 ip, u32 parent, u32 context,
			      const struct ring_event *more)
{
	u64 clock = RING_NOW;

	return ring_write_at(ip, parent, context, more, &clock);
}

/* Asked where triggers may just have changed tracing_on: does the ring record now? */
bool ring_is_on(const struct ring *r);
/* Asked where pids are listed, too: does it record calls of the task that runs? */
bool ring_takes_calls(const struct ring *r);

/* Write an entry that bytes follow: RING_MARK, RING_STACK, RING_REPEATS. 0 or -ENOSPC. The CPU
 * is between ring_enter() and ring_leave(). */
int ring_put_bytes(struct ring *r, u32 type, u32 context, const void *bytes,
		   size_t len);

/* Write a call into a ring of this CPU, also if lists of pids let the trampolines pass the
 * running task over: another instance has lists of its own, and the latency tracers' calls are
 * notes. False: not recorded. In an NMI, and in the middle of the tracer's code, it is counted
 * as dropped. */
bool ring_put_call(struct ring *r, unsigned long ip, unsigned long parent,
		   u32 context);

/* The same with the record of an event, of size bytes. */
void ring_put_event(struct ring *r, unsigned int id, bool irqs_off,
		    const void *record, u32 size);
/* Is a record that ring_event_begin() returned in no ring, because of RING_APART? No site. */
bool ring_is_apart(const void *record);

/* preempt_count as the trampoline would record it. Interrupts off. */
static inline u32 ring_context(bool irqs_off)
{
	return arch_this_cpu()->head.preempt_count |
	       (irqs_off ? RING_CONTEXT_IRQS_OFF : 0);
}

#endif
