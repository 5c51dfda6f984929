/* The inline part of the contract in arch_trace.h; the site's table is in
 * patch.c. */
#ifndef X86_64_ARCH_TRACE_INLINE_H
#define X86_64_ARCH_TRACE_INLINE_H

#define SITE_LENGTH 5
#define OPCODE_CALL 0xe8
#define OPCODE_INT3 0xcc

#define LIVE_MASK ((1ull << 8 * SITE_LENGTH) - 1)

/* The chosen NOP, as arch_live_read() would find it, and which of its bytes are
 * instead those of the call. */
extern u64 patch_nop, patch_nop_keep;

static inline unsigned long arch_site_live(unsigned long site)
{
	return site;
}

static inline unsigned long arch_site_from_return(unsigned long ret)
{
	return ret - SITE_LENGTH;
}

/* There is no link register: every return address is on the stack. */
#define arch_link_below 0ul

/* e8, then the distance from the next instruction in 32 bits. */
static inline u64 live_call(unsigned long live, unsigned long target)
{
	u32 distance = target - (live + SITE_LENGTH);

	return OPCODE_CALL | (u64)distance << 8;
}

static inline u64 arch_live_on(unsigned long live)
{
	return live_call(live, (unsigned long)trace_entry);
}

static inline u64 arch_live_off(unsigned long live)
{
	u64 keep = patch_nop_keep;

	return keep ? patch_nop | (arch_live_on(live) & keep) : patch_nop;
}

/* Eight bytes are there to be read: a function goes on behind its site. */
static inline u64 arch_live_read(unsigned long live)
{
	u64 bytes;

	__builtin_memcpy(&bytes, (const void *)live, 8);
	return bytes & LIVE_MASK;
}

/* Two stores: no CPU may be fetching here. */
static inline void arch_live_write(unsigned long alias, u64 bytes)
{
	u32 low = bytes;

	__builtin_memcpy((void *)alias, &low, 4);
	*(volatile u8 *)(alias + 4) = bytes >> 32;
}

/*
 * How far into its aligned 8 bytes a live instruction may begin that one store
 * of them replaces while others fetch it; -1: none may. Set by
 * arch_nop_select(); arch_word_refused() says why.
 */
extern int patch_word_last;

static inline bool arch_live_word(unsigned long live)
{
	return (int)(live & 7) <= patch_word_last;
}

static inline void arch_live_write_word(unsigned long alias, u64 bytes)
{
	volatile u64 *word = (volatile u64 *)(alias & ~7ul);
	unsigned int shift = 8 * (alias & 7);

	/* Most functions are aligned. */
	if (__builtin_expect(!shift, 1))
		*word = (*word & ~LIVE_MASK) | bytes;
	else
		*word = (*word & ~(LIVE_MASK << shift)) | bytes << shift;
}

/* The first unit is the first byte: a store of one is whole wherever it is. */
static inline void arch_unit_write(unsigned long alias, u64 bytes)
{
	*(volatile u8 *)alias = bytes;
}

static inline void arch_tail_write(unsigned long alias, u64 bytes)
{
	u32 tail = bytes >> 8;

	__builtin_memcpy((void *)(alias + 1), &tail, 4);
}

static inline void arch_text_sync_site(unsigned long a)
{
	(void)a; /* caches are coherent; arch_text_sync() is all it takes */
}

#endif
