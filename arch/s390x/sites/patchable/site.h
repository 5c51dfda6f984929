/* SPDX-License-Identifier: MIT */
/*
 * s390x, SITES=patchable: three nopr of two bytes at a function's entry.
 *
 *			compiled	fixed		off	on
 *	site + 0	nopr				c0 04	c0 15: brcl 0, brasl %r1
 *	site + 2	nopr		the distance to trace_entry
 *	site + 4	nopr		its second half
 *
 * Boot makes one instruction of the three, when no task could stand between them. r1 is
 * free there: the ABI lets no function find anything in it.
 */
#ifndef ARCH_S390X_SITE_H
#define ARCH_S390X_SITE_H

#ifndef __ASSEMBLER__
#define SITE_FORMAT "patchable"
#define SITE_EXPECTED "07 00 three times, three nopr"

static inline bool site_is_compiled(unsigned long site)
{
	const u16 *half = (const u16 *)site;

	return half[0] == 0x0700 && half[1] == 0x0700 && half[2] == 0x0700;
}
#else
/* clang-format off */

/* The lab's: a site as the compiler makes it, with its record. */
.macro own_site name
	.short	0x0700, 0x0700, 0x0700
	.pushsection __patchable_function_entries, "awo", @progbits, .text
	.balign	8
	.quad	\name
	.popsection
.endm
#endif

#endif
