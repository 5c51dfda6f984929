/* SPDX-License-Identifier: MIT */
/*
 * s390x, SITES=fentry: a call of __fentry__ at a function's entry.
 *
 *			compiled	fixed		off	on
 *	site + 0	c0 05				c0 04	c0 15: brcl 0, brasl %r1
 *	site + 2	distance	the distance to trace_entry
 *
 * GCC's call leaves its return address in r0, the static chain's register, for which functions
 * that have one have no site.
 */
#ifndef ARCH_S390X_SITE_H
#define ARCH_S390X_SITE_H

#ifndef __ASSEMBLER__
#define SITE_FORMAT "fentry"
#define SITE_EXPECTED "c0 05 and the distance to __fentry__"

static inline bool site_is_compiled(unsigned long site)
{
	const u16 *half = (const u16 *)site;
	u32 distance = (u32)(((unsigned long)trace_stub - site) >> 1);

	return half[0] == 0xc005 && half[1] == distance >> 16 &&
	       half[2] == (u16)distance;
}
#else
/* clang-format off */

/* The lab's: a site as the compiler makes it, with its record. */
.macro own_site name
	brasl	%r0, __fentry__
	.pushsection __mcount_loc, "a", @progbits
	.balign	8
	.quad	\name
	.popsection
.endm
#endif

#endif
