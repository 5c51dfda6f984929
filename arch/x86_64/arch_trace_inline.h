/* SPDX-License-Identifier: MIT */
/* The inline part of the contract in arch_trace.h. The site's table is in
 * patch.c. */
#ifndef X86_64_ARCH_TRACE_INLINE_H
#define X86_64_ARCH_TRACE_INLINE_H

#define SITE_LENGTH 5
#define OPCODE_CALL 0xe8
#define OPCODE_JUMP 0xe9

/* JUMP_LABEL_INSN: a NOP that is none of a site. */
#define JUMP_COMPILED 0x0200441f0full

#define LIVE_MASK ((1ull << 8 * SITE_LENGTH) - 1)

/*
 * patch_nop: the chosen NOP, as arch_live_read() reads it. patch_nop_keep: a mask of
 * the bytes that stay the call's.
 */
extern u64 patch_nop, patch_nop_keep;

static inline unsigned long arch_site_live(unsigned long site)
{
	return site;
}

#define arch_site_length ((unsigned int)SITE_LENGTH)
#define arch_live_length arch_site_length
#define arch_live_insns 1u
#define arch_jump_length arch_site_length
#define arch_sync_each_site false
/* The unit is one byte: the bytes behind it may be across a cache line. */
#define arch_break_length 1u
#define arch_break_insn 0xccull /* int3 */

/* There is no link register: every return address is on the stack. */
#define arch_link_below 0ul

/* The opcode, then the distance from the next instruction in 32 bits. */
static inline u64 insn_to(u8 opcode, unsigned long at, unsigned long target)
{
	u32 distance = target - (at + SITE_LENGTH);

	return opcode | (u64)distance << 8;
}

#include <site.h> /* of this kernel's front end: sites/<front end>/site.h */

/* Most NOPs keep nothing of the call, or of the jump. */
static inline u64 arch_live_bytes(struct live l, bool on)
{
	u64 taken;

	if (!on && __builtin_expect(!patch_nop_keep, 1))
		return patch_nop;
	taken = l.target ?
			insn_to(OPCODE_JUMP, l.at, l.target) :
			insn_to(OPCODE_CALL, l.at, (unsigned long)trace_entry);
	return on ? taken : patch_nop | (taken & patch_nop_keep);
}

/* Eight bytes are there to be read: a function goes on behind its site. */
static inline u64 arch_live_read(struct live l)
{
	u64 bytes;

	__builtin_memcpy(&bytes, (const void *)l.at, 8);
	return bytes & LIVE_MASK;
}

/*
 * One store of an aligned 8-byte word replaces a live instruction that begins at most
 * this many bytes into the word, while other CPUs fetch it. -1: no store may.
 * arch_nop_select() sets it. arch_word_refused says why.
 */
extern int patch_word_last;

static inline bool arch_live_word(struct live l)
{
	return (int)(l.at & 7) <= patch_word_last;
}

static inline void arch_live_write(struct live l, long delta, u64 bytes)
{
	unsigned long alias = l.at + delta;
	volatile u64 *word = (volatile u64 *)(alias & ~7ul);
	unsigned int shift = 8 * (alias & 7);
	u32 low = bytes;

	/* Most functions are aligned. */
	if (__builtin_expect(!shift, 1)) {
		*word = (*word & ~LIVE_MASK) | bytes;
	} else if (shift <= 64 - 8 * SITE_LENGTH) {
		*word = (*word & ~(LIVE_MASK << shift)) | bytes << shift;
	} else {
		__builtin_memcpy((void *)alias, &low, 4);
		*(volatile u8 *)(alias + 4) = bytes >> 32;
	}
}

static inline void arch_text_sync_site(unsigned long a)
{
	(void)a; /* caches are coherent. arch_text_sync() is all it takes */
}

#endif
