/* SPDX-License-Identifier: MIT */
/* MIPS, SITES=mcount-ra: sites/jal.h has the table. */
#ifndef ARCH_MIPS_SITE_H
#define ARCH_MIPS_SITE_H

#include <sites/jal.h>

#ifndef __ASSEMBLER__
#define SITE_FORMAT "mcount-ra"
#define SITE_EXPECTED "move at,ra; addiu t4,sp,N; jal _mcount; addiu sp,sp,-8"

#define INSN_MOVE_T4_0 0x00006025u
#define INSN_ADDIU_T4_SP 0x27ac0000u /* addiu t4, sp, N */

/* Does `insn` tell where ra is? */
static inline bool tells_ra(u32 insn)
{
	return insn == INSN_MOVE_T4_0 ||
	       (insn & INSN_UPPER) == INSN_ADDIU_T4_SP;
}

static inline bool site_is_compiled(const u32 *insn)
{
	return calls_stub(insn) && tells_ra(insn[-1]) && saves_ra(insn - 1);
}
#else
/* clang-format off */

	/*
	 * The lab's: a site as the compiler makes it, with the victim's two
	 * instructions before it. t4 says where ra was saved: slot, or move when it
	 * was not.
	 */
	.macro	own_site name, slot:vararg
\name\()_b0:
	move	$at, $ra
\name\()_b1:
	\slot
\name\()_site:
	jal	_mcount
	addiu	$sp, $sp, -8
	behind	\name
	.endm
#endif

#endif
