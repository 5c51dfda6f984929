/* SPDX-License-Identifier: MIT */
/*
 * Where sites call. On entry: ra = the site + 8 (ip), at = the function's own
 * return address (parent), sp as the prologue left it. The way back is `jr ra`
 * with `move ra, at` in its delay slot: a leaf has ra nowhere else. The two are
 * one for a preemption, since an interrupt in the slot returns to the `jr`.
 *
 * Kept: a0..a3, t7 (static chain), v0 (holds it at the site), s0..s8, sp, gp,
 * t0..t6, t8, t9, v1, hi, lo are free: GCC emits the call as one of unknown
 * clobbers, behind a barrier that keeps the body's instructions after it.
 *
 * In brackets: instructions from the site's `move` on.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <arch/ring_event.h>
#include <arch/task_head.h>
#include <frame.h>
#include <regs.h>

#ifdef __MIPSEL__
#define LOW 0 /* in a number of 64 bits */
#define HIGH 4
#else
#define LOW 4
#define HIGH 0
#endif

	.set noreorder
	.set noat
	.text

	.globl trampoline_end

	/*
	 * For a stack walk a trampoline's return address is in a column of its
	 * own (64), whose value is in ra, and the function's ra is in at.
	 */
	.macro	trampoline_regs
	.cfi_register 64, 31
	.cfi_register 31, 1
	.endm

#define TRAMPOLINE(name) \
	FUNCTION(name); .cfi_return_column 64; trampoline_regs

	/* Registers that C may change and the function may need. t1 keeps the
	 * caller's Status. */
	.macro	trace_frame_save
	addiu	$sp, $sp, -TRACE_FRAME_SIZE
	.cfi_adjust_cfa_offset TRACE_FRAME_SIZE
	sw	$at, TRACE_FRAME_AT($sp)
	.cfi_offset 31, TRACE_FRAME_AT - TRACE_FRAME_SIZE
	sw	$ra, TRACE_FRAME_RA($sp)
	.cfi_offset 64, TRACE_FRAME_RA - TRACE_FRAME_SIZE
	sw	$a0, 16($sp)
	sw	$a1, 20($sp)
	sw	$a2, 24($sp)
	sw	$a3, 28($sp)
	sw	$v0, 32($sp)
	sw	$t7, 36($sp)
	sw	$t1, 40($sp)
	.endm

	.macro	trace_frame_restore
	lw	$ra, TRACE_FRAME_RA($sp)
	lw	$at, TRACE_FRAME_AT($sp)
	lw	$a0, 16($sp)
	lw	$a1, 20($sp)
	lw	$a2, 24($sp)
	lw	$a3, 28($sp)
	lw	$v0, 32($sp)
	lw	$t7, 36($sp)
	lw	$t1, 40($sp)
	addiu	$sp, $sp, TRACE_FRAME_SIZE
	.cfi_adjust_cfa_offset -TRACE_FRAME_SIZE
	trampoline_regs
	.endm

/*
 * Before conversion: the delay slot at the site has taken 8 bytes. With
 * RECORD=runtime the call tells the tracer of its site.
 */
	.globl _mcount
	.type _mcount, @function
_mcount:
TRAMPOLINE(trace_stub)
	.cfi_def_cfa_offset 8
	addiu	$sp, $sp, 8
	.cfi_def_cfa_offset 0
#ifdef RECORD_RUNTIME
	trace_frame_save
	move	$a0, $ra
	jal	site_seen
	nop
	trace_frame_restore
#endif
	jr	$ra
	move	$ra, $at
END(trace_stub)
	.size _mcount, . - _mcount

/*
 * t0 = ops for all that follow. trace_ops is loaded once. For trace_entry_ring t4 = the GIC's
 * counter, and t9 = the upper half of the addresses in .data.entry.
 */
TRAMPOLINE(trace_entry)
	lui	$t9, %hi(trace_ops)		/* [4] */
	lw	$t0, %lo(trace_ops)($t9)
	lw	$t1, 0($t0)			/* ops->entry */
	jr	$t1
	lw	$t4, CPU_HEAD_COUNTER($gp)	/* [8] */
END(trace_entry)

TRAMPOLINE(trace_entry_off)
	jr	$ra				/* [9] */
	move	$ra, $at			/* [10] */
END(trace_entry_off)

/*
 * One event, interrupts off: t1 = Status before, t2 = the slot. Two cases are left to C. The
 * low word may be less than one that a CPU has read, because it has run over or the host has
 * stopped the machine. Or the clock's high word is not the page's any more. SEEN comes first, as in
 * arch_clock().
 */
#define SEEN %lo(arch_clock_words + CLOCK_SEEN)
#define TURNS %lo(arch_clock_words + CLOCK_TURNS)
TRAMPOLINE(trace_entry_ring)
	di	$t1				/* [9] */
7:	ehb
	lw	$t2, CPU_HEAD_RING_CUR($gp)
	lw	$t3, CPU_HEAD_RING_CALLS($gp)
	sltu	$t3, $t2, $t3
	beqz	$t3, trace_ring_full
	lw	$t6, SEEN($t9)			/* [15] */
	lw	$v1, TURNS($t9)
	beqz	$t4, 2f				/* no GIC: Count */
	lw	$t8, (CPU_HEAD_RING_BASE + LOW)($gp)
	lw	$t5, 0($t4)
1:	lw	$t9, (CPU_HEAD_RING_BASE + HIGH)($gp)
	subu	$t3, $t5, $t8			/* word 0: delta */
	bne	$v1, $t9, trace_ring_full
	sltu	$t6, $t5, $t6
	bnez	$t6, trace_ring_full
	lw	$t4, CPU_HEAD_TEXT($gp)		/* [25] */
	lw	$t6, CPU_HEAD_PREEMPT($gp)
	sw	$t3, 0($t2)
	subu	$t5, $ra, $t4
	srl	$t9, $t6, 8
	ins	$t6, $t5, 8, 24
	sw	$t6, 4($t2)			/* [31] word 1: ip, depth */
	xori	$t8, $t1, STATUS_IE
	ins	$t9, $t8, 6, 1			/* RING_IRQS_OFF = !IE */
	subu	$t5, $at, $t4
	ins	$t9, $t5, 8, 24
	sw	$t9, 8($t2)			/* [36] word 2: parent, flags */
	addiu	$t2, $t2, RING_EVENT_SIZE
	sync	4				/* the event before its count,
						   pairs with readers' acquire
						   of ring.cur */
	sw	$t2, CPU_HEAD_RING_CUR($gp)
	mtc0	$t1, C0_STATUS
8:	jr	$ra				/* [41] */
	move	$ra, $at			/* [42] */
2:
9:	b	1b
	mfc0	$t5, C0_COUNT			/* [44] with this detour */
END(trace_entry_ring)

/* trace_ring_slow(ip, parent, context), interrupts still off. */
TRAMPOLINE(trace_ring_full)
	lw	$t3, CPU_HEAD_RING_CALLS($gp)
	li	$t4, RING_PASS
	bne	$t3, $t4, 3f
	nop
	mtc0	$t1, C0_STATUS
11:	jr	$ra
	move	$ra, $at
3:
12:	trace_frame_save
	lw	$a2, CPU_HEAD_PREEMPT($gp)
	xori	$t8, $t1, STATUS_IE
	ins	$a2, $t8, 14, 1			/* RING_CONTEXT_IRQS_OFF */
	ext	$a2, $a2, 0, 16
	move	$a0, $ra
	jal	trace_ring_slow
	move	$a1, $at
	trace_frame_restore
	mtc0	$t1, C0_STATUS
10:	jr	$ra
	move	$ra, $at
END(trace_ring_full)

/* ops->func(ip, parent, ops), interrupts as they were. */
TRAMPOLINE(trace_entry_call)
	trace_frame_save
	lw	$t9, 4($t0)
	move	$a0, $ra
	move	$a1, $at
	jalr	$t9
	move	$a2, $t0
	trace_frame_restore
	jr	$ra
	move	$ra, $at
END(trace_entry_call)

/* srlv takes the low 5 bits of its last operand: the number of the bit in the word. */
TRAMPOLINE(trace_entry_choose)
	srl	$t2, $ra, 7
	andi	$t2, $t2, TRACE_IN_C_BITS / 32 - 1
	sll	$t2, $t2, 2
	lui	$t3, %hi(trace_in_c)
	addu	$t2, $t2, $t3
	lw	$t2, %lo(trace_in_c)($t2)
	srl	$t1, $ra, 2
	srlv	$t2, $t2, $t1
	andi	$t2, $t2, 1
	beqz	$t2, trace_entry_ring
	nop
	b	trace_entry_call
	nop
END(trace_entry_choose)

/* trace_take_return(ip, parent, ops, sp): sp as the prologue left it. A leaf will
 * return to the address that it puts into the frame instead of at. */
TRAMPOLINE(trace_entry_return)
	trace_frame_save
	move	$a0, $ra
	move	$a1, $at
	move	$a2, $t0
	jal	trace_take_return
	addiu	$a3, $sp, TRACE_FRAME_SIZE
	trace_frame_restore
	jr	$ra
	move	$ra, $at
END(trace_entry_return)

#define TAKEN(field) TASK_TAKEN + RETURN_##field($t3)
#define CLOCK(word) TASK_TAKEN + RETURN_CLOCK + word($t3)

/*
 * One call of function_graph: the task's record of it, its event, and then, with both
 * counts, the way back. t2 is the slot, t3 the record less TASK_TAKEN, t5 the count, t6 the
 * task, v1 the kept frame (struct frame_kept). The clock is read as in trace_entry_ring:
 * its high word must be that of the page's base. A depth
 * that the task has from an earlier session counts no more: C begins anew.
 */
TRAMPOLINE(trace_entry_graph)
	di	$t1				/* [9] */
13:	ehb
	lw	$t2, CPU_HEAD_RING_CUR($gp)
	lw	$t3, CPU_HEAD_RING_GRAPH($gp)
	lw	$t6, CPU_HEAD_CURRENT($gp)
	sltu	$t3, $t2, $t3
	beqz	$t3, 4f
	lw	$t8, %lo(graph_session)($t9)
	lw	$t3, TASK_GRAPH_SESSION($t6)
	bne	$t3, $t8, 4f
	lw	$t5, TASK_NR_RETURNS($t6)
	andi	$v1, $ra, (FRAMES_KEPT - 1) * FRAME_KEPT_SIZE
	lw	$t3, CPU_HEAD_FRAMES($gp)
	addu	$v1, $v1, $t3
	lw	$t3, FRAME_KEPT_IP($v1)
	bne	$t3, $ra, 4f
	sltiu	$t8, $t5, TASK_RETURNS
	beqz	$t8, 4f
	sll	$t3, $t5, RETURN_SHIFT
	addu	$t3, $t3, $t6
	lw	$t8, SEEN($t9)
	beqz	$t4, 3f				/* no GIC: Count */
	lw	$t9, TURNS($t9)
	lw	$t4, 0($t4)
2:	sw	$t4, CLOCK(LOW)
	sltu	$t8, $t4, $t8
	sw	$t9, CLOCK(HIGH)
	bnez	$t8, 4f
	lw	$t8, (CPU_HEAD_RING_BASE + HIGH)($gp)
	bne	$t8, $t9, 4f
	lw	$t9, (CPU_HEAD_RING_BASE + LOW)($gp)
	subu	$t9, $t4, $t9
	sw	$t9, 0($t2)			/* word 0: delta */
	sw	$t0, TAKEN(OPS)
	sw	$at, TAKEN(RET)
	sw	$ra, TAKEN(IP)
	lh	$t4, FRAME_KEPT_CFA($v1)
	lh	$v1, FRAME_KEPT_SLOT($v1)
	addu	$t4, $t4, $sp
	sw	$t4, TAKEN(CFA)
	addiu	$t5, $t5, 1
	sw	$t5, TASK_NR_RETURNS($t6)
	lw	$t4, CPU_HEAD_TEXT($gp)
	lw	$t5, CPU_HEAD_PREEMPT($gp)
	subu	$t4, $ra, $t4
	srl	$t8, $t5, 8
	ins	$t5, $t4, 8, 24
	sw	$t5, 4($t2)			/* word 1: ip, depth */
	lw	$t3, TASK_GRAPH_DEPTH($t6)
	xori	$t5, $t1, STATUS_IE
	ins	$t8, $t5, 6, 1			/* RING_IRQS_OFF = !IE */
	addiu	$t4, $t3, RING_TYPE_ENTRY - RING_TYPE_END
	ins	$t8, $t4, 8, 24
	sw	$t8, 8($t2)			/* word 2: type, flags */
	addiu	$t3, $t3, 1
	sw	$t3, TASK_GRAPH_DEPTH($t6)
	addiu	$t2, $t2, RING_EVENT_SIZE
	sync	4				/* as in trace_entry_ring */
	sw	$t2, CPU_HEAD_RING_CUR($gp)
	lui	$t3, %hi(trace_return)
	bltz	$v1, 5f				/* a leaf */
	addiu	$t3, $t3, %lo(trace_return)
	addu	$v1, $v1, $sp
	sw	$t3, 0($v1)
5:	mtc0	$t1, C0_STATUS
14:	jr	$ra
	move	$ra, $t3
3:
15:	b	2b
	mfc0	$t4, C0_COUNT
4:	mtc0	$t1, C0_STATUS
16:	b	trace_entry_return
	nop
END(trace_entry_graph)

/*
 * A traced function returns here: its result may be in v0 and v1, ra is this very
 * address, and the stack pointer is that of the function's caller. So a walk takes
 * this for a function that was called with trace_return as its return address, and
 * looks among the task's taken returns. trace_returned() stores the real address
 * where ra has been saved.
 */
FUNCTION(trace_return)
	di	$t1				/* [1] */
17:	ehb
	lw	$t2, CPU_HEAD_RING_CUR($gp)
	lw	$t3, CPU_HEAD_RING_GRAPH($gp)
	lw	$t6, CPU_HEAD_CURRENT($gp)
	sltu	$t3, $t2, $t3
	beqz	$t3, 4f
	lw	$t5, TASK_NR_RETURNS($t6)
	lui	$t9, %hi(trace_ops)
	addiu	$t5, $t5, -1
	sll	$t3, $t5, RETURN_SHIFT
	addu	$t3, $t3, $t6
	lw	$t8, %lo(trace_ops)($t9)
	lw	$t4, TAKEN(OPS)
	bne	$t4, $t8, 4f			/* other ops must hear of it */
	lw	$t4, CPU_HEAD_COUNTER($gp)
	beqz	$t4, 3f				/* no GIC: Count */
	lw	$t8, %lo(arch_clock_words)($t9)
	lw	$t4, 0($t4)
2:	lw	$t9, (CPU_HEAD_RING_BASE + HIGH)($gp)
	lw	$a0, CLOCK(LOW)
	lw	$a1, CLOCK(HIGH)
	lw	$a2, (CPU_HEAD_RING_BASE + LOW)($gp)
	xor	$t8, $t8, $t9
	subu	$a0, $t4, $a0			/* since the call */
	subu	$a2, $t4, $a2			/* word 0: delta */
	ins	$t4, $zero, 0, 31
	bne	$t8, $t4, 4f
	sltu	$t8, $a2, $a0
	bne	$a1, $t9, 4f
	sw	$a2, 0($t2)
	bnez	$t8, 4f				/* the call is older than the page */
	lw	$t8, TASK_RETURNS_MISSED($t6)
	srl	$a1, $a0, RING_TICKS_BITS
	or	$a1, $a1, $t8
	bnez	$a1, 4f
	lw	$a1, TAKEN(IP)
	lw	$a2, CPU_HEAD_TEXT($gp)
	lw	$t8, CPU_HEAD_PREEMPT($gp)
	subu	$a1, $a1, $a2
	srl	$a2, $t8, 8
	ins	$t8, $a1, 8, 24
	sw	$t8, 4($t2)			/* word 1: ip, depth */
	lw	$a1, TASK_GRAPH_DEPTH($t6)
	xori	$t8, $t1, STATUS_IE
	ins	$a2, $t8, 6, 1			/* RING_IRQS_OFF = !IE */
	ori	$a2, $a2, RING_RETURNED
	addiu	$a1, $a1, -1
	sw	$a1, TASK_GRAPH_DEPTH($t6)
	ins	$a2, $a1, 8, RING_DEPTH_BITS
	ins	$a2, $a0, 8 + RING_DEPTH_BITS, RING_TICKS_BITS
	sw	$a2, 8($t2)			/* word 2: ticks, depth, flags */
	addiu	$t2, $t2, RING_EVENT_SIZE
	sync	4
	sw	$t2, CPU_HEAD_RING_CUR($gp)
	lw	$ra, TAKEN(RET)
	sw	$t5, TASK_NR_RETURNS($t6)
	jr	$ra
	mtc0	$t1, C0_STATUS
3:	b	2b
	mfc0	$t4, C0_COUNT
4:	mtc0	$t1, C0_STATUS
20:	addiu	$sp, $sp, -32
	.cfi_def_cfa_offset 32
	sw	$ra, 28($sp)
	.cfi_offset 31, -4
	sw	$v0, 16($sp)
	sw	$v1, 20($sp)
	jal	trace_returned
	addiu	$a0, $sp, 28			/* the way back's place */
	lw	$ra, 28($sp)
	lw	$v0, 16($sp)
	lw	$v1, 20($sp)
	jr	$ra
	addiu	$sp, $sp, 32
END(trace_return)

trampoline_end:

	/* Where interrupts are off: arch/arch_lab.h. */
	.section .rodata
	.balign	4
	.globl	trampoline_masked
trampoline_masked:
	.4byte	7b, 8b, 9b, 11b, 12b, 10b, 13b, 14b, 15b, 16b
	.4byte	17b, 20b, 0
