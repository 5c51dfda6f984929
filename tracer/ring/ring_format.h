/* SPDX-License-Identifier: MIT */
/*
 * The meaning of the numbers in a page of the trace buffer, beside arch/ring_event.h. Macros alone:
 * tools/extract, a program of the host, reads the pages by them, too.
 */
#ifndef TRACER_RING_FORMAT_H
#define TRACER_RING_FORMAT_H

#include <arch/ring_event.h>

/* parent: the pid. The byte behind the type: RING_STAYED, or 0. */
#define RING_TASK ((u32)RING_TYPE(0))
#define RING_STAYED                                                            \
	1u /* the task has run on no other CPU since it left this one */
#define RING_TIME                                                              \
	((u32)RING_TYPE(1)) /* delta and parent: new base, low and high */
/* delta and parent: the number, low and high, that a clock which counts entries gives the next one.
 * The ring has the time of each entry besides. */
#define RING_COUNT ((u32)RING_TYPE(9))
/* Behind RING_TIME, numbers are Linux's own of its entries. */
#define RING_SWITCH 2u
#define RING_WAKEUP 3u
#define RING_STATES "RSDTtXZ" /* of a task, Linux's letters */
#define RING_STACK                                                             \
	((u32)RING_TYPE(4)) /* as RING_MARK, u32 offsets from _text follow */
#define RING_MARK                                                              \
	((u32)RING_TYPE(5)) /* parent: length << 8 | flags, text follows */
#define RING_RETURN                                                            \
	((u32)RING_TYPE(10)) /* parent: the function, RING_TOOK() follows */
#define RING_RAW                                                               \
	((u32)RING_TYPE(18)) /* as RING_MARK, a u32 and any bytes follow */
#define RING_REPEATS                                                           \
	((u32)RING_TYPE(19)) /* as RING_MARK, a struct ring_repeats follows */
/* As RING_MARK. A record follows. id: RING_SWITCH and RING_WAKEUP, whose record is a struct
 * ring_switch, or an event's number, from RING_FIRST_EVENT on. */
#define RING_EVENT(id) ((u32)RING_TYPE(id))
#define RING_FIRST_EVENT 32
#define RING_IS_EVENT(ip)                                                      \
	((ip) >= RING_EVENT(RING_FIRST_EVENT) ||                               \
	 (ip) == RING_EVENT(RING_SWITCH) || (ip) == RING_EVENT(RING_WAKEUP))
/* The parent of a function event whose return will be recorded too. */
#define RING_ENTRY(depth) ((u32)RING_TYPE_ENTRY + (depth))
/* Of a return in one slot: the parts of its word 2. */
#define RING_RETURN_DEPTH(w2) ((w2) >> 8 & ((1u << RING_DEPTH_BITS) - 1))
#define RING_RETURN_TICKS(w2) ((w2) >> (8 + RING_DEPTH_BITS))
/* A longer one's second slot: ticks, the same depth, and how many calls of the task were too deep
 * to be recorded. */
#define RING_TOOK(ticks, depth, missed)                                        \
	{                                                                      \
		(u32)(ticks), (ticks) >> 32, (depth) | (missed) << 8           \
	}

#define RING_SLOTS 338 /* of a page */
#define RING_MORE_SLOTS(len) (((len) + RING_EVENT_SIZE - 1) / RING_EVENT_SIZE)

/*
 * page.state is one word of three parts: the page's generation (from its number seq), the slots
 * consumed, and the entries consumed. So a consumer can claim the slots that it has copied only if
 * the page is still the same one. A page that belongs to no ring has the generation RING_NOBODY. A
 * reader could be fooled only if it slept in the middle of a claim for 16383 turns of the page.
 */
#define RING_NOBODY 0x3fffu
#define RING_GEN(seq) ((seq) % RING_NOBODY)
#define RING_STATE(gen, slots, entries) ((gen) << 18 | (slots) << 9 | (entries))
#define RING_STATE_GEN(s) ((s) >> 18)
#define RING_STATE_SLOTS(s) ((s) >> 9 & 0x1ff)
#define RING_STATE_ENTRIES(s) ((s)&0x1ff)

#endif
