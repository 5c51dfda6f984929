/* SPDX-License-Identifier: MIT */
/*
 * The lab's victims: arch/arch_lab.h. Every register but r15 holds a canary at the site, and the
 * canaries are addresses that no table maps: an instruction that reads, writes or jumps
 * through one faults. The stack pointer that a victim returns with is in lab_saved, one slot a CPU.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <arch/arch_lab.h>
#include <frame.h>
#include <layout.h>
#define VICTIM_INSN nop	0
#include <arch/lab_victim.h>

	lab_canaries 15+2	/* one a register, and two results */

	/*
	 * A victim loses its stack pointer and its return address on purpose, so
	 * every stack walk ends in it.
	 */
	.cfi_startproc
	.cfi_undefined %r14

/* Counts in lab_calls[n]: r1 is free. */
.macro count n
	larl	%r1, lab_calls
	asi	4 * \n(%r1), 1
.endm

/* \at = this CPU's slot. */
.macro saved_slot at
	lg	%r1, LC_CPU
	llgf	%r1, CPU_HEAD_INDEX(%r1)
	sllg	%r1, %r1, 3
	larl	\at, lab_saved
	agr	\at, %r1
.endm

.macro victim_begin
	stmg	%r6, %r15, 48(%r15)
	aghi	%r15, -SAVE_AREA
	saved_slot %r4
	stg	%r15, 0(%r4)
	ltgr	%r2, %r2
	je	2f
1:	aghi	%r2, -1
	jne	1b
2:	ltgr	%r3, %r3
	je	2f
1:	nop	0
	aghi	%r3, -1
	jne	1b
2:	larl	%r1, lab_canary
	lg	%r0, 0(%r1)
	lmg	%r2, %r14, 16(%r1)
	lg	%r1, 8(%r1)
.endm

.macro compare_canaries differs, registers:vararg
	larl	%r1, lab_canary
	.irp	n, \registers
	clg	%r\n, 8 * \n(%r1)
	jne	\differs
	.endr
.endm

/* kept: registers that the site may not change. A jump to the next 1 means that one
 * has changed. */
.macro victim_end kept:vararg
	compare_canaries 1f, \kept
	lghi	%r2, 0
	j	2f
1:	lghi	%r2, LAB_REGS
2:	saved_slot %r4
	lg	%r4, 0(%r4)
	cgr	%r15, %r4
	je	1f
	oill	%r2, LAB_SP
1:	lgr	%r15, %r4
	lmg	%r6, %r15, SAVE_AREA + 48(%r15)
	br	%r14
.endm

#define KEPT_AT_ENTRY 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
#define KEPT_BY_CALLS 6, 7, 8, 9, 10, 11, 12, 13

#include <site.h>

/* A brcl or a brasl, or three nopr. */
	.type	lab_six_run, @function
lab_six_run:
	victim_begin
before lab_six
lab_six_site:
	.short	0xc004, 0, 0
behind lab_six
	victim_end KEPT_AT_ENTRY
	.size	lab_six_run, . - lab_six_run
victim_data lab_six

/*
 * As trace_entry is called from a function's entry: only r1 is free, which has the way back.
 * These stand so near behind lab_six that both halfwords of the distance begin with a byte 0: no
 * instruction does.
 */
.macro counter name, n
	.globl	\name
	.type	\name, @function
\name:
	stg	%r2, AREA_R2(%r15)
	larl	%r2, lab_calls
	asi	4 * \n(%r2), 1
	lg	%r2, AREA_R2(%r15)
	b	0(%r1)
	.size	\name, . - \name
.endm
counter lab_count_entry, 0
counter lab_count_entry2, 1

/* A site as the compiler makes it: it begins a function. */
	.type	lab_victim_own_run, @function
	.type	lab_victim_own_site, @function
lab_victim_own_run:
	victim_begin
before lab_victim_own
	.size	lab_victim_own_run, . - lab_victim_own_run
lab_victim_own_site:
	own_site lab_victim_own_site
behind lab_victim_own
	victim_end KEPT_AT_ENTRY
	.size	lab_victim_own_site, . - lab_victim_own_site
victim_data lab_victim_own

/* A jump label. */
	.type	lab_victim_jump_run, @function
lab_victim_jump_run:
	victim_begin
before lab_victim_jump
lab_victim_jump_site:
9:	brc	0, .
	jump_record lab_victim_jump_yes
behind lab_victim_jump
	victim_end KEPT_AT_ENTRY
	.globl	lab_victim_jump_yes
lab_victim_jump_yes:
	count	0
	j	lab_victim_jump_b2
	.size	lab_victim_jump_run, . - lab_victim_jump_run
victim_data lab_victim_jump

/*
 * A function whose return address is taken, and its caller. The function looks at its
 * arguments. If one has changed, it returns no results, and its caller sees that.
 */
	.type	lab_victim_return_run, @function
	.type	lab_victim_return_site, @function
lab_victim_return_run:
	victim_begin
	brasl	%r14, lab_victim_return_b0
	larl	%r1, lab_canary
	clg	%r2, 8 * 15(%r1)
	jne	1f
	clg	%r3, 8 * 16(%r1)
	jne	1f
	victim_end KEPT_BY_CALLS
	.cfi_endproc
	.cfi_startproc		/* a function like any, with its site first */
before lab_victim_return
	.size	lab_victim_return_run, . - lab_victim_return_run
lab_victim_return_site:
	own_site lab_victim_return_site
behind lab_victim_return
	compare_canaries 1f, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
	lmg	%r2, %r3, 8 * 15(%r1)
	.irp	n, 0, 1, 4, 5
	lghi	%r\n, -1
	.endr
1:	br	%r14
	.cfi_endproc
	.size	lab_victim_return_site, . - lab_victim_return_site
victim_data lab_victim_return

/*
 * unsigned int lab_registers(unsigned long turns, unsigned long seed): see
 * arch/arch_lab.h. r15 has a value of its own, r3 the seed, r2 counts the turns. Of r0 it
 * tells 16.
 */
#define TOLD_APART 0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
#define REGISTERS_FRAME (SAVE_AREA + 8)
FUNCTION(lab_registers)
	.cfi_undefined %r14		/* r14 holds a value, too: walks end here */
	stmg	%r6, %r15, 48(%r15)
	aghi	%r15, -REGISTERS_FRAME
	stg	%r3, SAVE_AREA(%r15)
	.irp	n, TOLD_APART
	lgr	%r\n, %r3
	aghi	%r\n, \n + 1
	.endr
1:	brctg	%r2, 1b
	clg	%r3, SAVE_AREA(%r15)
	lghi	%r2, 3
	jne	9f
	.irp	n, TOLD_APART
	lg	%r3, SAVE_AREA(%r15)
	aghi	%r3, \n + 1
	cgr	%r\n, %r3
	.if	\n
	lghi	%r2, \n
	.else
	lghi	%r2, 16
	.endif
	jne	9f
	.endr
	lghi	%r2, 0
9:	lmg	%r6, %r15, REGISTERS_FRAME + 48(%r15)
	br	%r14
END(lab_registers)

/* void lab_lose_stack(void *sp): see arch/arch_lab.h. */
FUNCTION(lab_lose_stack)
	.cfi_undefined %r14
	lgr	%r15, %r2
	lghi	%r1, 0
	stg	%r1, 0(%r1)
1:	j	1b
END(lab_lose_stack)
