/* SPDX-License-Identifier: MIT */
/* The format in which the latency tracers show a buffer. Others, with option latency-format. */
#ifndef TRACER_OUTPUT_LATENCY_H
#define TRACER_OUTPUT_LATENCY_H

#include <kernel/ctl/ctl.h>
#include <tracer/show/output.h>

/*
 * Note in a new iterator what this format needs, if it is in use. True: the iterator shows the
 * longest latency, and nothing else. Context: a task.
 */
bool latency_window(struct trace_iter *it);

/* The header, behind its first two lines. legend: with what explains latency_columns(). */
void latency_header(struct seq *s, const struct trace_iter *it, bool legend);
/* What stands before the event. */
void latency_columns(struct seq *s, struct trace_iter *it,
		     const struct ring_entry *e);
/* The line that was shown last, of an entry at `clock`, is marked if the next one comes long
 * after it. */
void latency_mark(struct seq *s, struct trace_iter *it, u64 clock);

#endif
