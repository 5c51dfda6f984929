/* SPDX-License-Identifier: MIT */
/* MIPS, SITES=mcount: sites/jal.h has the table. */
#ifndef ARCH_MIPS_SITE_H
#define ARCH_MIPS_SITE_H

#include <sites/jal.h>

#ifndef __ASSEMBLER__
#define SITE_FORMAT "mcount"
#define SITE_EXPECTED "move at,ra; jal _mcount; addiu sp,sp,-8"

static inline bool site_is_compiled(const u32 *insn)
{
	return calls_stub(insn) && saves_ra(insn);
}
#else
/* clang-format off */

	/* The lab's: a site as the compiler makes it. */
	.macro	own_site name, slot:vararg
	before	\name, move $at, $ra
\name\()_site:
	jal	_mcount
	addiu	$sp, $sp, -8
	behind	\name
	.endm
#endif

#endif
