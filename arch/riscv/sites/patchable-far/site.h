/* SPDX-License-Identifier: MIT */
/*
 * RISC-V, SITES=patchable-far: four c.nop at a function's entry, and no word that is fixed. t0
 * carries the return address, site + 8.
 *
 *			compiled	off	on
 *	site + 0	c.nop; c.nop	nop	auipc t0, hi
 *	site + 4	c.nop; c.nop	nop	jalr t0, lo(t0)
 *
 * Both words are live, so each of them may hold a part of the target, wherever that is. A task
 * that is preempted behind the first NOP would run the jalr without its auipc, so these sites
 * change by `bypass` alone: arch_live_insns.
 */
#ifndef ARCH_RISCV_SITE_H
#define ARCH_RISCV_SITE_H

#ifndef __ASSEMBLER__
#define SITE_FORMAT "patchable-far"
#define SITE_COMPILED 0x00010001u /* c.nop; c.nop */
#define SITE_EXPECTED "01 00 four times, four c.nop"
#define SITE_LENGTH 8
#define SITE_LIVE 0
#define SITE_LIVE_INSNS 2
#define SITE_LINK REG_T0
#define SITE_NOP_NAMES "nop"
#define SITE_NOPS                                                              \
	{                                                                      \
		.name = "nop", .description = "nop 0000001300000013",          \
		.live = SITE_LIVE,                                             \
	}

static inline u64 site_on(unsigned long site)
{
	long rounded = distance_rounded(site, trace_entry);

	return insn_auipc(REG_T0, rounded) | (u64)insn_jalr(REG_T0, rounded)
						     << 32;
}

static inline u64 site_off(unsigned long site)
{
	(void)site;
	return INSN_NOP | (u64)INSN_NOP << 32;
}

static inline bool site_is_compiled(unsigned long site)
{
	return site % 2 == 0 && insn_read(site) == SITE_COMPILED &&
	       insn_read(site + 4) == SITE_COMPILED;
}

/* As far as the two words go: 2 GiB less 2 KiB. */
static inline bool site_reaches(unsigned long site)
{
	long rounded = distance_rounded(site, trace_entry);

	return rounded == (int)rounded;
}

/* Writes "off" through `alias`. */
static inline void site_convert(unsigned long site, unsigned long alias)
{
	(void)site;
	insn_write(alias, INSN_NOP);
	insn_write(alias + 4, INSN_NOP);
}

static inline bool site_shares_a_half(void)
{
	return true; /* `word` writes none of these sites */
}
#else
/* clang-format off */

#include <sites/entry.h>

/* More code of trampoline.S, before the stub and at its end. */
.macro before_stub
.endm
.macro behind_trampolines
.endm
#endif

#endif
