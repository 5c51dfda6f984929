/* SPDX-License-Identifier: MIT */
/*
 * Where live sites lead. The front end's site.h says which registers the site leaves
 * its return address and the function's in (IP, PARENT), which registers the paths through
 * C keep (save, restore), and the way back to the site. Free at every site: x10 to x17. No
 * code of this image names a vector register (port.mk), so q0 to q7 keep their values.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <arch/ring_event.h>
#include <arch/task_head.h>
#include <frame.h>
#include <regs.h>

#define FRAMES_KEPT_BITS 10
#define TRACE_IN_C_WORD_BITS 7
#include <site.h>

#if SAVE_SIZE - SAVE_LINK != LINK_BELOW
#error "frame.h has another place in mind"
#endif
#if FRAMES_KEPT != 1 << FRAMES_KEPT_BITS
#error "graph_frame takes as many bits of ip"
#endif
#if TRACE_IN_C_BITS != 32 << TRACE_IN_C_WORD_BITS
#error "trace_entry_choose takes as many bits of ip"
#endif
/* DAIF_I becomes RING_IRQS_OFF, and RING_CONTEXT_IRQS_OFF. */
#if DAIF_I >> 1 != RING_IRQS_OFF || DAIF_I << 7 != RING_CONTEXT_IRQS_OFF
#error "the bits of ring_event.h are elsewhere"
#endif

	.text
/* The stub of -pg, called through x30, behind the prologue. */
	.globl	_mcount
	.type	_mcount, @function
FUNCTION(trace_stub)
_mcount:
#ifdef RECORD_RUNTIME
	b	stub_record
#else
	ret
#endif
	.size	_mcount, . - _mcount
END(trace_stub)

/* x10 keeps the loaded ops: trace_entry_call passes them on, and no others. */
TRAMPOLINE(trace_entry)
	adrp	x16, trace_ops
	ldr	x10, [x16, #:lo12:trace_ops]
	ldr	x16, [x10]
	br	x16
END(trace_entry)

TRAMPOLINE(trace_entry_off)
	back
END(trace_entry_off)

/* Turn interrupts off. daif: their state before. */
.macro irqs_off daif
	mrs	\daif, daif
	msr	daifset, #DAIF_SET_I
.endm

/*
 * One event. The CPU is fixed and the ring ours alone while interrupts are off.
 * A reader on another CPU that sees the new ring.cur must see the event too: the
 * fence pairs with the reader's acquire of ring.cur.
 */
TRAMPOLINE(trace_entry_ring)
	irqs_off x11
7:	ldp	x12, x13, [x28, #CPU_HEAD_RING_BASE]	/* and ring.cur */
	ldr	x14, [x28, #CPU_HEAD_RING_CALLS]
	cmp	x13, x14
	b.hs	1f
	isb
	mrs	x15, cntvct_el0
	sub	x15, x15, x12
	cmp	x15, w15, uxtw
	b.ne	1f
	ldr	x16, [x28, #CPU_HEAD_TEXT]
	ldrh	w17, [x28, #CPU_HEAD_PREEMPT]
	sub	x14, IP, x16
	lsl	x14, x14, #8
	bfxil	x14, x17, #0, #8
	stp	w15, w14, [x13]
	sub	x16, PARENT, x16
	lsl	x16, x16, #8
	bfxil	x16, x17, #8, #8
	and	w17, w11, #DAIF_I
	orr	w16, w16, w17, lsr #1
	str	w16, [x13, #8]
	add	x13, x13, #RING_EVENT_SIZE
	dmb	ishst
	str	x13, [x28, #CPU_HEAD_RING_CUR]
	msr	daif, x11
8:	back

1:
9:	ldr	x14, [x28, #CPU_HEAD_RING_CALLS]
	cmp	x14, #RING_PASS
	b.ne	2f
	msr	daif, x11
11:	back
2:
12:	b	call_slow
END(trace_entry_ring)

/* x0 = ip, x1 = parent. The parent may have come in x0. */
.macro ip_and_parent
	mov	x1, PARENT
	mov	x0, IP
.endm

/* Interrupts are off. x11: DAIF as it was at the site. */
TRAMPOLINE(call_slow)
	save
	ip_and_parent
	ldrh	w2, [x28, #CPU_HEAD_PREEMPT]
	and	w12, w11, #DAIF_I
	orr	w2, w2, w12, lsl #7
	bl	trace_ring_slow
	restore
	msr	daif, x11
10:	back
END(call_slow)

TRAMPOLINE(trace_entry_call)
	save
	ip_and_parent
	mov	x2, x10
	ldr	x12, [x10, #8]		/* func */
	blr	x12
	restore
	back
END(trace_entry_call)

/* The shift takes the low 5 bits of its last operand: the number of the bit in the word. */
TRAMPOLINE(trace_entry_choose)
	address	x11, trace_in_c
	ubfx	x12, IP, #7, #TRACE_IN_C_WORD_BITS
	ldr	w11, [x11, x12, lsl #2]
	lsr	x12, IP, #2
	lsr	w11, w11, w12
	tbz	w11, #0, trace_entry_ring
	b	trace_entry_call
END(trace_entry_choose)

/* trace_take_return(ip, parent, ops, sp): sp as the site's function has it. */
TRAMPOLINE(trace_entry_return)
	save
	ip_and_parent
	mov	x2, x10
	add	x3, sp, #SAVE_SIZE
	bl	trace_take_return
	restore
	back
END(trace_entry_return)

/*
 * One call of function_graph: the task's record of it, its event, and then, with both
 * counts, the way back. x15 is the record less TASK_TAKEN, x13 the slot. A depth
 * that the task has from an earlier session counts no more: C begins anew.
 */
TRAMPOLINE(trace_entry_graph)
	irqs_off x11
17:	ldr	x12, [x28, #CPU_HEAD_CURRENT]
	adrp	x14, graph_session
	ldr	w14, [x14, #:lo12:graph_session]
	ldr	w15, [x12, #TASK_GRAPH_SESSION]
	cmp	w15, w14
	b.ne	4f
	ldp	w15, w16, [x12, #TASK_NR_RETURNS]	/* and graph_depth */
	cmp	w15, #TASK_RETURNS
	b.eq	4f
	ldp	x14, x13, [x28, #CPU_HEAD_RING_BASE]	/* and ring.cur */
	ldr	x17, [x28, #CPU_HEAD_RING_GRAPH]
	cmp	x13, x17
	b.hs	4f
	isb
	mrs	x17, cntvct_el0
	sub	x14, x17, x14
	cmp	x14, w14, uxtw
	b.ne	4f
	add	x15, x12, x15, lsl #RETURN_SHIFT
	stp	x17, PARENT, [x15, #TASK_TAKEN + RETURN_CLOCK]	/* and ret */
	str	IP, [x15, #TASK_TAKEN + RETURN_IP]
	str	x10, [x15, #TASK_TAKEN + RETURN_OPS]
	graph_frame 4f
	ldr	x17, [x28, #CPU_HEAD_TEXT]
	ldrh	w10, [x28, #CPU_HEAD_PREEMPT]
	sub	x17, IP, x17
	lsl	x17, x17, #8
	bfxil	x17, x10, #0, #8
	stp	w14, w17, [x13]
	lsl	w14, w16, #8
	orr	w14, w14, #RING_TYPE_ENTRY << 8
	bfxil	w14, w10, #8, #8
	and	w17, w11, #DAIF_I
	orr	w14, w14, w17, lsr #1
	str	w14, [x13, #8]
	ldr	w15, [x12, #TASK_NR_RETURNS]
	add	w15, w15, #1
	add	w16, w16, #1
	stp	w15, w16, [x12, #TASK_NR_RETURNS]
	add	x13, x13, #RING_EVENT_SIZE
	dmb	ishst
	str	x13, [x28, #CPU_HEAD_RING_CUR]
	graph_way_back
	msr	daif, x11
18:	back
4:
19:	msr	daif, x11
20:	b	trace_entry_return
END(trace_entry_graph)

/*
 * A traced function returns here: x30 is trace_return, and its result may be in x0 to
 * x8. The stack pointer is that of the function's caller. So a walk takes this
 * for a function that was called with trace_return as its return address, and
 * looks among the task's taken returns. trace_returned() stores the real address
 * at BACK_LR. C also deals with a return that other ops took: they must hear of it.
 */
#define BACK_LR 88
#define BACK_SIZE 96

.macro results op
	\op	x0, x1, [sp]
	\op	x2, x3, [sp, #16]
	\op	x4, x5, [sp, #32]
	\op	x6, x7, [sp, #48]
	\op	x8, x9, [sp, #64]
.endm

FUNCTION(trace_return)
	irqs_off x9
13:	ldr	x10, [x28, #CPU_HEAD_CURRENT]
	ldr	w11, [x10, #TASK_NR_RETURNS]
	ldp	x12, x13, [x28, #CPU_HEAD_RING_BASE]	/* and ring.cur */
	ldr	x14, [x28, #CPU_HEAD_RING_GRAPH]
	cmp	x13, x14
	b.hs	3f
	sub	x11, x11, #1
	add	x14, x10, x11, lsl #RETURN_SHIFT
	adrp	x15, trace_ops
	ldr	x15, [x15, #:lo12:trace_ops]
	ldr	x16, [x14, #TASK_TAKEN + RETURN_OPS]
	cmp	x15, x16
	b.ne	3f
	isb
	mrs	x15, cntvct_el0
	sub	x12, x15, x12
	cmp	x12, w12, uxtw
	b.ne	3f
	ldr	x16, [x14, #TASK_TAKEN + RETURN_CLOCK]
	sub	x15, x15, x16
	cmp	x12, x15
	b.lo	3f			/* the call is older than the page */
	lsr	x16, x15, #RING_TICKS_BITS
	cbnz	x16, 3f
	ldp	w16, w17, [x10, #TASK_GRAPH_DEPTH]	/* and returns_missed */
	cbnz	w17, 3f
	str	w12, [x13]
	ldr	x17, [x14, #TASK_TAKEN + RETURN_IP]
	ldr	x12, [x28, #CPU_HEAD_TEXT]
	sub	x17, x17, x12
	ldrh	w12, [x28, #CPU_HEAD_PREEMPT]
	lsl	x17, x17, #8
	bfxil	x17, x12, #0, #8
	str	w17, [x13, #4]
	sub	w16, w16, #1
	str	w16, [x10, #TASK_GRAPH_DEPTH]
	orr	w15, w16, w15, lsl #RING_DEPTH_BITS
	lsl	w15, w15, #8
	bfxil	w15, w12, #8, #8
	and	w17, w9, #DAIF_I
	orr	w15, w15, w17, lsr #1
	orr	w15, w15, #RING_RETURNED
	str	w15, [x13, #8]
	add	x13, x13, #RING_EVENT_SIZE
	dmb	ishst
	str	x13, [x28, #CPU_HEAD_RING_CUR]
	ldr	x30, [x14, #TASK_TAKEN + RETURN_RET]
	str	w11, [x10, #TASK_NR_RETURNS]
	msr	daif, x9
14:	ret

3:
15:	msr	daif, x9
16:	sub	sp, sp, #BACK_SIZE
	.cfi_def_cfa_offset BACK_SIZE
	str	x30, [sp, #BACK_LR]
	.cfi_offset x30, BACK_LR - BACK_SIZE
	results	stp
	add	x0, sp, #BACK_LR
	bl	trace_returned
	results	ldp
	ldr	x30, [sp, #BACK_LR]
	add	sp, sp, #BACK_SIZE
	.cfi_def_cfa_offset 0
	.cfi_restore x30
	ret
END(trace_return)
	.globl	trampoline_end
trampoline_end:

	/* Where interrupts are off: arch/arch_lab.h. */
	.pushsection .rodata
	.balign	8
	.globl	trampoline_masked
trampoline_masked:
	.8byte	7b, 8b, 9b, 11b, 12b, 10b, 13b, 14b, 15b, 16b
	.8byte	17b, 18b, 19b, 20b, 0
	.popsection

#ifdef RECORD_RUNTIME
TRAMPOLINE(stub_record)
	save
	ip_and_parent
	bl	site_seen
	restore
	back
END(stub_record)
#endif
