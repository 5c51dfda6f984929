/* SPDX-License-Identifier: MIT */
/*
 * RISC-V, SITES=mcount-far: a call of two words behind the prologue, where the linker
 * relaxes nothing.
 *
 *			compiled	fixed		off	on
 *	site + 0	auipc ra, hi	as compiled
 *	site + 4	jalr ra, lo(ra)			HINT	jalr ra, near(ra)
 *
 * Its auipc, made for _mcount, also reaches trace_entry, which stands right
 * behind _mcount, or else trace_entry_below, right before it. So nothing fixed
 * has to be written, and a task that stands between the words while a site is
 * converted (RECORD=runtime) has the same ra as after it. ra itself is lost in
 * either state, as the compiler expects of its call.
 */
#ifndef ARCH_RISCV_SITE_H
#define ARCH_RISCV_SITE_H

#include <sites/call.h>

#ifndef __ASSEMBLER__
#define SITE_FORMAT "mcount-far"
#define SITE_EXPECTED "auipc ra; jalr ra to _mcount"
#define SITE_LENGTH 8
#define SITE_LIVE 4
#define SITE_NOPS                                                              \
	{                                                                      \
		.name = "nop", .description = "nop 00008013",                  \
		.live = SITE_LIVE,                                             \
	}

void trace_entry_below(void); /* goes on to trace_entry */

/*
 * The compiled auipc, made for the stub, stays. It is right for the stub's neighbours
 * above and below as well, unless 12 bits just do not reach one of them.
 */
static inline u32 site_on(unsigned long site)
{
	unsigned long above =
		(unsigned long)trace_entry - (unsigned long)trace_stub;
	long rounded = distance_rounded(site, trace_stub);
	bool beyond = (rounded & 0xfff) + above > 0xfff;

	return insn_jalr(REG_RA,
			 distance_rounded(site, beyond ? trace_entry_below :
							 trace_entry));
}

static inline u32 site_off(unsigned long site)
{
	return site_on(site) ^ JALR_TO_HINT(REG_RA);
}

static inline bool site_is_compiled(unsigned long site)
{
	long rounded = distance_rounded(site, trace_stub);

	return site % 2 == 0 &&
	       insn_read(site) == insn_auipc(REG_RA, rounded) &&
	       insn_read(site + 4) == insn_jalr(REG_RA, rounded);
}

/* The compiled auipc reaches trace_entry or trace_entry_below. */
static inline bool site_reaches(unsigned long site)
{
	(void)site;
	return true;
}

/* Writes "off" through `alias`. The other word stays as it was compiled. */
static inline void site_convert(unsigned long site, unsigned long alias)
{
	insn_write(alias + SITE_LIVE, site_off(site));
}

#else
/* clang-format off */

/* More code of trampoline.S, before the stub. */
.macro before_stub
FUNCTION(trace_entry_below)
	j	trace_entry
END(trace_entry_below)
.endm

/* The lab's: a site as the compiler makes it. */
.macro own_site
	call	_mcount
.endm
#endif

#endif
