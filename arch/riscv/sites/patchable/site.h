/* SPDX-License-Identifier: MIT */
/*
 * RISC-V, SITES=patchable: four c.nop at a function's entry, or in an image without
 * compressed instructions (patchable-nc) two nop. t0 carries the return address,
 * site + 8. There are two ways to leave the call out. Boot chooses one for all sites:
 *
 *	nop=auipc	compiled	fixed		off	on
 *	site + 0	c.nop; c.nop	auipc t0, hi
 *	site + 4	c.nop; c.nop			HINT	jalr t0, lo(t0)
 *
 *	nop=jump	compiled	fixed		off	on
 *	site + 0	c.nop; c.nop			j . + 8	auipc t0, hi
 *	site + 4	c.nop; c.nop	jalr t0, lo(t0)
 *
 * A task preempted between the two words has executed the first one whole. With
 * nop=auipc it finds either second word, and t0 is right for both. With nop=jump
 * it is there only if the first was auipc, so jalr finds its t0, even if the
 * first word has changed since.
 */
#ifndef ARCH_RISCV_SITE_H
#define ARCH_RISCV_SITE_H

#ifndef __ASSEMBLER__
#define SITE_FORMAT "patchable"
#ifdef __riscv_compressed
#define SITE_COMPILED 0x00010001u /* c.nop; c.nop */
#define SITE_EXPECTED "01 00 four times, four c.nop"
#else
#define SITE_COMPILED INSN_NOP
#define SITE_EXPECTED "13 00 00 00 twice, two nop"
#endif

#define SITE_LENGTH 8
#define SITE_LIVE SITE_CHOSEN(riscv_site_live)
#define SITE_LINK REG_T0

/* trampoline.S: run `turns` times eight sites left out in that way. */
void nop_measure_auipc(unsigned long turns);
void nop_measure_jump(unsigned long turns);

#define SITE_NOP_NAMES "auipc jump"
#define SITE_NOPS                                                              \
	{ "auipc",                                                             \
	  "auipc 00028013",                                                    \
	  4,                                                                   \
	  nop_measure_auipc,                                                   \
	  {                                                                    \
		  { 20, 0xfff00000, JALR_BY(REG_T0) ^ JALR_TO_HINT(REG_T0) },  \
		  { 20, 0xfff00000, JALR_BY(REG_T0) },                         \
	  } },                                                                 \
	{                                                                      \
		"jump", "jump 0080006f", 0, nop_measure_jump,                  \
		{                                                              \
			{ 0, 0, INSN_JUMP_8 },                                 \
				{ 0, 0xfffff000, AUIPC_TO(REG_T0) },           \
		}                                                              \
	}

static inline u64 site_word(unsigned long site, const struct site_word *w)
{
	u64 rounded = (u64)distance_rounded(site, trace_entry);

	return (rounded << SITE_CHOSEN(w->shift) & SITE_CHOSEN(w->mask)) ^
	       SITE_CHOSEN(w->bits);
}

static inline u64 site_on(unsigned long site)
{
	return site_word(site, &riscv_site_words[1]);
}

static inline u64 site_off(unsigned long site)
{
	return site_word(site, &riscv_site_words[0]);
}

static inline bool site_is_compiled(unsigned long site)
{
	const u32 *word = (const u32 *)site;

	if (__builtin_expect(site & 3, 0)) /* a cold function's (H10) */
		return site % 2 == 0 && insn_read(site) == SITE_COMPILED &&
		       insn_read(site + 4) == SITE_COMPILED;
	return word[0] == SITE_COMPILED && word[1] == SITE_COMPILED;
}

/* The two words reach 2 GiB. Nothing is that far. Half will do. */
static inline bool site_reaches(unsigned long site)
{
	long rounded = distance_rounded(site, trace_entry);

	return !((rounded + (1l << 30)) >> 31);
}

/* Writes the fixed word and "off" through `alias`. */
static inline void site_convert(unsigned long site, unsigned long alias)
{
	long rounded = distance_rounded(site, trace_entry);
	u32 first = INSN_JUMP_8, second = insn_jalr(REG_T0, rounded);
	u32 *word = (u32 *)alias;

	if (SITE_LIVE) {
		first = insn_auipc(REG_T0, rounded);
		second ^= JALR_TO_HINT(REG_T0);
	}
	if (__builtin_expect(site & 3, 0)) {
		insn_write(alias, first);
		insn_write(alias + 4, second);
		return;
	}
	word[0] = first;
	word[1] = second;
}

/* Off and on: with nop=jump they do not. */
static inline bool site_shares_a_half(void)
{
	return riscv_site_live;
}
#else
/* clang-format off */

#include <sites/entry.h>

/* The loop is aligned to lie in one page: QEMU is slow where a loop goes on in another. */
.macro nop_measure name, word0:req, word1:req
	.balign	128
FUNCTION(\name)
1:	.rept	8
	.4byte	\word0
	.4byte	\word1
	.endr
	addi	a0, a0, -1
	bnez	a0, 1b
	ret
END(\name)
.endm

/* More code of trampoline.S, before the stub and at its end. */
.macro before_stub
.endm
.macro behind_trampolines
	nop_measure nop_measure_auipc, 0x00000297, 0x00028013
	nop_measure nop_measure_jump, 0x0080006f, 0x000282e7
.endm
#endif

#endif
