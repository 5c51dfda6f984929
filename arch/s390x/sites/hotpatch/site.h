/* SPDX-License-Identifier: MIT */
/*
 * s390x, SITES=hotpatch and fentry-nop: one brcl that goes nowhere at a function's entry.
 *
 *			compiled	fixed		off	on
 *	site + 0	c0 04				c0 04	c0 15: brcl 0, brasl %r1
 *	site + 2	0		the distance to trace_entry
 *
 * Of fentry-nop GCC makes a record.
 */
#ifndef ARCH_S390X_SITE_H
#define ARCH_S390X_SITE_H

#ifndef __ASSEMBLER__
#define SITE_FORMAT "hotpatch"
#define SITE_EXPECTED "c0 04 00 00 00 00, a brcl that goes nowhere"

static inline bool site_is_compiled(unsigned long site)
{
	const u16 *half = (const u16 *)site;

	return half[0] == INSN_BRCL_NEVER && !half[1] && !half[2];
}
#else
/* clang-format off */

/* The lab's: a site as the compiler makes it. */
.macro own_site name
	.short	0xc004, 0, 0
	.pushsection __mcount_loc, "a", @progbits
	.balign	8
	.quad	\name
	.popsection
.endm
#endif

#endif
