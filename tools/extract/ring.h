/* SPDX-License-Identifier: MIT */
/*
 * One CPU's ring in a guest's memory, entry by entry. tracer/ring/ring.h describes it.
 */
#ifndef EXTRACT_RING_H
#define EXTRACT_RING_H

#include "trace.h"

/* Begin at the oldest page of the ring at an address. A ring that makes no sense is said on
 * stderr, and has no entries. */
void cursor_open(const struct trace *t, struct cursor *c, u64 ring);
/* Make c->entry the next one that is not consumed, unless there is one. False: none. */
bool cursor_peek(const struct trace *t, struct cursor *c);
/* The entry that cursor_peek() has found. The next look finds the next one. */
const struct trace_entry *cursor_take(struct cursor *c);
/* If the return of c->entry comes next in the page, take it as well: a GRAPH_LEAF. */
void cursor_join(const struct trace *t, struct cursor *c);

#endif
