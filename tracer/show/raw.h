/* SPDX-License-Identifier: MIT */
/*
 * Linux's binary ring pages, made of nopl's compact entries while they are read. trace_pipe_raw
 * gives them to trace-cmd. events/header_page and events/header_event describe them
 * (Documentation/trace/ring-buffer-design.rst, include/linux/ring_buffer.h).
 */
#ifndef TRACER_RAW_H
#define TRACER_RAW_H

#include <kernel/mm/page.h>
#include <tracer/base/stored.h>
#include <tracer/ring/ring_read.h>

/* A page begins with the time of its first entry, and a long: how many bytes of data are valid, and
 * flags. */
#define RAW_HEAD (sizeof(u64) + STORED_LONG)
#define RAW_DATA (PAGE_SIZE - RAW_HEAD)
#define RAW_LOST                                                               \
	(1ul << 31) /* of commit: entries were lost before this page, */
#define RAW_LOST_COUNT                                                         \
	(1ul << 30) /* and a long behind the data says how many */

/*
 * Consume entries of the cursor's CPU into a page of PAGE_SIZE bytes, until it is full or
 * there are no more. Returns how many entries it has. 0: there is none now. Context: a task
 * that may sleep.
 */
unsigned int raw_page_fill(struct ring_cursor *c, void *page);

/* Of an entry's header, a u32: its type, and the time since the last one. */
#define RAW_TYPE_EXTEND 30 /* more of that time is in the next word */
#define RAW_TYPE_MAX                                                           \
	28 /* words. Longer data, of type 0, have their length in the next word */
#define RAW_DELTA_BITS 27

#endif
