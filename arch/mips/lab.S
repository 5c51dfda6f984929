/* SPDX-License-Identifier: MIT */
/*
 * The lab's victims: arch/arch_lab.h. Every register holds a canary at the site but
 * for sp, gp, k0 and k1, and the canaries are odd addresses that nothing is
 * mapped at: an instruction that reads, writes or jumps through one faults. The
 * stack pointer that a victim returns with is in lab_saved, one slot a CPU.
 */
#include <frame.h>
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <arch/arch_lab.h>
#define VICTIM_INSN nop
#include <arch/lab_victim.h>
#include <site.h>

	.set noreorder
	.set noat

	lab_canaries 34, 0x5ab0c0d1, 0x01010100	/* one a register, and two results */

	/*
	 * A victim loses its stack pointer and its return address on purpose, so
	 * every stack walk ends in it.
	 */
	CFI_STARTPROC
	.cfi_undefined 31
/*
 * As trace_entry is called: ra = behind the site, at = the function's own ra. It may
 * change the registers that arch/mips/trampoline.S lists as free.
 */
	.macro	add_one n
	lui	$t0, %hi(lab_calls + 4 * \n)
1:	ll	$t1, %lo(lab_calls + 4 * \n)($t0)
	addiu	$t1, $t1, 1
	sc	$t1, %lo(lab_calls + 4 * \n)($t0)
	beqz	$t1, 1b
	nop
	.endm

	.macro	count n
	add_one	\n
	li	$t0, -1
	.irp	reg, $t1, $t2, $t3, $t4, $t5, $t6, $t8, $t9, $v1
	move	\reg, $t0
	.endr
	mthi	$t0
	mtlo	$t0
	jr	$ra
	move	$ra, $at
	.endm

	/* As o32 has _mcount: it gives back the stack that the delay slot took. */
	.globl	lab_count_stub
	.type	lab_count_stub, @function
lab_count_stub:
	addiu	$sp, $sp, 8
	count	0
	.size	lab_count_stub, . - lab_count_stub

	.globl	lab_count
	.type	lab_count, @function
lab_count:
	count	0
	.size	lab_count, . - lab_count

	.globl	lab_count2
	.type	lab_count2, @function
lab_count2:
	count	1
	.size	lab_count2, . - lab_count2

	.macro	each_saved op
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8
	\op	$s\n, 16 + 4 * \n($sp)
	.endr
	\op	$ra, 52($sp)
	.endm

	/* t0 = this CPU's slot, less %lo(lab_saved). */
	.macro	saved_slot
	lw	$t0, CPU_HEAD_INDEX($gp)
	sll	$t0, $t0, 2
	lui	$t1, %hi(lab_saved)
	addu	$t0, $t0, $t1
	.endm

	/* Both loops go round once more than they are told to. */
	.macro	victim_begin
	addiu	$sp, $sp, -56
	each_saved sw
	saved_slot
	sw	$sp, %lo(lab_saved)($t0)
1:	bnez	$a0, 1b
	addiu	$a0, $a0, -1
1:	nop
	bnez	$a1, 1b
	addiu	$a1, $a1, -1
	lui	$at, %hi(lab_canary)
	addiu	$at, %lo(lab_canary)
	.irp	n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, \
		19, 20, 21, 22, 23, 24, 25, 30, 31
	lw	$\n, 4 * \n($at)
	.endr
	lw	$at, 4($at)
	.endm

	/* Let t0 be the canaries' address, t1 spoilt. */
	.macro	compare_canaries differs, regs:vararg
	lui	$t0, %hi(lab_canary)
	addiu	$t0, %lo(lab_canary)
	.irp	n, \regs
	lw	$t1, 4 * \n($t0)
	bne	$\n, $t1, \differs
	nop
	.endr
	.endm

	/* A jump to the next 1 means that a register has changed. */
	.macro	victim_end regs:vararg
	compare_canaries 1f, \regs
	b	2f
	li	$v0, 0
1:	li	$v0, LAB_REGS
2:	saved_slot
	lw	$t0, %lo(lab_saved)($t0)
	beq	$sp, $t0, 1f
	nop
	ori	$v0, $v0, LAB_SP
1:	move	$sp, $t0
	each_saved lw
	jr	$ra
	addiu	$sp, $sp, 56
	.endm

	/* Behind a site: v0, a0 to a3, t7, s0 to s8, and ra, which comes back from
	 * at. */
	.macro	victim_site_end
	victim_end 2, 4, 5, 6, 7, 15, 16, 17, 18, 19, 20, 21, 22, 23, 30, 31
	.endm

	/* A `jal` and its delay slot. */
	.type	lab_jal_run, @function
lab_jal_run:
	victim_begin
	before	lab_jal, move $at, $ra
lab_jal_site:
	nop
	nop
	behind	lab_jal
	victim_site_end
	.size	lab_jal_run, . - lab_jal_run
	victim_data lab_jal

	/* The same, but no interrupt knows it for a site: irq.c. */
	.type	lab_link_run, @function
lab_link_run:
	victim_begin
	move	$at, $ra
	nop
	before	lab_link
lab_link_site:
	nop
	nop
	behind	lab_link
	victim_site_end
	.size	lab_link_run, . - lab_link_run
	victim_data lab_link

	/* Five words: lui, addiu, move, jalr and its delay slot. */
	.type	lab_long_run, @function
lab_long_run:
	victim_begin
	before	lab_long
lab_long_site:
	.fill	5, 4, 0
	behind	lab_long
	victim_site_end
	.size	lab_long_run, . - lab_long_run
	victim_data lab_long

	.type	lab_victim_own_run, @function
lab_victim_own_run:
	victim_begin
	own_site lab_victim_own, addiu $t4, $sp, 52
	victim_site_end
	.size	lab_victim_own_run, . - lab_victim_own_run
	victim_data lab_victim_own

	/* A jump label and its delay slot. */
	.type	lab_victim_jump_run, @function
lab_victim_jump_run:
	victim_begin
	before	lab_victim_jump
lab_victim_jump_site:
9:	nop
	nop
	jump_record lab_victim_jump_yes
	behind	lab_victim_jump
	victim_end 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, \
		20, 21, 22, 23, 24, 25, 30, 31
	.globl	lab_victim_jump_yes
lab_victim_jump_yes:
	add_one	0
	b	lab_victim_jump_b2
	nop
	.size	lab_victim_jump_run, . - lab_victim_jump_run
	victim_data lab_victim_jump

	/*
	 * A leaf whose return address is taken, and its caller. The leaf looks at its
	 * arguments. If one has changed, it returns no results, and its caller sees
	 * that. Its label is its site's, which the table needs.
	 */
	.type	lab_victim_return_run, @function
lab_victim_return_run:
	victim_begin
	jal	lab_victim_return_b0
	nop
	lui	$t0, %hi(lab_canary)
	addiu	$t0, %lo(lab_canary)
	lw	$t1, 4 * 32($t0)
	bne	$v0, $t1, 1f
	lw	$t1, 4 * 33($t0)
	bne	$v1, $t1, 1f
	nop
	victim_end 16, 17, 18, 19, 20, 21, 22, 23, 30

	.cfi_endproc
	CFI_STARTPROC		/* a leaf like any, with its site */
	.type	lab_victim_return_site, @function
	own_site lab_victim_return, move $t4, $zero
	compare_canaries 1f, 2, 4, 5, 6, 7, 15
	lw	$v0, 4 * 32($t0)
	lw	$v1, 4 * 33($t0)
1:	jr	$ra
	nop
	.cfi_endproc
	.size	lab_victim_return_run, \
		lab_victim_return_site - lab_victim_return_run
	.size	lab_victim_return_site, . - lab_victim_return_site
	victim_data lab_victim_return

/*
 * unsigned int lab_registers(unsigned long turns, unsigned long seed): see
 * arch/arch_lab.h. sp and gp have values of their own, k0 and k1 are lost in any trap.
 * a0 counts the turns. The caller's registers are stored below sp, then the seed.
 */
	.section .text
FUNCTION(lab_registers)
	.cfi_undefined 31		/* ra holds a value, too: walks end here */
	addiu	$sp, $sp, -48
	place = 0
	.irp	n, 16, 17, 18, 19, 20, 21, 22, 23, 30, 31
	sw	$\n, 4 * place($sp)
	place = place + 1
	.endr
	sw	$a1, 40($sp)
	addiu	$v0, $a1, 32
	mthi	$v0
	addiu	$v0, $a1, 33
	mtlo	$v0
	.irp	n, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, \
		21, 22, 23, 24, 25, 30, 31
	addiu	$\n, $a1, \n
	.endr
1:	addiu	$a0, $a0, -1
	bnez	$a0, 1b
	nop
	lw	$a0, 40($sp)
	addiu	$a0, $a0, 2
	bne	$a0, $v0, 8f
	addiu	$a0, $a0, -2
	bne	$a0, $a1, 9f
	li	$v0, 5
	.irp	n, 1, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, \
		21, 22, 23, 24, 25, 30, 31
	addiu	$a0, $a1, \n
	bne	$a0, $\n, 9f
	li	$v0, \n
	.endr
	mfhi	$at
	addiu	$a0, $a1, 32
	bne	$a0, $at, 9f
	li	$v0, 32
	mflo	$at
	addiu	$a0, $a1, 33
	bne	$a0, $at, 9f
	li	$v0, 33
	b	9f
	li	$v0, 0
8:	li	$v0, 2
9:
	place = 0
	.irp	n, 16, 17, 18, 19, 20, 21, 22, 23, 30, 31
	lw	$\n, 4 * place($sp)
	place = place + 1
	.endr
	jr	$ra
	addiu	$sp, $sp, 48
END(lab_registers)

/* void lab_lose_stack(void *sp): see arch/arch_lab.h. */
FUNCTION(lab_lose_stack)
	.cfi_undefined 31
	move	$sp, $a0
	sw	$zero, 0($zero)
1:	b	1b
	nop
END(lab_lose_stack)
