/* The inline half of arch_trace.h; patch.c has the site's table. */
#ifndef ARCH_TRACE_INLINE_H
#define ARCH_TRACE_INLINE_H

#define arch_live_length 4u
#define arch_sync_each_site true

#define SITE_LENGTH 8

#define INSN_NOP 0x00000000u
#define INSN_JAL 0x0c000000u /* | bits 27..2 of the target, in its 256 MiB */
#define INSN_JAL_TARGET 0x03ffffffu

static inline u32 insn_jal(unsigned long target)
{
	return INSN_JAL | (target >> 2 & INSN_JAL_TARGET);
}

/* The live instruction is the `jal` itself, which a site is recorded by. */
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
	return INSN_NOP;
}

static inline u64 arch_live_on(unsigned long live)
{
	(void)live;
	return insn_jal((unsigned long)trace_entry);
}

static inline u64 arch_live_read(unsigned long live)
{
	return *(const volatile u32 *)live;
}

/* Instructions are words in the CPU's own byte order, and aligned: one store. */
static inline void arch_live_write(unsigned long alias, u64 bytes)
{
	*(volatile u32 *)alias = (u32)bytes;
}

/*
 * synci: writes the line back from the data cache and throws it out of the
 * instruction cache; it needs a `sync` and a hazard barrier afterwards, which
 * arch_text_sync() is (MIPS32 Instruction Set, SYNCI).
 */
static inline void arch_text_sync_site(unsigned long a)
{
	asm volatile("synci 0(%0)" : : "r"(a) : "memory");
}

#endif
