/* RISC-V: the inline half of arch/arch_trace.h; patch.c has the site's table. */
#ifndef ARCH_RISCV_ARCH_TRACE_INLINE_H
#define ARCH_RISCV_ARCH_TRACE_INLINE_H

#define arch_live_length 4u
#define arch_sync_each_site false

#define SITE_LENGTH 8

#define INSN_NOP 0x00000013u
#define INSN_JUMP_8 0x0080006fu	  /* j . + 8 */
#define INSN_AUIPC_T0 0x00000297u /* | bits 31..12 of the distance */
#define INSN_JALR_T0 0x000282e7u  /* jalr t0, lo(t0); | lo << 20 */

/* How a site is left out, chosen once by arch_nop_select(). */
struct riscv_nop {
	u32 live_offset; /* 4: word 1 is live; 0: word 0 is */
	u32 off;
};
extern struct riscv_nop riscv_nop;

/* trampoline.S: run `turns` times eight sites left out in that way. */
void nop_measure_auipc(unsigned long turns);
void nop_measure_jump(unsigned long turns);

/*
 * The two words of `auipc t0; jalr t0`. The second adds its 12 bits sign-extended,
 * so the first takes the distance to trace_entry rounded: plus 0x800.
 */
static inline long site_distance_rounded(unsigned long site)
{
	return (long)((unsigned long)trace_entry + 0x800 - site);
}

static inline u32 insn_auipc_t0(long rounded)
{
	return (u32)rounded >> 12 << 12 | INSN_AUIPC_T0;
}

static inline u32 insn_jalr_t0(long rounded)
{
	return ((u32)rounded << 20) + ((0x800u << 20) + INSN_JALR_T0);
}

static inline unsigned long arch_site_live(unsigned long site)
{
	return site + riscv_nop.live_offset;
}

static inline unsigned long arch_site_from_return(unsigned long ret)
{
	return ret - SITE_LENGTH;
}

static inline u64 arch_live_off(unsigned long live)
{
	(void)live;
	return riscv_nop.off;
}

static inline u64 arch_live_on(unsigned long live)
{
	u32 offset = riscv_nop.live_offset;
	long rounded = site_distance_rounded(live - offset);

	return offset ? insn_jalr_t0(rounded) : insn_auipc_t0(rounded);
}

/* With compressed instructions around, a site may stand 2-aligned (H10). */
static inline u64 arch_live_read(unsigned long live)
{
	const volatile u16 *half = (const volatile u16 *)live;

	if (__builtin_expect(!(live & 2), 1))
		return *(const volatile u32 *)live;
	return half[0] | (u32)half[1] << 16;
}

static inline void arch_live_write(unsigned long alias, u64 bytes)
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
 * Ziccif (RISC-V profiles): main memory's naturally aligned instruction fetches
 * of up to 32 bits are atomic, and so is a naturally aligned store.
 */
static inline bool arch_live_word(unsigned long live)
{
	return live % 4 == 0;
}

static inline void arch_live_write_word(unsigned long alias, u64 bytes)
{
	*(volatile u32 *)alias = (u32)bytes;
}

/*
 * With compressed instructions the unit is a halfword, which no site can have
 * misaligned; without them every instruction is an aligned word.
 */
#ifdef __riscv_compressed
#define arch_break_length 2u
#define arch_break_insn 0x9002ull /* c.ebreak */

static inline void arch_unit_write(unsigned long alias, u64 bytes)
{
	*(volatile u16 *)alias = (u16)bytes;
}

static inline void arch_tail_write(unsigned long alias, u64 bytes)
{
	*(volatile u16 *)(alias + 2) = (u16)(bytes >> 16);
}
#else
#define arch_break_length 4u
#define arch_break_insn 0x00100073ull /* ebreak */

static inline void arch_unit_write(unsigned long alias, u64 bytes)
{
	arch_live_write_word(alias, bytes);
}

static inline void arch_tail_write(unsigned long alias, u64 bytes)
{
	(void)alias, (void)bytes;
}
#endif

static inline void arch_text_sync_site(unsigned long a)
{
	(void)a;
}

#endif
