/* SPDX-License-Identifier: MIT */
/*
 * The meaning of the slots of a page. A cursor walks a copy of the page, entry by entry.
 * ring_read.h has its way from page to page. tools/extract compiles this for the host.
 */
#ifndef TRACER_RING_DECODE_H
#define TRACER_RING_DECODE_H

#include <tracer/ring/ring.h>

/* The entries of function_graph. RING_GRAPH_LEAF is an entry and its return in one. */
enum ring_graph {
	RING_GRAPH_NONE,
	RING_GRAPH_ENTRY,
	RING_GRAPH_RETURN,
	RING_GRAPH_LEAF,
};

struct ring_entry {
	u64 clock;  /* arch_clock() */
	u64 number; /* of a ring whose clock counts entries, else 0 */
	unsigned int cpu;
	s32 pid;
	u32 context;		  /* as in arch/ring_event.h, 16 bits */
	unsigned long ip, parent; /* of a function event. ip 0: a marker */
	enum ring_graph graph;	  /* then parent is 0 */
	u32 depth;		  /* of graph events: calls further out */
	u64 ticks;		  /* arch_clock()'s, until it returned */
	u32 missed; /* calls of the task that were too deep, modulo 2^24 */
	u32 repeats; /* of a function event: it stands for so many, the last at: */
	u64 last;    /* arch_clock(), or a number */
	const char *text;   /* the marker's, not NUL-terminated */
	bool raw;	    /* of trace_marker_raw: a u32, and then any bytes */
	const u32 *stack;   /* or offsets from _text, the innermost first */
	unsigned int event; /* or the id of an event. 0: none */
	const void *record; /* of that event */
	u32 len;
};

/* By the ring's clock: a time, or a number. */
static inline u64 ring_when(const struct ring_entry *e)
{
	return e->number ?: e->clock;
}

/* Linux's common_flags, of a context as an entry of the ring has it (ring_context()). */
#define EVENT_IRQS_OFF 0x01
#define EVENT_RESCHED 0x04
#define EVENT_HARDIRQ 0x08
#define EVENT_NMI 0x40
static inline u8 event_common_flags(u32 context)
{
	return (context & RING_CONTEXT_IRQS_OFF ? EVENT_IRQS_OFF : 0) |
	       (context & PREEMPT_RESCHED ? EVENT_RESCHED : 0) |
	       (context & PREEMPT_IRQ_MASK ? EVENT_HARDIRQ : 0) |
	       (context & PREEMPT_NMI ? EVENT_NMI : 0);
}

struct ring_cursor {
	const struct ring *ring;
	unsigned int cpu;
	u32 seq;     /* page number */
	u32 copied;  /* slots of it in `copy` */
	u32 at;	     /* slot to decode next */
	u32 after;   /* slot after the entry in `entry`. 0: none is there */
	u32 first;   /* slot after the first of two that were joined */
	u32 entries; /* entries of the page up to `after` */
	u64 base, number;
	s32 pid;
	u64 position; /* entries since the last clear, up to here */
	u64 lost;     /* entries overwritten before the cursor reached them */
	bool fresh;   /* has not seen a page yet */
	bool locked;  /* between ring_cursor_begin() and _end() */
	bool bounded; /* ends where the ring ended at ring_cursor_open() */
	u32 end_seq, end_slots;
	struct ring_entry entry;
	struct ring_page *copy;
};

/* How many slots follow an entry's first, whose word 1 begins with ip. len: with which word 2
 * begins. */
static inline u32 ring_more_slots(u32 ip, u32 len)
{
	if (ip == RING_RETURN)
		return 1;
	return ip == RING_MARK || ip == RING_RAW || ip == RING_STACK ||
			       ip == RING_REPEATS || RING_IS_EVENT(ip) ?
		       RING_MORE_SLOTS(len) :
		       0;
}

/* Start on a page whose header has just been copied. */
void ring_decode_page(struct ring_cursor *c);
/* Decode the slot at c->at, and go behind it. True: it is an entry, and is in c->entry. */
bool ring_decode_slot(struct ring_cursor *c);

/*
 * If c->entry is a function's entry, and the next entry is the same task's return from it, make
 * them one RING_GRAPH_LEAF. That is passed or consumed as a whole, and counts as two. This looks
 * only at slots that have been copied, so it does not sleep.
 */
void ring_cursor_join(struct ring_cursor *c);
/* Go past c->entry, which stays in the ring. */
void ring_cursor_next(struct ring_cursor *c);

#endif
