/* SPDX-License-Identifier: MIT */
/* arm64: the inline half of arch/arch_trace.h. The site's table is in site.h. */
#ifndef ARCH_ARM64_ARCH_TRACE_INLINE_H
#define ARCH_ARM64_ARCH_TRACE_INLINE_H

#define arch_live_length 4u
#define arch_live_insns 1u
#define arch_jump_length 4u
#define arch_break_length 4u
#define arch_break_insn ((u64)INSN_BRK)

#define INSN_MOV_X9_LR 0xaa1e03e9u
#define INSN_BL 0x94000000u /* | bits 27..2 of the distance */
#define INSN_B 0x14000000u  /* the same */
#define INSN_DISTANCE 0x03ffffffu

static inline u32 insn_branch(u32 insn, unsigned long from, unsigned long to)
{
	return insn | ((u32)((to - from) >> 2) & INSN_DISTANCE);
}

/* Do `b` and `bl` reach as far? */
static inline bool branch_reaches(unsigned long from, unsigned long to)
{
	return !((to - from + (1ul << 27)) >> 28);
}

#define arch_sync_each_site true

/*
 * After an `isb` of their own, other CPUs fetch the bytes that this CPU has stored: DDI 0487,
 * B2.4.4, "Ordering and observability of cache maintenance". Both operations are broadcast.
 * The dsb that ends the second is arch_text_sync()'s.
 */
static inline void arch_text_sync_site(unsigned long a)
{
	asm volatile("dc	cvau, %0\n\t"
		     "dsb	ish\n\t"
		     "ic	ivau, %0"
		     :
		     : "r"(a)
		     : "memory");
}

/*
 * The site of this kernel's front end (SITES=): sites/<front end>/site.h. Its length, where
 * the live word is, the compiler's own bytes there, and the word that is written once.
 */
#include <site.h>

static inline unsigned long arch_site_live(unsigned long site)
{
	return site + SITE_LENGTH - 4;
}

#define arch_site_length ((unsigned int)SITE_LENGTH)

#define arch_link_below ((unsigned long)LINK_BELOW)

static inline u64 arch_live_bytes(struct live l, bool on)
{
	if (!on)
		return INSN_NOP;
	return l.target ?
		       insn_branch(INSN_B, l.at, l.target) :
		       insn_branch(INSN_BL, l.at, (unsigned long)trace_entry);
}

static inline u64 arch_live_read(struct live l)
{
	return *(const volatile u32 *)l.at;
}

static inline void arch_live_write(struct live l, long delta, u64 bytes)
{
	*(volatile u32 *)(l.at + (unsigned long)delta) = (u32)bytes;
}

/*
 * DDI 0487, B2.2.5, "Concurrent modification and execution of instructions": where both are
 * of B, BL, BRK, HVC, ISB, NOP, SMC and SVC, other CPUs execute the old instruction or
 * the new one.
 */
static inline bool arch_live_word(struct live l)
{
	return l.at % 4 == 0;
}

#endif
