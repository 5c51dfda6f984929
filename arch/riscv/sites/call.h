/* SPDX-License-Identifier: MIT */
/*
 * RISC-V: sites of -pg, which are calls of _mcount behind a function's prologue, through
 * ra. a0 holds the function's return address. Every other register that a call may change
 * is dead or saved: GCC treats it as a call like any.
 */
#ifndef ARCH_RISCV_SITES_CALL_H
#define ARCH_RISCV_SITES_CALL_H

#ifndef __ASSEMBLER__
#define SITE_LINK REG_RA
#define SITE_NOP_NAMES "nop"

/* Off and on: the HINT has the call's upper half. */
static inline bool site_shares_a_half(void)
{
	return true;
}
#else
/* clang-format off */

#define IP ra
#define PARENT a0
#define TRAMPOLINE(name) FUNCTION(name)

#define SAVE_SIE 0
#define SAVE_RA 8
#define SAVE_SIZE 16

.macro save
	addi	sp, sp, -SAVE_SIZE
	.cfi_def_cfa_offset SAVE_SIZE
	sd	ra, SAVE_RA(sp)
	.cfi_offset ra, SAVE_RA - SAVE_SIZE
	sd	t1, SAVE_SIE(sp)
.endm

.macro restore
	ld	ra, SAVE_RA(sp)
	ld	t1, SAVE_SIE(sp)
	addi	sp, sp, SAVE_SIZE
	.cfi_def_cfa_offset 0
	.cfi_restore ra
.endm

/*
 * For trace_entry_graph: the CFA, and in a2, where the return address lies. A frame
 * that this CPU does not know is left to C.
 */
.macro graph_frame unknown
	srli	a1, IP, FRAME_KEPT_SHIFT
	andi	a1, a1, FRAMES_KEPT - 1
	slli	a1, a1, FRAME_KEPT_SHIFT
	ld	a2, CPU_HEAD_FRAMES(tp)
	add	a2, a2, a1
	lw	a3, FRAME_KEPT_IP(a2)
	sext.w	a1, IP
	bne	a1, a3, \unknown
	lh	a3, FRAME_KEPT_CFA(a2)
	lh	a2, FRAME_KEPT_SLOT(a2)
	bltz	a2, \unknown
	add	a3, a3, sp
	sd	a3, TASK_TAKEN + RETURN_CFA(t6)
	add	a2, a2, sp
.endm
.macro graph_way_back
	lla	t3, trace_return
	sd	t3, (a2)
.endm

/* More code of trampoline.S, at its end. */
.macro behind_trampolines
.endm

/* The lab's victims: a site is a call in the middle of them. */
.macro victim_own
	victim_begin
before lab_victim_own
lab_victim_own_site:
	own_site
behind lab_victim_own
	victim_end KEPT_BY_CALLS
	.size	lab_victim_own_run, . - lab_victim_own_run
	victim_data lab_victim_own
.endm

.macro victim_return
	victim_begin
	jal	ra, lab_victim_return_site
	caller_end
	.size	lab_victim_return_run, . - lab_victim_return_run
	.cfi_endproc
	.cfi_startproc		/* a function like any, with a prologue */
lab_victim_return_site:
	addi	sp, sp, -32
	.cfi_def_cfa_offset 32
	sd	ra, 24(sp)
	.cfi_offset ra, -8
	sd	s0, 16(sp)
	addi	s0, sp, 32
	mv	a0, ra
before lab_victim_return
lab_victim_return_call:
	own_site
behind lab_victim_return
	addi	t1, sp, 32
	bne	s0, t1, 1f
	lla	t0, lab_canary
	give_results
1:	ld	ra, 24(sp)
	ld	s0, 16(sp)
	addi	sp, sp, 32
	.cfi_def_cfa_offset 0
	.cfi_restore ra
	ret
	.cfi_endproc
	.size	lab_victim_return_site, . - lab_victim_return_site
	victim_data lab_victim_return, lab_victim_return_call
.endm
#endif

#endif
