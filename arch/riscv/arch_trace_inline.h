/* SPDX-License-Identifier: MIT */
/* RISC-V: the inline half of arch/arch_trace.h. The site's table is in site.h. */
#ifndef ARCH_RISCV_ARCH_TRACE_INLINE_H
#define ARCH_RISCV_ARCH_TRACE_INLINE_H

/*
 * A jump label is one halfword where there are compressed instructions, c.nop or c.j, so
 * it is always aligned. Elsewhere it is one word.
 */
#ifdef __riscv_compressed
#define arch_jump_length 2u
#else
#define arch_jump_length 4u
#endif
#define arch_sync_each_site false

#define INSN_NOP 0x00000013u
#define INSN_JUMP_8 0x0080006fu /* j . + 8 */
#define INSN_AUIPC 0x00000017u	/* | rd << 7 | bits 31..12 of the distance */
#define INSN_JALR 0x00000067u	/* | rd << 7 | rs1 << 15 | lo << 20 */
#define INSN_JAL_RA 0x000000efu
#define INSN_JAL_ZERO 0x0000006fu
#define INSN_C_NOP 0x0001u
#define INSN_C_J 0xa001u

/*
 * `jal ra` holds bits 20, 10..1, 11, 19..12 of the distance, in that order. Bit 20 of a
 * distance in reach is its sign. So is bit 31, which stands where the instruction wants
 * it.
 */
static inline u64 insn_jal_ra(long distance)
{
	u64 d = (u64)distance;

	return (d & 0x800ff000) | (d & 0x7fe) << 20 | (d & 0x800) << 9 |
	       INSN_JAL_RA;
}

/* Does `jal` reach as far? */
static inline bool jal_reaches(long distance)
{
	return !((distance + (1l << 20)) >> 21);
}

/*
 * The two words of a far call through register `link`. The second adds its 12
 * bits sign-extended, so the first takes the distance rounded: plus 0x800.
 */
static inline long distance_rounded(unsigned long from, const void *to)
{
	return (long)((unsigned long)to + 0x800 - from);
}

#define AUIPC_TO(link) ((link) << 7 | INSN_AUIPC)
#define JALR_BY(link) (0x800u << 20 | (link) << 15 | (link) << 7 | INSN_JALR)

static inline u32 insn_auipc(unsigned int link, long rounded)
{
	return (u32)rounded >> 12 << 12 | AUIPC_TO(link);
}

static inline u32 insn_jalr(unsigned int link, long rounded)
{
	return (u32)rounded << 20 ^ JALR_BY(link);
}

/*
 * A call is left out by the HINT that has its upper halfword, so that on and off
 * differ in the lower one alone: for `jalr link, lo(link)` that is `addi x0, link,
 * lo`, for `jal ra` it is `lui x0` (unprivileged manual, RV32I, HINT instructions:
 * they change nothing). QEMU fetches a word by halves, while another CPU stores it:
 * with 00000013 for a NOP calls were seen to become `jalr t0, 0(ra)`.
 */
#define INSN_HINT_ADDI 0x00000013u /* | rs1 << 15 | any << 20 */
#define INSN_HINT_LUI 0x00000037u  /* | any << 12 */
#define JALR_TO_HINT(link) ((link) << 7 | (INSN_JALR ^ INSN_HINT_ADDI))
#define JAL_RA_TO_HINT (INSN_JAL_RA ^ INSN_HINT_LUI)

/*
 * Where there are compressed instructions, a site may be aligned to 2 bytes only (H10).
 */
static inline u64 insn_read(unsigned long at)
{
	const volatile u16 *half = (const volatile u16 *)at;
	u64 word;

	if (__builtin_expect(at & 2, 0))
		return half[0] | (u32)half[1] << 16;
	/* GCC would extend a volatile load by two instructions more. */
	asm volatile("lwu %0, %1" : "=r"(word) : "m"(*(const u32 *)at));
	return word;
}

static inline void insn_write(unsigned long alias, u64 bytes)
{
	volatile u16 *half = (volatile u16 *)alias;

	if (__builtin_expect(!(alias & 2), 1)) {
		*(volatile u32 *)alias = (u32)bytes;
		return;
	}
	half[0] = (u16)bytes;
	half[1] = (u16)(bytes >> 16);
}

/*
 * Chosen once by arch_nop_select(): the live word's offset in a site, where that is
 * not the same for every NOP.
 */
extern unsigned long riscv_site_live;

/*
 * The live word off and on, where boot chooses it too: (rounded << shift & mask) ^ bits, with the
 * rounded distance of the site from trace_entry.
 */
struct site_word {
	unsigned long shift, mask, bits;
};
extern struct site_word riscv_site_words[2];

/* Not volatile, and no operand in memory: GCC reads it before a loop, whatever the loop stores. */
#define SITE_CHOSEN(variable)                                                  \
	({                                                                     \
		unsigned long chosen;                                          \
		asm("ld %0, %1" : "=r"(chosen) : "i"(&(variable)));            \
		chosen;                                                        \
	})

/*
 * The site of this kernel's front end (SITES=): sites/<front end>/site.h. Its length, where
 * the live word is, which register the call returns through, the live word off and on,
 * and the compiler's own bytes there.
 */
#include <site.h>

/* A front end whose sites have two live instructions says so. */
#ifdef SITE_LIVE_INSNS
#define arch_live_insns 2u
#else
#define arch_live_insns 1u
#endif
#define arch_live_length (4u * arch_live_insns)

static inline unsigned long arch_site_live(unsigned long site)
{
	return site + SITE_LIVE;
}

#define arch_site_length ((unsigned int)SITE_LENGTH)

#define arch_link_below ((unsigned long)LINK_BELOW)

/* c.j: bits 11, 4, 9, 8, 10, 6, 7, 3, 2, 1, 5 of the distance, from bit 12 down. */
static inline u64 insn_c_j(long distance)
{
	u64 d = (u64)distance;

	return INSN_C_J | (d & 0x800) << 1 | (d & 0x10) << 7 |
	       (d & 0x300) << 1 | (d & 0x400) >> 2 | (d & 0x40) << 1 |
	       (d & 0x80) >> 1 | (d & 0xe) << 2 | (d & 0x20) >> 3;
}

/*
 * Off: c.nop. Where a label is a whole word, off is the HINT `lui x0` that has the
 * jump's upper half.
 */
static inline u64 jump_insn(struct live l, bool on)
{
	long distance = (long)(l.target - l.at);
	u64 jump = insn_jal_ra(distance) ^ INSN_JAL_RA ^ INSN_JAL_ZERO;

	if (arch_jump_length == 2)
		return on ? insn_c_j(distance) : INSN_C_NOP;
	return on ? jump : jump ^ INSN_JAL_ZERO ^ INSN_HINT_LUI;
}

static inline u64 arch_live_bytes(struct live l, bool on)
{
	unsigned long site = l.at - SITE_LIVE;

	if (l.target)
		return jump_insn(l, on);
	return on ? site_on(site) : site_off(site);
}

static inline bool live_is_half(struct live l)
{
	return arch_jump_length == 2 && l.target;
}

static inline u64 arch_live_read(struct live l)
{
	if (live_is_half(l))
		return *(const volatile u16 *)l.at;
	if (l.target || arch_live_insns == 1)
		return insn_read(l.at);
	return insn_read(l.at) | insn_read(l.at + 4) << 32;
}

static inline void arch_live_write(struct live l, long delta, u64 bytes)
{
	if (live_is_half(l))
		*(volatile u16 *)(l.at + delta) = (u16)bytes;
	else
		insn_write(l.at + delta, bytes);
	if (!l.target && arch_live_insns > 1)
		insn_write(l.at + delta + 4, bytes >> 32);
}

/*
 * Ziccif (RISC-V profiles): main memory's naturally aligned instruction fetches
 * of up to 32 bits are atomic, and so is a naturally aligned store.
 */
static inline bool arch_live_word(struct live l)
{
	return live_is_half(l) ||
	       (l.at % 4 == 0 && (l.target || arch_live_insns == 1));
}

/*
 * The unit is a halfword, which no site can have misaligned. A CPU without compressed
 * instructions finds c.ebreak illegal, which is a trap just as good: a CPU that fetches
 * a word by halves looks at the first half alone.
 */
#define arch_break_length 2u
#define arch_break_insn 0x9002ull /* c.ebreak */

static inline void arch_text_sync_site(unsigned long a)
{
	(void)a;
}

#endif
