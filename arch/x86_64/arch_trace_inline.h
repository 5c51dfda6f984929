/* The inline part of the contract in arch_trace.h; the site's table is in
 * patch.c. */
#ifndef X86_64_ARCH_TRACE_INLINE_H
#define X86_64_ARCH_TRACE_INLINE_H

#define SITE_LENGTH 5
#define OPCODE_CALL 0xe8

extern u64 patch_nop; /* the chosen NOP, as arch_live_read() would find it */

static inline unsigned long arch_site_live(unsigned long site)
{
	return site;
}

static inline unsigned long arch_site_from_return(unsigned long ret)
{
	return ret - SITE_LENGTH;
}

static inline u64 arch_live_off(unsigned long live)
{
	(void)live;
	return patch_nop;
}

/* e8, then the distance from the next instruction in 32 bits. */
static inline u64 arch_live_on(unsigned long live)
{
	u32 distance = (unsigned long)trace_entry - (live + SITE_LENGTH);

	return OPCODE_CALL | (u64)distance << 8;
}

static inline u64 arch_live_read(unsigned long live)
{
	u32 low;
	u8 high;

	__builtin_memcpy(&low, (const void *)live, 4);
	high = *(const u8 *)(live + 4);
	return low | (u64)high << 32;
}

/* Two stores: nobody may be fetching here, see live_align in patch.c. */
static inline void arch_live_write(unsigned long alias, u64 bytes)
{
	u32 low = bytes;

	__builtin_memcpy((void *)alias, &low, 4);
	*(volatile u8 *)(alias + 4) = bytes >> 32;
}

static inline void arch_text_sync_site(unsigned long a)
{
	(void)a; /* caches are coherent; arch_text_sync() is all it takes */
}

#endif
