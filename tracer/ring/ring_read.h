/* SPDX-License-Identifier: MIT */
/*
 * Reading the trace buffer, from any task, while it is being written. A cursor walks the events of
 * one CPU, the oldest first. struct trace_iter (output.h) merges cursors by time. A cursor works on
 * a copy of one page, so the entries that it shows have been in the ring even if the writer has
 * overwritten the page since.
 */
#ifndef TRACER_RING_READ_H
#define TRACER_RING_READ_H

#include <tracer/ring/ring_decode.h>

struct ring_stats {
	u64 written, read, overwritten, dropped, held;
	u64 bytes; /* of the entries held */
	u64 oldest; /* arch_clock() at which the oldest page begins, or its first number */
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
