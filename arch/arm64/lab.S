/* SPDX-License-Identifier: MIT */
/*
 * The lab's victims: arch/arch_lab.h. Every register holds a canary at the site but for
 * sp and x28, and the canaries are no addresses of either half: an instruction that reads,
 * writes or jumps through one faults. The stack pointer that a victim returns with is in
 * lab_saved, one slot a CPU.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <arch/arch_lab.h>
#include <frame.h>
#include <regs.h>
#define VICTIM_INSN nop
#include <arch/lab_victim.h>

	lab_canaries 31+9	/* one a register, and nine results */

	/*
	 * A victim loses its stack pointer and its return address on purpose, so
	 * every stack walk ends in it.
	 */
	.cfi_startproc
	.cfi_undefined x30
.macro trash registers:vararg
	.irp	n, \registers
	mov	x\n, #-1
	.endr
.endm

/* Counts in lab_calls[n]: x10 to x13 are free at every kind of site. */
.macro count n
	address	x10, lab_calls
9:	ldxr	x11, [x10]
	mov	x12, #1
	add	x11, x11, x12, lsl #(32 * \n)
	stxr	w13, x11, [x10]
	cbnz	w13, 9b
.endm

/* As trace_entry is called from a function's entry: x30 is in x9. */
.macro counter_entry name, n
	.globl	\name
	.type	\name, @function
\name:
	count	\n
	trash	11, 12, 13, 14, 15, 16, 17
	mov	x10, x30
	mov	x30, x9
	mov	x9, #-1
	ret	x10
	.size	\name, . - \name
.endm
counter_entry lab_count_entry, 0
counter_entry lab_count_entry2, 1

/* And from behind a prologue: any call's due, back through x30. */
.macro counter_call name, n
	.globl	\name
	.type	\name, @function
\name:
	count	\n
	trash	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18
	ret
	.size	\name, . - \name
.endm
counter_call lab_call, 0
counter_call lab_call2, 1

.macro each_saved op
	\op	x19, x20, [sp]
	\op	x21, x22, [sp, #16]
	\op	x23, x24, [sp, #32]
	\op	x25, x26, [sp, #48]
	\op	x27, x29, [sp, #64]
.endm

/* x9 = this CPU's slot. */
.macro saved_slot
	ldr	w9, [x28, #CPU_HEAD_INDEX]
	address	x10, lab_saved
	add	x9, x10, x9, lsl #3
.endm

.macro victim_begin
	sub	sp, sp, #96
	each_saved stp
	str	x30, [sp, #80]
	saved_slot
	mov	x10, sp
	str	x10, [x9]
	cbz	x0, 2f
1:	sub	x0, x0, #1
	cbnz	x0, 1b
2:	cbz	x1, 2f
1:	nop
	sub	x1, x1, #1
	cbnz	x1, 1b
2:	address	x16, lab_canary
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, \
		20, 21, 22, 23, 24, 25, 26, 27, 29, 30
	ldr	x\n, [x16, #8 * \n]
	.endr
	ldr	x16, [x16, #8 * 16]
.endm

.macro compare_canaries differs, registers:vararg
	address	x16, lab_canary
	.irp	n, \registers
	ldr	x17, [x16, #8 * \n]
	cmp	x\n, x17
	b.ne	\differs
	.endr
.endm

/* kept: registers that the site may not change. A jump to the next 1 means that one
 * has changed. */
.macro victim_end kept:vararg
	compare_canaries 1f, \kept
	mov	x0, #0
	b	2f
1:	mov	x0, #LAB_REGS
2:	saved_slot
	ldr	x9, [x9]
	mov	x10, sp
	cmp	x10, x9
	b.eq	1f
	orr	x0, x0, #LAB_SP
1:	mov	sp, x9
	ldr	x30, [sp, #80]
	each_saved ldp
	add	sp, sp, #96
	ret
.endm

#define KEPT_AT_ENTRY \
	0, 1, 2, 3, 4, 5, 6, 7, 8, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 29, 30
#define KEPT_BY_CALLS 19, 20, 21, 22, 23, 24, 25, 26, 27, 29

#include <site.h>

/* Two words at a function's entry. */
	.type	lab_pair_run, @function
lab_pair_run:
	victim_begin
before lab_pair
lab_pair_site:
	nop
	nop
behind lab_pair
	victim_end KEPT_AT_ENTRY
	.size	lab_pair_run, . - lab_pair_run
victim_data lab_pair

/* One word, a call behind the prologue. */
	.type	lab_word_run, @function
lab_word_run:
	victim_begin
before lab_word
lab_word_site:
	nop
behind lab_word
	victim_end KEPT_BY_CALLS
	.size	lab_word_run, . - lab_word_run
victim_data lab_word

/* A call of two words behind the prologue, through x16. */
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
9:	nop
	jump_record lab_victim_jump_yes
behind lab_victim_jump
	victim_end KEPT_AT_ENTRY
	.globl	lab_victim_jump_yes
lab_victim_jump_yes:
	count	0
	b	lab_victim_jump_b2
	.size	lab_victim_jump_run, . - lab_victim_jump_run
victim_data lab_victim_jump

/*
 * A function whose return address is taken, and its caller. The function looks at its
 * arguments. If one has changed, it returns no results, and its caller sees that.
 */
#define RESULTS 0, 1, 2, 3, 4, 5, 6, 7, 8
.macro give_results
	.irp	n, RESULTS
	ldr	x\n, [x16, #8 * (31 + \n)]
	.endr
	trash	9, 10, 11, 12, 13, 14, 15, 16, 17, 18
.endm

/* As victim_end, behind the call. */
.macro caller_end
	address	x16, lab_canary
	.irp	n, RESULTS
	ldr	x17, [x16, #8 * (31 + \n)]
	cmp	x\n, x17
	b.ne	1f
	.endr
	victim_end KEPT_BY_CALLS
.endm

	.type	lab_victim_return_run, @function
	.type	lab_victim_return_site, @function
lab_victim_return_run:
	victim_return

/*
 * unsigned int lab_registers(unsigned long turns, unsigned long seed): see
 * arch/arch_lab.h. sp and x28 have values of their own. x0 counts the turns. The
 * caller's registers are stored at sp, then the seed.
 */
#define TOLD_APART 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, \
		22, 23, 24, 25, 26, 27, 29
FUNCTION(lab_registers)
	.cfi_undefined x30		/* x30 holds a value, too: walks end here */
	sub	sp, sp, #96
	each_saved stp
	stp	x30, x1, [sp, #80]
	.irp	n, TOLD_APART, 30
	add	x\n, x1, #\n
	.endr
1:	sub	x0, x0, #1
	cbnz	x0, 1b
	ldr	x0, [sp, #88]
	cmp	x0, x1
	mov	x0, #1
	b.ne	9f
	add	x0, x1, #30
	cmp	x0, x30
	mov	x0, #30
	b.ne	9f
	.irp	n, TOLD_APART
	mov	x0, #\n
	add	x30, x1, #\n
	cmp	x30, x\n
	b.ne	9f
	.endr
	mov	x0, #0
9:	each_saved ldp
	ldr	x30, [sp, #80]
	add	sp, sp, #96
	ret
END(lab_registers)

/* void lab_lose_stack(void *sp): see arch/arch_lab.h. */
FUNCTION(lab_lose_stack)
	.cfi_undefined x30
	mov	sp, x0
	mov	x0, #0
	str	xzr, [x0]
1:	b	1b
END(lab_lose_stack)
