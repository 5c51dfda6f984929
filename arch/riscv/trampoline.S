/* SPDX-License-Identifier: MIT */
/*
 * Where live sites lead. The front end's site.h says which registers the site leaves
 * its return address and the function's in (IP, PARENT), and which registers the paths
 * through C keep (save, restore). Free at every site: t1, t3..t6.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <arch/ring_event.h>
#include <arch/task_head.h>
#include <frame.h>
#include <regs.h>
#include <site.h>

#if SAVE_SIZE - SAVE_RA != LINK_BELOW
#error "frame.h has another place in mind"
#endif

	.text
/*
 * The stub of -pg, called through ra, behind the prologue. An auipc that was made
 * for it has its neighbours in reach of a jalr too, the word before it or the one
 * behind: so both lead to trace_entry (sites/mcount-far/site.h).
 */
	.option	push
	.option	norvc
	before_stub

	.globl	_mcount
	.type	_mcount, @function
FUNCTION(trace_stub)
_mcount:
#ifdef RECORD_RUNTIME
	j	stub_record
#else
	ret
#endif
	.size	_mcount, . - _mcount
END(trace_stub)
	.option	pop

/* t3 keeps the loaded ops: trace_entry_call passes them on, and no others. */
TRAMPOLINE(trace_entry)
	ld	t3, trace_ops
	ld	t1, (t3)
	jr	t1
END(trace_entry)

TRAMPOLINE(trace_entry_off)
	jr	IP
END(trace_entry_off)

/*
 * One event. The CPU is fixed and the ring ours alone while interrupts are off.
 * A reader on another CPU that sees the new ring.cur must see the event too: the
 * fence pairs with the reader's acquire of ring.cur.
 */
TRAMPOLINE(trace_entry_ring)
	csrrci	t1, sstatus, SSTATUS_SIE
7:	ld	t3, CPU_HEAD_RING_CUR(tp)
	ld	t4, CPU_HEAD_RING_CALLS(tp)
	bgeu	t3, t4, 1f
	rdtime	t5
	ld	t4, CPU_HEAD_RING_BASE(tp)
	sub	t5, t5, t4
	srli	t4, t5, 32
	bnez	t4, 1f
	sw	t5, 0(t3)
	ld	t6, CPU_HEAD_TEXT(tp)
	lbu	t5, CPU_HEAD_PREEMPT(tp)
	sub	t4, IP, t6
	slli	t4, t4, 8
	or	t4, t4, t5
	sw	t4, 4(t3)
	lbu	t5, CPU_HEAD_PREEMPT+1(tp)
	sub	t4, PARENT, t6
	slli	t4, t4, 8
	or	t4, t4, t5
	andi	t1, t1, SSTATUS_SIE
	xori	t5, t1, SSTATUS_SIE
	slli	t5, t5, 5		/* SSTATUS_SIE -> RING_IRQS_OFF */
	or	t4, t4, t5
	sw	t4, 8(t3)
	addi	t3, t3, RING_EVENT_SIZE
	fence	w, w
	sd	t3, CPU_HEAD_RING_CUR(tp)
	csrs	sstatus, t1
8:	jr	IP

1:
9:	ld	t4, CPU_HEAD_RING_CALLS(tp)
	andi	t1, t1, SSTATUS_SIE
	addi	t4, t4, -RING_PASS
	bnez	t4, 2f
	csrs	sstatus, t1
11:	jr	IP
2:
12:	j	call_slow		/* not tail: unrelaxed, that takes t1 */
END(trace_entry_ring)

/* a0 = ip, a1 = parent. The parent may have come in a0. */
.macro ip_and_parent
	mv	a1, PARENT
	mv	a0, IP
.endm

/* Interrupts are off. t1: SSTATUS_SIE if they were on at the site. */
TRAMPOLINE(call_slow)
	save
	lhu	a2, CPU_HEAD_PREEMPT(tp)
	xori	t1, t1, SSTATUS_SIE
	slli	t1, t1, 13		/* SSTATUS_SIE -> RING_CONTEXT_IRQS_OFF */
	or	a2, a2, t1
	ip_and_parent
	call	trace_ring_slow
	restore
	csrs	sstatus, t1
10:	jr	IP
END(call_slow)

TRAMPOLINE(trace_entry_call)
	save
	mv	a2, t3
	ld	t1, 8(t3)		/* func */
	ip_and_parent
	jalr	t1
	restore
	jr	IP
END(trace_entry_call)

/* srlw takes the low 5 bits of its last operand: the number of the bit in the word. */
TRAMPOLINE(trace_entry_choose)
	srli	t4, IP, 7
	andi	t4, t4, TRACE_IN_C_BITS / 32 - 1
	slli	t4, t4, 2
	lla	t1, trace_in_c
	add	t4, t4, t1
	lw	t4, (t4)
	srli	t1, IP, 2
	srlw	t4, t4, t1
	andi	t4, t4, 1
	beqz	t4, trace_entry_ring
	j	trace_entry_call
END(trace_entry_choose)

/* trace_take_return(ip, parent, ops, sp): sp as the site's function has it. */
TRAMPOLINE(trace_entry_return)
	save
	mv	a2, t3
	ip_and_parent
	addi	a3, sp, SAVE_SIZE
	call	trace_take_return
	restore
	jr	IP
END(trace_entry_return)

/*
 * One call of function_graph: the task's record of it, its event, and then, with both
 * counts, the way back. t6 is the record less TASK_TAKEN, t4 the slot. A depth
 * that the task has from an earlier session counts no more: C begins anew.
 */
TRAMPOLINE(trace_entry_graph)
	csrrci	t1, sstatus, SSTATUS_SIE
17:	andi	t1, t1, SSTATUS_SIE
	ld	t6, CPU_HEAD_CURRENT(tp)
	lw	t5, graph_session
	lw	t4, TASK_GRAPH_SESSION(t6)
	bne	t4, t5, 4f
	lw	t4, TASK_NR_RETURNS(t6)
	li	t5, TASK_RETURNS
	beq	t4, t5, 4f
	slli	t4, t4, RETURN_SHIFT
	add	t6, t6, t4
	ld	t4, CPU_HEAD_RING_CUR(tp)
	ld	t5, CPU_HEAD_RING_GRAPH(tp)
	bgeu	t4, t5, 4f
	rdtime	t5
	sd	t3, TASK_TAKEN + RETURN_OPS(t6)
	sd	t5, TASK_TAKEN + RETURN_CLOCK(t6)
	ld	t3, CPU_HEAD_RING_BASE(tp)
	sub	t5, t5, t3
	srli	t3, t5, 32
	bnez	t3, 3f
	sd	PARENT, TASK_TAKEN + RETURN_RET(t6)
	sd	IP, TASK_TAKEN + RETURN_IP(t6)
	graph_frame 3f
	sw	t5, 0(t4)
	ld	t5, CPU_HEAD_TEXT(tp)
	lbu	t3, CPU_HEAD_PREEMPT(tp)
	sub	t5, IP, t5
	slli	t5, t5, 8
	or	t5, t5, t3
	sw	t5, 4(t4)
	ld	t6, CPU_HEAD_CURRENT(tp)
	lw	t3, TASK_GRAPH_DEPTH(t6)
	addi	t5, t3, 1
	sw	t5, TASK_GRAPH_DEPTH(t6)
	li	t5, (RING_TYPE_ENTRY << 8) - (1 << 32)
	slli	t3, t3, 8
	or	t3, t3, t5
	lbu	t5, CPU_HEAD_PREEMPT+1(tp)
	or	t3, t3, t5
	xori	t5, t1, SSTATUS_SIE
	slli	t5, t5, 5		/* SSTATUS_SIE -> RING_IRQS_OFF */
	or	t3, t3, t5
	sw	t3, 8(t4)
	lw	t5, TASK_NR_RETURNS(t6)
	addi	t5, t5, 1
	sw	t5, TASK_NR_RETURNS(t6)
	addi	t4, t4, RING_EVENT_SIZE
	fence	w, w
	sd	t4, CPU_HEAD_RING_CUR(tp)
	graph_way_back
	csrs	sstatus, t1
18:	jr	IP
3:
19:	ld	t3, TASK_TAKEN + RETURN_OPS(t6)
4:	csrs	sstatus, t1
20:	j	trace_entry_return
END(trace_entry_graph)

/*
 * A traced function returns here: ra is trace_return, and its result may be in a0
 * and a1. The stack pointer is that of the function's caller. So a walk takes this
 * for a function that was called with trace_return as its return address, and
 * looks among the task's taken returns. trace_returned() stores the real address
 * at BACK_RA. C also deals with a return that other ops took: they must hear of it.
 */
#define RESULT(n) (8 * (n))
#define BACK_RA 24
#define BACK_SIZE 32

FUNCTION(trace_return)
	csrrci	a2, sstatus, SSTATUS_SIE
13:	andi	a2, a2, SSTATUS_SIE
	ld	a3, CPU_HEAD_CURRENT(tp)
	lw	a6, TASK_NR_RETURNS(a3)
	ld	a4, CPU_HEAD_RING_CUR(tp)
	ld	a5, CPU_HEAD_RING_GRAPH(tp)
	bgeu	a4, a5, 3f
	addi	a6, a6, -1
	slli	a7, a6, RETURN_SHIFT
	add	a7, a7, a3
	ld	t0, trace_ops
	ld	t1, TASK_TAKEN + RETURN_OPS(a7)
	bne	t0, t1, 3f
	rdtime	t0
	ld	t1, CPU_HEAD_RING_BASE(tp)
	ld	t2, TASK_TAKEN + RETURN_CLOCK(a7)
	sub	t1, t0, t1
	srli	t3, t1, 32
	bnez	t3, 3f
	sub	t0, t0, t2
	bltu	t1, t0, 3f		/* the call is older than the page */
	srli	t2, t0, RING_TICKS_BITS
	bnez	t2, 3f
	lw	t2, TASK_RETURNS_MISSED(a3)
	bnez	t2, 3f
	sw	t1, 0(a4)
	ld	t1, TASK_TAKEN + RETURN_IP(a7)
	ld	t2, CPU_HEAD_TEXT(tp)
	sub	t1, t1, t2
	slli	t1, t1, 8
	lbu	t2, CPU_HEAD_PREEMPT(tp)
	or	t1, t1, t2
	sw	t1, 4(a4)
	lw	t1, TASK_GRAPH_DEPTH(a3)
	addi	t1, t1, -1
	sw	t1, TASK_GRAPH_DEPTH(a3)
	slli	t0, t0, RING_DEPTH_BITS
	or	t0, t0, t1
	slli	t0, t0, 8
	lbu	t1, CPU_HEAD_PREEMPT+1(tp)
	or	t0, t0, t1
	xori	t1, a2, SSTATUS_SIE | 1
	slli	t1, t1, 5		/* SSTATUS_SIE -> RING_IRQS_OFF, 1 -> RING_RETURNED */
	or	t0, t0, t1
	sw	t0, 8(a4)
	addi	a4, a4, RING_EVENT_SIZE
	fence	w, w
	sd	a4, CPU_HEAD_RING_CUR(tp)
	ld	ra, TASK_TAKEN + RETURN_RET(a7)
	sw	a6, TASK_NR_RETURNS(a3)
	csrs	sstatus, a2
14:	ret

3:
15:	csrs	sstatus, a2
16:	addi	sp, sp, -BACK_SIZE
	.cfi_def_cfa_offset BACK_SIZE
	sd	ra, BACK_RA(sp)
	.cfi_offset ra, BACK_RA - BACK_SIZE
	sd	a0, RESULT(0)(sp)
	sd	a1, RESULT(1)(sp)
	addi	a0, sp, BACK_RA
	call	trace_returned
	ld	a0, RESULT(0)(sp)
	ld	a1, RESULT(1)(sp)
	ld	ra, BACK_RA(sp)
	addi	sp, sp, BACK_SIZE
	.cfi_def_cfa_offset 0
	.cfi_restore ra
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
	call	site_seen
	restore
	jr	IP
END(stub_record)
#endif

	behind_trampolines
