/* SPDX-License-Identifier: MIT */
/* All that a buffer holds, as `trace` shows it. tools/extract compiles this, too. */
#ifndef TRACER_LISTING_H
#define TRACER_LISTING_H

#include <tracer/show/output.h>

/*
 * The header, and an iteration that begins now, in place of *it: counted first, so that entries
 * which are written from now on are not announced. 1 or -ENOMEM. Context of all: a task that may
 * sleep.
 */
int listing_head(struct trace_iter **it, struct seq *s);
/* The next entry, with all that stands before its line. 1. 0: there are no more. */
int listing_entry(struct trace_iter *it, struct seq *s);
/* A line that says how many entries of the CPU were lost, if any were. */
void listing_lost(struct seq *s, unsigned int cpu, u64 lost);

#endif
