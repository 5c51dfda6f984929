/* SPDX-License-Identifier: MIT */
/* What control files that show a buffer as text have in common: trace and snapshot. */
#ifndef TRACER_FILES_BUFFER_H
#define TRACER_FILES_BUFFER_H

#include <kernel/ctl/ctl.h>
#include <tracer/ring/ring.h>

/*
 * For a reader of such a file: show what the rings of set hold, of the CPUs of mask. 0 or
 * -ENOMEM. While a reader of spare rings has them open, no snapshot is taken.
 * Context of all: a task that may sleep.
 */
int trace_show_open(struct ctl_handle *h, const struct ring *set,
		    cpumask_t mask);
/* Is there nothing to show? Before the first read. */
bool trace_show_is_empty(struct ctl_handle *h);
/* The header, and then an entry each time: ctl_file.read. */
int trace_show_read(struct ctl_handle *h, struct seq *s);
void trace_show_release(struct ctl_handle *h);

#endif
