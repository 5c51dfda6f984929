/* SPDX-License-Identifier: MIT */
/*
 * The event that the entry trampolines write: three 32-bit words, 12 bytes.
 *   word 0  arch_clock() - head.ring.base, must fit
 *   word 1  (ip - _text) << 8     | preempt depth (preempt_count bits 0..7)
 *   word 2  (parent - _text) << 8 | flags: preempt_count bits 8..15 with bit 6
 *           of the byte (RING_IRQS_OFF) set if interrupts were off at the site
 * So text is smaller than 16 MiB less RING_TYPES. The linker script asserts
 * it. An ip offset of RING_TYPE(n) and above marks a slot that is not a
 * function event, a parent offset one whose return is recorded as well
 * (tracer/ring/ring_format.h). Of function_graph, trampolines write the call, whose
 * parent is RING_TYPE_ENTRY + the task's graph_depth, and mostly its return:
 *   word 1  as that of the call
 *   word 2  ticks since the call << 14 | graph_depth << 8 | flags | RING_RETURNED
 * C code writes a longer one where the call took RING_TICKS_END ticks or more, or
 * returns_missed is not 0.
 */
#ifndef ARCH_RING_EVENT_H
#define ARCH_RING_EVENT_H

#define RING_EVENT_SIZE 12
#define RING_IRQS_OFF 0x40	     /* in the flags byte */
#define RING_RETURNED 0x20	     /* likewise: a return, with its time */
#define RING_CONTEXT_IRQS_OFF 0x4000 /* the same bit in the 16-bit context */
#define RING_TYPES 256
#define RING_TYPE(n) (0x1000000 - RING_TYPES + (n))
#define RING_TYPE_END RING_TYPE(RING_TYPES)
#define RING_TYPE_ENTRY RING_TYPE(0)
#define RING_TICKS_BITS 18
#define RING_TICKS_END (1 << RING_TICKS_BITS)
#define RING_DEPTH_BITS 6

#ifndef __ASSEMBLER__
#include <kernel/types.h>
struct ring_event {
	u32 delta;
	u32 ip;
	u32 parent;
};
static_assert(sizeof(struct ring_event) == RING_EVENT_SIZE, "asm");
#endif
#endif
