/* SPDX-License-Identifier: MIT */
/*
 * RISC-V, SITES=mcount: a call of one word behind the prologue, which the linker has
 * relaxed.
 *
 *			compiled	fixed		off	on
 *	site + 0	jal ra, _mcount			HINT	jal ra, trace_entry
 */
#ifndef ARCH_RISCV_SITE_H
#define ARCH_RISCV_SITE_H

#include <sites/call.h>

#ifndef __ASSEMBLER__
#define SITE_FORMAT "mcount"
#define SITE_EXPECTED                                                          \
	"jal ra,_mcount; a call that the linker could not relax needs "        \
	"SITES=mcount-far"
#define SITE_LENGTH 4
#define SITE_LIVE 0
#define SITE_NOPS                                                              \
	{                                                                      \
		.name = "nop", .description = "nop 00000037",                  \
		.live = SITE_LIVE,                                             \
	}

static inline u64 site_on(unsigned long site)
{
	return insn_jal_ra((long)((unsigned long)trace_entry - site));
}

static inline u64 site_off(unsigned long site)
{
	return site_on(site) ^ JAL_RA_TO_HINT;
}

static inline bool site_is_compiled(unsigned long site)
{
	long distance = (long)((unsigned long)trace_stub - site);

	return site % 2 == 0 && jal_reaches(distance) &&
	       insn_read(site) == insn_jal_ra(distance);
}

static inline bool site_reaches(unsigned long site)
{
	return jal_reaches((long)((unsigned long)trace_entry - site));
}

/* Writes "off" through `alias`. There is no other word. */
static inline void site_convert(unsigned long site, unsigned long alias)
{
	insn_write(alias + SITE_LIVE, site_off(site));
}

#else
/* clang-format off */

/* More code of trampoline.S, before the stub. */
.macro before_stub
.endm

/* The lab's: a site as the compiler makes it. */
.macro own_site
	jal	ra, _mcount
.endm
#endif

#endif
