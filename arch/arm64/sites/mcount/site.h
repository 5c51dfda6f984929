/* SPDX-License-Identifier: MIT */
/*
 * arm64, SITES=mcount: -pg, a call of _mcount behind a function's prologue, through x30.
 *
 *			compiled	fixed		off	on
 *	site + 0	bl _mcount			nop	bl trace_entry
 *
 * x0 holds the function's return address. Every other register that a call may change is
 * dead or saved: GCC treats it as a call like any.
 */
#ifndef ARCH_ARM64_SITE_H
#define ARCH_ARM64_SITE_H

#ifndef __ASSEMBLER__
#define SITE_FORMAT "mcount"
#define SITE_EXPECTED "bl _mcount"
#define SITE_LENGTH 4

static inline bool site_is_compiled(const u32 *insn)
{
	return insn[0] == insn_branch(INSN_BL, (unsigned long)insn,
				      (unsigned long)trace_stub);
}

/* There is no other word. */
static inline void site_write_fixed(unsigned long site, long delta)
{
	(void)site, (void)delta;
}

#define SITE_FORM 4 /* the lab's */
#else
/* clang-format off */

#define IP x30
#define PARENT x0
#define TRAMPOLINE(name) FUNCTION(name)

#define SAVE_DAIF 0
#define SAVE_LINK 8
#define SAVE_SIZE 16

.macro save
	stp	x11, x30, [sp, #-SAVE_SIZE]!
	.cfi_def_cfa_offset SAVE_SIZE
	.cfi_offset x30, SAVE_LINK - SAVE_SIZE
.endm

.macro restore
	ldp	x11, x30, [sp], #SAVE_SIZE
	.cfi_def_cfa_offset 0
	.cfi_restore x30
.endm

.macro back
	ret
.endm

/*
 * For trace_entry_graph: the CFA, and in x2, where the return address lies. A frame
 * that this CPU does not know is left to C.
 */
.macro graph_frame unknown
	ubfx	x1, IP, #FRAME_KEPT_SHIFT, #FRAMES_KEPT_BITS
	ldr	x2, [x28, #CPU_HEAD_FRAMES]
	add	x2, x2, x1, lsl #FRAME_KEPT_SHIFT
	ldr	w3, [x2, #FRAME_KEPT_IP]
	cmp	w3, w30
	b.ne	\unknown
	ldrsh	x3, [x2, #FRAME_KEPT_CFA]
	ldrsh	x2, [x2, #FRAME_KEPT_SLOT]
	tbnz	x2, #63, \unknown
	add	x3, sp, x3
	str	x3, [x15, #TASK_TAKEN + RETURN_CFA]
	add	x2, sp, x2
.endm
.macro graph_way_back
	adr	x1, trace_return
	str	x1, [x2]
.endm

/* The lab's victims: a site is a call in the middle of them. */
.macro victim_own
	victim_begin
before lab_victim_own
lab_victim_own_site:
	bl	_mcount
behind lab_victim_own
	victim_end KEPT_BY_CALLS
	.size	lab_victim_own_run, . - lab_victim_own_run
	victim_data lab_victim_own
.endm

.macro victim_return
	victim_begin
	bl	lab_victim_return_site
	caller_end
	.size	lab_victim_return_run, . - lab_victim_return_run
	.cfi_endproc
	.cfi_startproc		/* a function like any, with a prologue */
lab_victim_return_site:
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	mov	x29, sp
	mov	x0, x30
before lab_victim_return
lab_victim_return_call:
	bl	_mcount
behind lab_victim_return
	mov	x16, sp
	cmp	x29, x16
	b.ne	1f
	address	x16, lab_canary
	give_results
1:	ldp	x29, x30, [sp], #16
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc
	.size	lab_victim_return_site, . - lab_victim_return_site
	victim_data lab_victim_return, lab_victim_return_call
.endm
#endif

#endif
