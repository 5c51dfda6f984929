/* SPDX-License-Identifier: MIT */
/*
 * For the ports' lab.S: the struct lab_victim (arch/arch_lab.h) of a victim. Labels
 * name_run, name_site and name_b0 to name_b3 are the port's. The port defines
 * VICTIM_INSN: one instruction that does nothing.
 */
#ifndef ARCH_LAB_VICTIM_H
#define ARCH_LAB_VICTIM_H

/* clang-format off */

/*
 * lab_canary: values for so many registers and results, which differ in each byte but the last.
 * The defaults are no addresses of 64-bit CPUs.
 */
.macro lab_canaries count, first=0x5ab0c0de70000001, step=0x0101010100
	.section .rodata
	.balign	__SIZEOF_POINTER__
	.globl	lab_canary
lab_canary:
	canary = 0
	.rept	\count
	.dc.a	\first + canary * \step
	canary = canary + 1
	.endr
	.text
.endm

/* site: the label that the table of sites has, where that is not name_site. */
.macro victim_data name, site
	.pushsection .rodata
	.balign	__SIZEOF_POINTER__
	.globl	\name
\name:
	.dc.a	\name\()_run
	.ifb	\site
	.dc.a	\name\()_site
	.else
	.dc.a	\site
	.endif
	.dc.a	\name\()_b0, \name\()_b1, \name\()_b2, \name\()_b3
	.popsection
.endm

/* The record of the jump label at label 9, as static_branch() makes it. */
.macro jump_record target
	.pushsection .jump_labels, "", %progbits
	.dc.a	9b, \target, key_lab_jump
	.popsection
.endm

/* Two of the victim's own instructions before the site, and two behind it. */
.macro before name, second:vararg
\name\()_b0: VICTIM_INSN
	.ifb	\second
\name\()_b1: VICTIM_INSN
	.else
\name\()_b1: \second
	.endif
.endm

.macro behind name
\name\()_b2: VICTIM_INSN
\name\()_b3: VICTIM_INSN
.endm

#endif
