/* SPDX-License-Identifier: MIT */
/* x86-64, SITES=fentry: a call of __fentry__. patch.c has the table of sites. */
#ifndef X86_64_SITE_H
#define X86_64_SITE_H

#ifndef __ASSEMBLER__
#define SITE_FORMAT "fentry"
#define SITE_EXPECTED "e8 and the distance to __fentry__"

/* The site's bytes as compiled, as arch_live_read() would return them. */
static inline u64 site_compiled(unsigned long site)
{
	return insn_to(OPCODE_CALL, site, (unsigned long)trace_stub);
}
#else
/* clang-format off */

/* The lab's: a site as the compiler makes it, with its record. */
.macro own_site name
\name\()_site:
	call __fentry__
	.pushsection __mcount_loc, "a", @progbits
	.quad \name\()_site
	.popsection
.endm
#endif

#endif
