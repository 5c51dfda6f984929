/* SPDX-License-Identifier: MIT */
/*
 * Reading the trace buffer, from any task, while it is being written. A cursor walks
 * the events of one CPU, the oldest first. struct trace_iter (output.h) merges cursors
 * by time. A cursor works on a copy of one page, so what it shows has been in the ring
 * even if the writer has overwritten the page since.
 */
#ifndef TRACER_RING_READ_H
#define TRACER_RING_READ_H

#include <tracer/ring/ring.h>

/* What function_graph records. RING_GRAPH_LEAF is an entry and its return in one. */
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

struct ring_stats {
	u64 written, read, overwritten, dropped, held;
	u64 bytes; /* of what is held */
	u64 oldest; /* arch_clock() at which the oldest page begins, or its first number */
};

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

/*
 * Put a cursor at the oldest entry of set[cpu] that is not consumed. set is an instance's rings or
 * spares. bounded: the cursor ends at the entry that is the newest now, however fast
 * the writer goes on. 0 or -ENOMEM.
 * Context of all functions here, unless they say otherwise: a task that may sleep.
 */
int ring_cursor_open(struct ring_cursor *c, const struct ring *set,
		     unsigned int cpu, bool bounded);
void ring_cursor_close(struct ring_cursor *c);
/* Put it back to the oldest entry. It has no end any more. Any context. */
void ring_cursor_restart(struct ring_cursor *c);

/*
 * Around a loop that peeks at many entries or takes them: one lock for all, where each call has
 * one of its own otherwise. With every function traced, a lock for each entry makes more entries
 * than the loop takes.
 */
void ring_cursor_begin(struct ring_cursor *c);
void ring_cursor_end(struct ring_cursor *c);

/* Make c->entry the next entry. False: there is none now. Until ring_cursor_next() or
 * ring_cursor_take() it stays the same one. The CPU that panics may call this, too. */
bool ring_cursor_peek(struct ring_cursor *c);
/*
 * If c->entry is a function's entry, and the next entry is the same task's return from
 * it, make them one RING_GRAPH_LEAF. That is passed or consumed as a whole, and counts
 * as two. This looks only at what has been copied, so it does not sleep.
 */
void ring_cursor_join(struct ring_cursor *c);
/* Go past c->entry, which stays in the ring. */
void ring_cursor_next(struct ring_cursor *c);
/* How many pages, from that of c->entry on, the writer has filled. Call it after a peek. */
u32 ring_cursor_pages(struct ring_cursor *c);
/*
 * Consume c->entry. true: the caller has it, and it counts as read from now on. false:
 * another reader has consumed it, or the writer took the page back. Either way the
 * cursor goes past it.
 */
bool ring_cursor_take(struct ring_cursor *c);

/* One CPU's counts in a set. They are exact, because that CPU takes them between two
 * events. */
void ring_stats(const struct ring *set, unsigned int cpu, struct ring_stats *s);

#endif
