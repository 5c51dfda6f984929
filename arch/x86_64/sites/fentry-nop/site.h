/* SPDX-License-Identifier: MIT */
/* x86-64, SITES=fentry-nop: one NOP. patch.c has the table of sites. */
#ifndef X86_64_SITE_H
#define X86_64_SITE_H

#ifndef __ASSEMBLER__
#define SITE_FORMAT "fentry-nop"
#define SITE_EXPECTED "0f 1f 44 00 00, one NOP"

/* The site's bytes as compiled, as arch_live_read() would return them. */
static inline u64 site_compiled(unsigned long site)
{
	(void)site;
	return 0x0000441f0f;
}
#else
/* clang-format off */

/* The lab's: a site as the compiler makes it, with its record. */
.macro own_site name
\name\()_site:
	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00
	.pushsection __mcount_loc, "a", @progbits
	.quad \name\()_site
	.popsection
.endm
#endif

#endif
