/* SPDX-License-Identifier: MIT */
/* The inline half of arch_trace.h. site.h has the site's table. */
#ifndef ARCH_TRACE_INLINE_H
#define ARCH_TRACE_INLINE_H

#include <frame.h>

#define arch_live_length 4u
#define arch_live_insns 1u
#define arch_jump_length 4u
#define arch_sync_each_site true
#define arch_break_length 4u
#define arch_break_insn INSN_BREAK

#define INSN_NOP 0x00000000u
#define INSN_JAL 0x0c000000u /* | bits 27..2 of the target, in its 256 MiB */
#define INSN_J 0x08000000u   /* the same */
#define INSN_JAL_TARGET 0x03ffffffu
#define INSN_LUI_V1 0x3c030000u	    /* lui v1, hi */
#define INSN_BRANCH 0x10000000u	    /* b . + 4 | words */
#define INSN_MOVE_AT_RA 0x03e00825u /* or at, ra, zero */
#define INSN_MOVE_V0_T7 0x01e01025u
#define INSN_MOVE_T7_V0 0x00407825u
#define INSN_ADDIU_SP_8 0x27bdfff8u /* addiu sp, sp, -8 */
#define INSN_ADDIU_V1 0x24630000u   /* addiu v1, v1, N */
#define INSN_JALR_V1 0x0060f809u
#define INSN_UPPER 0xffff0000u

/* `break`, with a code that no compiler emits: GCC's are 6 and 7. */
#define INSN_BREAK 0x0339000du

static inline u32 insn_jal(unsigned long target)
{
	return INSN_JAL | (target >> 2 & INSN_JAL_TARGET);
}

static inline u32 insn_j(unsigned long target)
{
	return INSN_J | (target >> 2 & INSN_JAL_TARGET);
}

/* `j` and `jal` keep the upper 4 bits of the address of their delay slot. */
static inline bool jump_reaches(unsigned long at, unsigned long target)
{
	return ((at + 4) ^ target) >> 28 == 0;
}

/* The upper half of an address, for a signed lower half to be added to. */
static inline u32 insn_lui_v1(unsigned long target)
{
	return INSN_LUI_V1 | (target + 0x8000) >> 16;
}

static inline u32 insn_addiu_v1(unsigned long target)
{
	return INSN_ADDIU_V1 | (target & 0xffff);
}

/*
 * synci: writes the line back from the data cache and throws it out of the
 * instruction cache. It needs a `sync` and a hazard barrier afterwards, which
 * arch_text_sync() is (MIPS32 Instruction Set, SYNCI).
 */
static inline void arch_text_sync_site(unsigned long a)
{
	asm volatile("synci 0(%0)" : : "r"(a) : "memory");
}

/*
 * The site of this kernel's front end (SITES=): sites/<front end>/site.h. SITE_LENGTH:
 * bytes from the site to where its call returns. RESUME_OFF: bytes from the live
 * instruction to where a CPU is after it, if it is off. site_insn(): the live
 * instruction, on or off.
 */
#include <site.h>

/* A site is recorded by its live instruction: the `jal`, or the `lui`. */
static inline unsigned long arch_site_live(unsigned long site)
{
	return site;
}

#define arch_site_length ((unsigned int)SITE_LENGTH)

#define arch_link_below ((unsigned long)(TRACE_FRAME_SIZE - TRACE_FRAME_AT))

static inline u64 arch_live_bytes(struct live l, bool on)
{
	if (l.target)
		return on ? insn_j(l.target) : INSN_NOP;
	return site_insn(l.at, on);
}

static inline u64 arch_live_read(struct live l)
{
	return *(const volatile u32 *)l.at;
}

/* Instructions are words in the CPU's own byte order, and aligned: one store. */
static inline void arch_live_write(struct live l, long delta, u64 bytes)
{
	*(volatile u32 *)(l.at + delta) = (u32)bytes;
}

/*
 * Each instruction is one aligned word. Whether a CPU may fetch it meanwhile,
 * arch_word_refused says.
 */
static inline bool arch_live_word(struct live l)
{
	return l.at % 4 == 0;
}

#endif
