/* SPDX-License-Identifier: MIT */
/*
 * The lab's victims: arch/arch_lab.h. Every register holds a canary at the site but
 * for sp, gp and tp, and the canaries are no addresses of Sv39: an instruction
 * that reads, writes or jumps through one faults. The stack pointer that a victim
 * returns with is in lab_saved, one slot a CPU.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <arch/arch_lab.h>
#define VICTIM_INSN nop
#include <arch/lab_victim.h>

	/* Each instruction stands where it is written. */
	.option	norelax
	.option	norvc

	lab_canaries 32+2	/* one a register, and two results */

	/*
	 * A victim loses its stack pointer and its return address on purpose, so
	 * every stack walk ends in it.
	 */
	.cfi_startproc
	.cfi_undefined ra
.macro trash registers:vararg
	.irp	n, \registers
	li	x\n, -1
	.endr
.endm

/* Counts in lab_calls[n]: t1 and t3 are free at every kind of site. */
.macro count n
	lla	t1, lab_calls + 4 * \n
	li	t3, 1
	amoadd.w zero, t3, (t1)
.endm

/* As trace_entry is called from a function's entry: back through t0. */
.macro counter_entry name, n
	.type	\name, @function
\name:
	count	\n
	trash	6, 28, 29, 30, 31
	jr	t0
	.size	\name, . - \name
.endm
counter_entry lab_count_entry, 0
counter_entry lab_count_entry2, 1

/* And from behind a prologue: any call's due, back through ra. */
.macro counter_call name, n
	.globl	\name
	.type	\name, @function
\name:
	count	\n
	trash	5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17, 28, 29, 30, 31
	ret
	.size	\name, . - \name
.endm
counter_call lab_call, 0
counter_call lab_call2, 1

.macro each_saved op
	\op	ra, 0(sp)
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	\op	s\n, 8 + 8 * \n(sp)
	.endr
.endm

/* t0 = this CPU's slot. */
.macro saved_slot
	lwu	t0, CPU_HEAD_INDEX(tp)
	slli	t0, t0, 3
	lla	t1, lab_saved
	add	t0, t0, t1
.endm

.macro victim_begin
	addi	sp, sp, -112
	each_saved sd
	saved_slot
	sd	sp, (t0)
	beqz	a0, 2f
1:	addi	a0, a0, -1
	bnez	a0, 1b
2:	beqz	a1, 2f
1:	nop
	addi	a1, a1, -1
	bnez	a1, 1b
2:	lla	t0, lab_canary
	.irp	n, 1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, \
		21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	ld	x\n, 8 * \n(t0)
	.endr
	ld	t0, 8 * 5(t0)
.endm

.macro compare_canaries differs, registers:vararg
	lla	t0, lab_canary
	.irp	n, \registers
	ld	t1, 8 * \n(t0)
	bne	x\n, t1, \differs
	.endr
.endm

/* kept: registers that the site may not change. A jump to the next 1 means that one
 * has changed. */
.macro victim_end kept:vararg
	compare_canaries 1f, \kept
	li	a0, 0
	j	2f
1:	li	a0, LAB_REGS
2:	saved_slot
	ld	t0, (t0)
	beq	sp, t0, 1f
	ori	a0, a0, LAB_SP
1:	mv	sp, t0
	each_saved ld
	addi	sp, sp, 112
	ret
.endm

#define KEPT_AT_ENTRY \
	1, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, \
	24, 25, 26, 27
#define KEPT_BY_CALLS \
	8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27

#include <site.h>

/*
 * A pair at a function's entry, through t0. The targets' auipc differ by one page,
 * so that a pair of one's auipc and the other's jalr leads into bytes that are
 * filled with zeros here, which are no instruction:
 *
 *	+0x000	lab_pair_a	at site - 0x200: page 0, rest -0x200
 *	+0x040	lab_pair_near	page 0 too: its auipc is lab_pair_a's
 *	+0x100	zeros		page of a, rest of b
 *	+0x1000	zeros		page of b, rest of a
 *	+0x1100	lab_pair_b	at site + 0xf00: page 1, rest -0x100
 */
	.balign	16
	.globl	lab_pair_a, lab_pair_near, lab_pair_b
	.type	lab_pair_a, @function
lab_pair_a:
	j	lab_count_entry
	.org	lab_pair_a + 0x40, 0
lab_pair_near:
	j	lab_count_entry2
	.org	lab_pair_a + 0x200 - 8, 0
before lab_pair
lab_pair_site:
	nop
	nop
behind lab_pair
	victim_end KEPT_AT_ENTRY
	.org	lab_pair_a + 0x1100, 0
lab_pair_b:
	j	lab_count_entry2
lab_pair_run:
	victim_begin
	j	lab_pair_b0
	.size	lab_pair_a, . - lab_pair_a
victim_data lab_pair

#ifdef __riscv_compressed
/* The same kind, both words misaligned (H10). */
	.balign	4
	.type	lab_odd_run, @function
lab_odd_run:
	victim_begin
	.option	rvc
	c.nop
	.option	norvc
before lab_odd
lab_odd_site:
	nop
	nop
behind lab_odd
	victim_end KEPT_AT_ENTRY
	.size	lab_odd_run, . - lab_odd_run
	.balign	4
victim_data lab_odd
#endif

/* A call behind the prologue, through ra: two words, or one. */
	.balign	4
	.type	lab_far_run, @function
lab_far_run:
	victim_begin
before lab_far
lab_far_site:
	nop
	nop
behind lab_far
	victim_end KEPT_BY_CALLS
	.size	lab_far_run, . - lab_far_run
victim_data lab_far

	.type	lab_jal_run, @function
lab_jal_run:
	victim_begin
before lab_jal
lab_jal_site:
	nop
behind lab_jal
	victim_end KEPT_BY_CALLS
	.size	lab_jal_run, . - lab_jal_run
victim_data lab_jal

/* A site as the compiler makes it: site.h, as all that depends on where it stands. */
	.type	lab_victim_own_run, @function
	.type	lab_victim_own_site, @function
lab_victim_own_run:
	victim_own

/* A jump label. */
	.type	lab_victim_jump_run, @function
lab_victim_jump_run:
	victim_begin
before lab_victim_jump
lab_victim_jump_site:
#ifdef __riscv_compressed
	.option	rvc
9:	c.nop
	.option	norvc
#else
9:	nop
#endif
	jump_record lab_victim_jump_yes
behind lab_victim_jump
	victim_end KEPT_AT_ENTRY
lab_victim_jump_yes:
	count	0
	j	lab_victim_jump_b2
	.size	lab_victim_jump_run, . - lab_victim_jump_run
	.balign	4
victim_data lab_victim_jump

/*
 * A function whose return address is taken, and its caller. The function looks at its
 * arguments. If one has changed, it returns no results, and its caller sees that.
 */
.macro give_results
	ld	a0, 8 * 32(t0)
	ld	a1, 8 * 33(t0)
	trash	5, 6, 7, 12, 13, 14, 15, 16, 17, 28, 29, 30, 31
.endm

/* As victim_end, behind the call. */
.macro caller_end
	lla	t0, lab_canary
	ld	t1, 8 * 32(t0)
	bne	a0, t1, 1f
	ld	t1, 8 * 33(t0)
	bne	a1, t1, 1f
	victim_end KEPT_BY_CALLS
.endm

	.type	lab_victim_return_run, @function
	.type	lab_victim_return_site, @function
lab_victim_return_run:
	victim_return

/*
 * unsigned int lab_registers(unsigned long turns, unsigned long seed): see
 * arch/arch_lab.h. sp, gp and tp have values of their own. a0 counts the turns. The
 * caller's registers are stored below sp, then the seed.
 */
FUNCTION(lab_registers)
	.cfi_undefined ra		/* ra holds a value, too: walks end here */
	addi	sp, sp, -128
	place = 0
	.irp	n, 1, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27
	sd	x\n, 8 * place(sp)
	place = place + 1
	.endr
	sd	a1, 120(sp)
	.irp	n, 1, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, \
		24, 25, 26, 27, 28, 29, 30, 31
	addi	x\n, a1, \n
	.endr
1:	addi	a0, a0, -1
	bnez	a0, 1b
	ld	a0, 120(sp)
	beq	a0, a1, 2f
	li	a0, 11
	j	9f
2:	addi	a0, a1, 1
	beq	a0, ra, 3f
	li	a0, 1
	j	9f
3:
	.irp	n, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, \
		24, 25, 26, 27, 28, 29, 30, 31
	li	a0, \n
	addi	ra, a1, \n
	bne	ra, x\n, 9f
	.endr
	li	a0, 0
9:
	place = 0
	.irp	n, 1, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27
	ld	x\n, 8 * place(sp)
	place = place + 1
	.endr
	addi	sp, sp, 128
	ret
END(lab_registers)

/* void lab_lose_stack(void *sp): see arch/arch_lab.h. */
FUNCTION(lab_lose_stack)
	.cfi_undefined ra
	mv	sp, a0
	sd	zero, 0(zero)
1:	j	1b
END(lab_lose_stack)
