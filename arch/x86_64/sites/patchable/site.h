/* SPDX-License-Identifier: MIT */
/* x86-64, SITES=patchable: five NOPs. patch.c has the table of sites. */
#ifndef X86_64_SITE_H
#define X86_64_SITE_H

#ifndef __ASSEMBLER__
#define SITE_FORMAT "patchable"
#define SITE_EXPECTED "90 five times, five NOPs"

/* The site's bytes as compiled, as arch_live_read() would return them. */
static inline u64 site_compiled(unsigned long site)
{
	(void)site;
	return 0x9090909090;
}
#else
/* clang-format off */

/* The lab's: a site as the compiler makes it, with its record. */
.macro own_site name
\name\()_site:
	.rept 5
	nop
	.endr
	.pushsection __patchable_function_entries, "awo", @progbits, .text
	.quad \name\()_site
	.popsection
.endm
#endif

#endif
