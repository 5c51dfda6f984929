/* SPDX-License-Identifier: MIT */
/*
 * RISC-V, for assembly: sites at a function's entry, patchable and patchable-far.
 */
#ifndef ARCH_RISCV_SITES_ENTRY_H
#define ARCH_RISCV_SITES_ENTRY_H
/* clang-format off */

/*
 * A site at a function's entry returns through t0. There the ABI lets a0..a7, ra, sp,
 * the saved registers and t2 (static chain) carry something. For a stack walk the
 * site's return address is in t0 (column 5), and ra is still the function's own.
 */
#define IP t0
#define PARENT ra
#define TRAMPOLINE(name) FUNCTION(name); .cfi_return_column 5; .cfi_same_value 5

#define SAVE_A(n) (8 * (n))
#define SAVE_T2 64
#define SAVE_SIE 72
#define SAVE_T0 80
#define SAVE_RA 88
#define SAVE_SIZE 96

.macro arguments op
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	\op	a\n, SAVE_A(\n)(sp)
	.endr
.endm

.macro save
	addi	sp, sp, -SAVE_SIZE
	.cfi_def_cfa_offset SAVE_SIZE
	sd	ra, SAVE_RA(sp)
	.cfi_offset ra, SAVE_RA - SAVE_SIZE
	sd	t0, SAVE_T0(sp)
	.cfi_offset t0, SAVE_T0 - SAVE_SIZE
	sd	t1, SAVE_SIE(sp)
	sd	t2, SAVE_T2(sp)
	arguments sd
.endm

.macro restore
	ld	t0, SAVE_T0(sp)
	ld	ra, SAVE_RA(sp)
	ld	t1, SAVE_SIE(sp)
	ld	t2, SAVE_T2(sp)
	arguments ld
	addi	sp, sp, SAVE_SIZE
	.cfi_def_cfa_offset 0
	.cfi_restore ra
	.cfi_same_value t0
.endm

/* For trace_entry_graph: a function has no frame yet at its entry. */
.macro graph_frame unknown
	sd	sp, TASK_TAKEN + RETURN_CFA(t6)
.endm
.macro graph_way_back
.Lback\@:
	auipc	t3, %pcrel_hi(trace_return)
	addi	ra, t3, %pcrel_lo(.Lback\@)
.endm

/* The lab's: a site as the compiler makes it, with its record. */
.macro own_site name
#ifdef __riscv_compressed
	.option	rvc
	.rept	4
	c.nop
	.endr
	.option	norvc
#else
	nop
	nop
#endif
	.pushsection __patchable_function_entries, "awo", @progbits, .text
	.dword	\name
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
	jal	ra, lab_victim_return_b0
	caller_end
	.cfi_endproc
	.cfi_startproc		/* a function like any, with its site first */
before lab_victim_return
	.size	lab_victim_return_run, . - lab_victim_return_run
lab_victim_return_site:
	own_site lab_victim_return_site
behind lab_victim_return
	/* t2 and a0..a7 */
	compare_canaries 1f, 7, 10, 11, 12, 13, 14, 15, 16, 17
	give_results
1:	ret
	.cfi_endproc
	.size	lab_victim_return_site, . - lab_victim_return_site
	victim_data lab_victim_return
.endm

#endif
