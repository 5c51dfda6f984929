/* SPDX-License-Identifier: MIT */
/* s390x: the inline half of arch/arch_trace.h. The site's table is in site.h. */
#ifndef ARCH_S390X_ARCH_TRACE_INLINE_H
#define ARCH_S390X_ARCH_TRACE_INLINE_H

/*
 * The live part of an instruction is its first halfword, operation and mask. The distance
 * behind it is right for both states, and is written once.
 */
#define arch_live_length 2u
#define arch_live_insns 1u
#define arch_jump_length 2u
#define arch_break_length 2u
#define arch_break_insn 0x0002ull /* no instruction: an operation exception */

#define SITE_LENGTH 6
#define JUMP_LENGTH 4

#define INSN_BRCL_NEVER 0xc004u /* brcl 0: goes nowhere */
#define INSN_BRASL_R1 0xc015u
#define INSN_BRC_NEVER 0xa704u
#define INSN_BRC_ALWAYS 0xa7f4u

/* Instructions count distances in halfwords. Does six bytes' brasl reach as far? */
static inline bool branch_reaches(unsigned long from, unsigned long to)
{
	return !((to - from + (1ul << 32)) >> 33);
}

#define arch_sync_each_site false

static inline void arch_text_sync_site(unsigned long a)
{
	(void)a; /* fetches are coherent. arch_text_sync() is all it takes */
}

static inline unsigned long arch_site_live(unsigned long site)
{
	return site;
}

#define arch_site_length ((unsigned int)SITE_LENGTH)

#define arch_link_below ((unsigned long)LINK_BELOW)

static inline u64 arch_live_bytes(struct live l, bool on)
{
	if (l.target)
		return on ? INSN_BRC_ALWAYS : INSN_BRC_NEVER;
	return on ? INSN_BRASL_R1 : INSN_BRCL_NEVER;
}

static inline u64 arch_live_read(struct live l)
{
	return *(const volatile u16 *)l.at;
}

static inline void arch_live_write(struct live l, long delta, u64 bytes)
{
	*(volatile u16 *)(l.at + (unsigned long)delta) = (u16)bytes;
}

/*
 * PoP, chapter 5, "Sequence of storage references": an instruction's fetch is of halfwords, each
 * as one (block-concurrent), and so is a store of a halfword. Every instruction lies on
 * halfwords.
 */
static inline bool arch_live_word(struct live l)
{
	return l.at % 2 == 0;
}

/* The bytes that the front end (SITES=) leaves: sites/<front end>/site.h. */
#include <site.h>

#endif
