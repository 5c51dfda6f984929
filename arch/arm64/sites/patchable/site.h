/* SPDX-License-Identifier: MIT */
/*
 * arm64, SITES=patchable: two nop at a function's entry.
 *
 *			compiled	fixed		off	on
 *	site + 0	nop		mov x9, x30
 *	site + 4	nop				nop	bl trace_entry
 *
 * A task preempted between the two words has its return address in x9, which is right
 * for either second word: there the ABI lets no function find anything in x9. The
 * trampolines bring x30 back from there.
 */
#ifndef ARCH_ARM64_SITE_H
#define ARCH_ARM64_SITE_H

#ifndef SITE_FORMAT
#define SITE_FORMAT "patchable"
#define SITE_RECORD 0 /* bytes that the compiler's record lies before the site */
#endif

#ifndef __ASSEMBLER__
#define SITE_EXPECTED "1f 20 03 d5 twice, two nop"
#define SITE_LENGTH 8

static inline bool site_is_compiled(const u32 *insn)
{
	return insn[0] == INSN_NOP && insn[1] == INSN_NOP;
}

static inline void site_write_fixed(unsigned long site, long delta)
{
	*(volatile u32 *)(site + (unsigned long)delta) = INSN_MOV_X9_LR;
}

#define SITE_FORM 4, 4 /* the lab's */
#else
/* clang-format off */

/*
 * There the ABI lets x0..x8, x18 (static chain), x19..x29, sp and x30 carry something, and
 * x30 is in x9. For a stack walk a trampoline's return address is in a column of its
 * own (64), whose value is in x30, and the function's x30 is in x9.
 */
#define IP x30
#define PARENT x9

.macro site_regs
	.cfi_register 64, x30
	.cfi_register x30, x9
.endm
#define TRAMPOLINE(name) FUNCTION(name); .cfi_return_column 64; site_regs

#define SAVE_DAIF 80
#define SAVE_IP 88
#define SAVE_LINK 104
#define SAVE_SIZE 112

.macro arguments op
	\op	x0, x1, [sp]
	\op	x2, x3, [sp, #16]
	\op	x4, x5, [sp, #32]
	\op	x6, x7, [sp, #48]
	\op	x8, x18, [sp, #64]
.endm

.macro save
	sub	sp, sp, #SAVE_SIZE
	.cfi_def_cfa_offset SAVE_SIZE
	str	x9, [sp, #SAVE_LINK]
	.cfi_offset x30, SAVE_LINK - SAVE_SIZE
	stp	x11, x30, [sp, #SAVE_DAIF]
	.cfi_offset 64, SAVE_IP - SAVE_SIZE
	arguments stp
.endm

.macro restore
	arguments ldp
	ldp	x11, x30, [sp, #SAVE_DAIF]
	.cfi_register 64, x30
	ldr	x9, [sp, #SAVE_LINK]
	.cfi_register x30, x9
	add	sp, sp, #SAVE_SIZE
	.cfi_def_cfa_offset 0
.endm

/* Back to the site. Through the stack, so that a walk finds both addresses at each step. */
.macro back
	.cfi_remember_state
	str	x9, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x30, -16
	mov	x9, x30
	.cfi_register 64, x9
	ldr	x30, [sp], #16
	.cfi_def_cfa_offset 0
	.cfi_same_value x30
	ret	x9
	.cfi_restore_state
.endm

/* For trace_entry_graph: a function has no frame yet at its entry. x15: see there. */
.macro graph_frame unknown
	mov	x17, sp
	str	x17, [x15, #TASK_TAKEN + RETURN_CFA]
.endm
.macro graph_way_back
	adr	x9, trace_return
.endm

/* The lab's: a site as the compiler makes it, with its record. */
.macro own_site name
	nop
	nop
	.pushsection __patchable_function_entries, "awo", @progbits, .text
	.dword	\name - SITE_RECORD
	.popsection
.endm

/* The lab's victims: a site begins a function. */
.macro victim_own
	victim_begin
before lab_victim_own
	.size	lab_victim_own_run, . - lab_victim_own_run
lab_victim_own_site:
	own_site lab_victim_own_site
behind lab_victim_own
	victim_end KEPT_AT_ENTRY
	.size	lab_victim_own_site, . - lab_victim_own_site
	victim_data lab_victim_own
.endm

.macro victim_return
	victim_begin
	bl	lab_victim_return_b0
	caller_end
	.cfi_endproc
	.cfi_startproc		/* a function like any, with its site first */
before lab_victim_return
	.size	lab_victim_return_run, . - lab_victim_return_run
lab_victim_return_site:
	own_site lab_victim_return_site
behind lab_victim_return
	compare_canaries 1f, 0, 1, 2, 3, 4, 5, 6, 7, 8, 18
	give_results
1:	ret
	.cfi_endproc
	.size	lab_victim_return_site, . - lab_victim_return_site
	victim_data lab_victim_return
.endm
#endif

#endif
