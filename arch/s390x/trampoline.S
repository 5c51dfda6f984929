/* SPDX-License-Identifier: MIT */
/*
 * Where live sites lead: a function's entry. There the ABI lets r0 (static chain), r2 to r15 carry
 * something. r1 has the site's return address, r14 the function's. So no register is free, and
 * trace_entry stores four in the room above the stack pointer that the function has for
 * registers of its caller's (frame.h). No code of this image names a floating point register
 * (port.mk), so those keep their values.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <arch/ring_event.h>
#include <arch/task_head.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

/* For a stack walk a trampoline's return address is in a column of its own (64). */
#define TRAMPOLINE(name)                                                       \
	FUNCTION(name); .cfi_return_column 64; .cfi_register 64, %r1

#if TRACE_IN_C_BITS != 4096
#error "trace_entry_choose takes 12 bits of ip"
#endif

#define PREEMPT_LOW (CPU_HEAD_PREEMPT + 3) /* depth */
#define PREEMPT_HIGH (CPU_HEAD_PREEMPT + 2)
#define TAKEN(field) (TASK_TAKEN + RETURN_##field)

.macro irqs_off
	stnsm	AREA_MASK(%r15), PSW_EXTERNAL_OFF
.endm

.macro irqs_back
	ssm	AREA_MASK(%r15)
.endm

/* The way back to the site. GCC writes br %r1 where it jumps to a function, so this is another
 * instruction, which the build knows (machine.json: returns). */
.macro back
	lmg	%r2, %r5, AREA_R2(%r15)
	b	0(%r1)
.endm

	.text
/* The stub of -mfentry, called through r0, by which nothing can return. */
	.globl	__fentry__
	.type	__fentry__, @function
FUNCTION(trace_stub)
__fentry__:
	.cfi_return_column 64
	.cfi_register 64, %r0
	lgr	%r1, %r0
	.cfi_register 64, %r1
#ifdef RECORD_RUNTIME
	jg	stub_record
#else
	b	0(%r1)
#endif
	.size	__fentry__, . - __fentry__
END(trace_stub)

/* r2 keeps the loaded ops: trace_entry_call passes them on, and no others. */
TRAMPOLINE(trace_entry)
	stmg	%r2, %r5, AREA_R2(%r15)
	lgrl	%r2, trace_ops
	lg	%r3, 0(%r2)
	br	%r3
END(trace_entry)

TRAMPOLINE(trace_entry_off)
	back
END(trace_entry_off)

/* \flags, of an event's last byte, with RING_IRQS_OFF as it was at the site. */
.macro irqs_flag word
	tm	AREA_MASK(%r15), PSW_EXTERNAL_BIT
	jo	6f
	oill	\word, RING_IRQS_OFF
6:
.endm

/* An event's word of the address in \to: its offset in text, and a byte of the count. */
.macro event_word to, byte
	slg	\to, CPU_HEAD_TEXT(%r3)
	sllg	\to, \to, 8
	ic	\to, \byte(%r3)
.endm

/*
 * One event. The CPU is fixed and the ring ours alone while interrupts are off.
 * A reader on another CPU that sees the new ring.cur sees the event too: stores do not
 * pass each other (PoP, chapter 5).
 */
TRAMPOLINE(trace_entry_ring)
	irqs_off
7:	lg	%r3, LC_CPU
	lg	%r4, CPU_HEAD_RING_CUR(%r3)
	clg	%r4, CPU_HEAD_RING_CALLS(%r3)
	jhe	1f
	stckf	AREA_CLOCK(%r15)
	lg	%r5, AREA_CLOCK(%r15)
	slg	%r5, CPU_HEAD_RING_BASE(%r3)
	clgfr	%r5, %r5
	jne	1f
	st	%r5, 0(%r4)
	lgr	%r5, %r1
	event_word %r5, PREEMPT_LOW
	st	%r5, 4(%r4)
	lgr	%r5, %r14
	event_word %r5, PREEMPT_HIGH
	irqs_flag %r5
	st	%r5, 8(%r4)
	la	%r4, RING_EVENT_SIZE(%r4)
	stg	%r4, CPU_HEAD_RING_CUR(%r3)
	irqs_back
8:	back

1:
9:	lg	%r4, CPU_HEAD_RING_CALLS(%r3)
	clgfi	%r4, RING_PASS
	jne	2f
	irqs_back
11:	back
2:
12:	jg	call_slow
END(trace_entry_ring)

/* All that the C code may change, and a frame for it. */
.macro save
	stmg	%r0, %r1, AREA_R0(%r15)
	stg	%r14, AREA_R14(%r15)
	.cfi_offset %r14, AREA_R14 - SAVE_AREA
	.cfi_offset 64, AREA_R0 + 8 - SAVE_AREA
	aghi	%r15, -SAVE_AREA
	.cfi_def_cfa_offset 2 * SAVE_AREA
.endm

.macro restore
	aghi	%r15, SAVE_AREA
	.cfi_def_cfa_offset SAVE_AREA
	lg	%r14, AREA_R14(%r15)
	.cfi_restore %r14
	lmg	%r0, %r1, AREA_R0(%r15)
	.cfi_register 64, %r1
.endm

/* r2 = ip, r3 = parent. */
.macro ip_and_parent
	lgr	%r2, %r1
	lgr	%r3, %r14
.endm

/* Interrupts are off. AREA_MASK: the PSW's mask as it was at the site. */
TRAMPOLINE(call_slow)
	lg	%r3, LC_CPU
	llgh	%r4, PREEMPT_HIGH(%r3)
	tm	AREA_MASK(%r15), PSW_EXTERNAL_BIT
	jo	1f
	oill	%r4, RING_CONTEXT_IRQS_OFF
1:	save
	ip_and_parent
	brasl	%r14, trace_ring_slow
	restore
	irqs_back
10:	back
END(call_slow)

TRAMPOLINE(trace_entry_call)
	save
	lgr	%r4, %r2
	lg	%r5, 8(%r2)		/* func */
	ip_and_parent
	basr	%r14, %r5
	restore
	back
END(trace_entry_call)

/* Bit ip / 4 of trace_in_c: bits 11 to 5 of that number say which word. A rotation takes the
 * low 5 bits of its last operand. */
TRAMPOLINE(trace_entry_choose)
	larl	%r3, trace_in_c
	risbg	%r4, %r1, 55, 128 + 61, 64 - 5
	l	%r3, 0(%r4, %r3)
	srlg	%r4, %r1, 2
	lcr	%r4, %r4
	rll	%r3, %r3, 0(%r4)
	tmll	%r3, 1
	jgz	trace_entry_ring
	jg	trace_entry_call
END(trace_entry_choose)

/* trace_take_return(ip, parent, ops, sp): sp is the CFA of the site's function. */
TRAMPOLINE(trace_entry_return)
	save
	lgr	%r4, %r2
	la	%r5, 2 * SAVE_AREA(%r15)
	ip_and_parent
	brasl	%r14, trace_take_return
	restore
	back
END(trace_entry_return)

/*
 * One call of function_graph: the task's record of it, its event, and then, with both
 * counts, the way back. A depth that the task has from an earlier session counts no more: C
 * begins anew. r2 keeps the ops until they are stored.
 */
TRAMPOLINE(trace_entry_graph)
	irqs_off
17:	stg	%r0, AREA_R0(%r15)
	lg	%r4, LC_CURRENT
	lrl	%r5, graph_session
	cl	%r5, TASK_GRAPH_SESSION(%r4)
	jne	4f
	llgf	%r5, TASK_NR_RETURNS(%r4)
	clgfi	%r5, TASK_RETURNS
	je	4f
	lg	%r3, LC_CPU
	lg	%r0, CPU_HEAD_RING_CUR(%r3)
	clg	%r0, CPU_HEAD_RING_GRAPH(%r3)
	jhe	4f
	stckf	AREA_CLOCK(%r15)
	lg	%r0, AREA_CLOCK(%r15)
	slg	%r0, CPU_HEAD_RING_BASE(%r3)
	clgfr	%r0, %r0
	jne	4f
	sllg	%r5, %r5, RETURN_SHIFT
	agr	%r5, %r4
	mvc	TAKEN(CLOCK)(8, %r5), AREA_CLOCK(%r15)
	stg	%r14, TAKEN(RET)(%r5)
	stg	%r1, TAKEN(IP)(%r5)
	stg	%r2, TAKEN(OPS)(%r5)
	la	%r2, SAVE_AREA(%r15)
	stg	%r2, TAKEN(CFA)(%r5)
	lg	%r5, CPU_HEAD_RING_CUR(%r3)
	st	%r0, 0(%r5)
	lgr	%r0, %r1
	event_word %r0, PREEMPT_LOW
	st	%r0, 4(%r5)
	l	%r0, TASK_GRAPH_DEPTH(%r4)
	afi	%r0, RING_TYPE_ENTRY
	sllg	%r0, %r0, 8
	ic	%r0, PREEMPT_HIGH(%r3)
	irqs_flag %r0
	st	%r0, 8(%r5)
	asi	TASK_NR_RETURNS(%r4), 1
	asi	TASK_GRAPH_DEPTH(%r4), 1
	la	%r5, RING_EVENT_SIZE(%r5)
	stg	%r5, CPU_HEAD_RING_CUR(%r3)
	larl	%r14, trace_return
	lg	%r0, AREA_R0(%r15)
	irqs_back
18:	back
4:
19:	lg	%r0, AREA_R0(%r15)
	irqs_back
20:	jg	trace_entry_return
END(trace_entry_graph)

/*
 * A traced function returns here: r14 is trace_return, and its result may be in r2 and r3. The
 * stack pointer is that of the function's caller. So a walk takes this for a function that
 * was called with trace_return as its return address, and looks among the task's taken
 * returns. trace_returned() stores the real address at AREA_R14. C also deals with a
 * return that other ops took: they must hear of it.
 */
FUNCTION(trace_return)
	irqs_off
13:	stmg	%r2, %r3, AREA_R2(%r15)
	lg	%r1, LC_CPU
	lg	%r4, LC_CURRENT
	lg	%r5, CPU_HEAD_RING_CUR(%r1)
	clg	%r5, CPU_HEAD_RING_GRAPH(%r1)
	jhe	3f
	llgf	%r2, TASK_NR_RETURNS(%r4)
	aghi	%r2, -1
	sllg	%r2, %r2, RETURN_SHIFT
	agr	%r2, %r4
	lgrl	%r0, trace_ops
	clg	%r0, TAKEN(OPS)(%r2)
	jne	3f
	stckf	AREA_CLOCK(%r15)
	lg	%r3, AREA_CLOCK(%r15)
	lgr	%r0, %r3
	slg	%r0, CPU_HEAD_RING_BASE(%r1)
	clgfr	%r0, %r0
	jne	3f
	slg	%r3, TAKEN(CLOCK)(%r2)
	clgr	%r0, %r3
	jl	3f			/* the call is older than the page */
	clgfi	%r3, RING_TICKS_END
	jhe	3f
	clfhsi	TASK_RETURNS_MISSED(%r4), 0
	jne	3f
	st	%r0, 0(%r5)
	lg	%r0, TAKEN(IP)(%r2)
	slg	%r0, CPU_HEAD_TEXT(%r1)
	sllg	%r0, %r0, 8
	ic	%r0, PREEMPT_LOW(%r1)
	st	%r0, 4(%r5)
	asi	TASK_GRAPH_DEPTH(%r4), -1
	sllg	%r3, %r3, RING_DEPTH_BITS
	o	%r3, TASK_GRAPH_DEPTH(%r4)
	sllg	%r3, %r3, 8
	ic	%r3, PREEMPT_HIGH(%r1)
	irqs_flag %r3
	oill	%r3, RING_RETURNED
	st	%r3, 8(%r5)
	la	%r5, RING_EVENT_SIZE(%r5)
	stg	%r5, CPU_HEAD_RING_CUR(%r1)
	lg	%r14, TAKEN(RET)(%r2)
	asi	TASK_NR_RETURNS(%r4), -1
	lmg	%r2, %r3, AREA_R2(%r15)
	irqs_back
14:	br	%r14

3:
15:	lmg	%r2, %r3, AREA_R2(%r15)
	irqs_back
16:	stmg	%r2, %r3, AREA_R2(%r15)
	stg	%r14, AREA_R14(%r15)
	.cfi_offset %r14, AREA_R14 - SAVE_AREA
	aghi	%r15, -SAVE_AREA
	.cfi_def_cfa_offset 2 * SAVE_AREA
	la	%r2, SAVE_AREA + AREA_R14(%r15)
	brasl	%r14, trace_returned
	aghi	%r15, SAVE_AREA
	.cfi_def_cfa_offset SAVE_AREA
	lmg	%r2, %r3, AREA_R2(%r15)
	lg	%r14, AREA_R14(%r15)
	.cfi_restore %r14
	br	%r14
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
	stmg	%r2, %r5, AREA_R2(%r15)
	save
	ip_and_parent
	brasl	%r14, site_seen
	restore
	back
END(stub_record)
#endif
