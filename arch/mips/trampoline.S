/*
 * Where sites call. On entry: ra = the site + 8 (ip), at = the function's own
 * return address (parent), sp as the prologue left it. The way back is `jr ra`
 * with `move ra, at` in its delay slot: a leaf has ra nowhere else. The two are
 * one for a preemption, since an interrupt in the slot returns to the `jr`.
 *
 * Kept: a0..a3, t7 (static chain), v0 (holds it at the site), s0..s8, sp, gp;
 * t0..t6, t8, t9, v1, hi, lo are free: GCC emits the call as one of unknown
 * clobbers, behind a barrier that keeps the body's instructions after it.
 *
 * In brackets: instructions from the site's `move` on.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <arch/ring_event.h>
#include <frame.h>
#include <regs.h>

#ifdef __MIPSEL__
#define BASE_LOW 0 /* in the 64-bit ring.base */
#define BASE_HIGH 4
#else
#define BASE_LOW 4
#define BASE_HIGH 0
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

	/* Registers that C may change and the function may need; t1 keeps the
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
 * RECORD=runtime the call is what tells the tracer of its site.
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
 * t0 = ops for all that follow; trace_ops is loaded once. For trace_entry_ring t4 = the GIC's
 * counter, and t9 = the upper half of the address of what stands in .data.entry.
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
 * One event, interrupts off: t1 = Status before, t2 = the slot. The clock is
 * read as arch_clock() does. Two cases are left to C: a carry is due, or the clock's
 * high word is not the page's any more. Otherwise the high word (arch_clock_high) differs
 * from that of the page's base in bit 31 alone, which is the low word's.
 */
TRAMPOLINE(trace_entry_ring)
	di	$t1				/* [9] */
7:	ehb
	lw	$t2, CPU_HEAD_RING_CUR($gp)
	lw	$t3, CPU_HEAD_RING_END($gp)
	sltu	$t3, $t2, $t3
	beqz	$t3, trace_ring_full
	lw	$t6, %lo(arch_clock_high)($t9)	/* [15] */
	beqz	$t4, 2f				/* no GIC: Count */
	lw	$t8, (CPU_HEAD_RING_BASE + BASE_LOW)($gp)
	lw	$t5, 0($t4)
1:	lw	$t9, (CPU_HEAD_RING_BASE + BASE_HIGH)($gp)
	subu	$t3, $t5, $t8			/* [20] word 0: delta */
	xor	$t6, $t6, $t9
	ins	$t5, $zero, 0, 31
	bne	$t6, $t5, trace_ring_full
	lw	$t4, CPU_HEAD_TEXT($gp)
	lw	$t6, CPU_HEAD_PREEMPT($gp)
	sw	$t3, 0($t2)
	subu	$t5, $ra, $t4
	sll	$t5, $t5, 8
	ins	$t5, $t6, 0, 8
	sw	$t5, 4($t2)			/* [30] word 1: ip, depth */
	xori	$t8, $t1, STATUS_IE
	srl	$t6, $t6, 8
	ins	$t6, $t8, 6, 1			/* RING_IRQS_OFF = !IE */
	subu	$t5, $at, $t4
	sll	$t5, $t5, 8
	ins	$t5, $t6, 0, 8
	sw	$t5, 8($t2)			/* [37] word 2: parent, flags */
	addiu	$t2, $t2, RING_EVENT_SIZE
	sync	4				/* the event before its count;
						   pairs with readers' acquire
						   of ring.cur */
	sw	$t2, CPU_HEAD_RING_CUR($gp)
	mtc0	$t1, C0_STATUS
8:	jr	$ra				/* [42] */
	move	$ra, $at			/* [43] */
2:
9:	b	1b
	mfc0	$t5, C0_COUNT			/* [45] with this detour */
END(trace_entry_ring)

/* trace_ring_slow(ip, parent, context), interrupts still off. */
TRAMPOLINE(trace_ring_full)
	lw	$t3, CPU_HEAD_RING_END($gp)
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

/* trace_take_return(ip, parent, ops, sp): sp as the prologue left it. What it puts
 * into the frame instead of at is where a leaf will return to. */
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

/*
 * A traced function returns here: its result may be in v0 and v1, ra is this very
 * address, and the stack pointer is that of the function's caller. So a walk takes
 * this for a function that was called with trace_return as its return address, and
 * looks among the task's taken returns. trace_returned() stores the real address
 * where ra has been saved.
 */
FUNCTION(trace_return)
	addiu	$sp, $sp, -32
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
	.4byte	7b, 8b, 9b, 11b, 12b, 10b, 0
