/* SPDX-License-Identifier: MIT */
/* The four instructions that Linux's files make, by the port's own encoders. */
#ifndef PATCHERS_ARM64_INSN_H
#define PATCHERS_ARM64_INSN_H

#include <linux/patching.h>
#include <arch_trace_inline.h>

#define AARCH64_INSN_SIZE 4
typedef u32 __le32;
#define cpu_to_le32(word) (word)
#define le32_to_cpu(word) (word)

enum { AARCH64_INSN_BRANCH_NOLINK, AARCH64_INSN_BRANCH_LINK };
#define aarch64_insn_gen_branch_imm(from, to, kind)                            \
	insn_branch((kind) == AARCH64_INSN_BRANCH_LINK ? INSN_BL : INSN_B,     \
		    from, to)
#define aarch64_insn_gen_nop() INSN_NOP

/* mov x9, x30 is the only one that is asked for. */
enum {
	AARCH64_INSN_REG_9 = 9,
	AARCH64_INSN_REG_LR = 30,
	AARCH64_INSN_VARIANT_64BIT = 1
};
#define aarch64_insn_gen_move_reg(to, from, size)                              \
	((size) << 31 | 0x2a0003e0u | (u32)(from) << 16 | (to))

/* Linux 6.12 makes these in code that is not reached: stores of many words, and sites with more. */
#define noinstr
#define min_t(type, a, b) min((type)(a), (type)(b))
#define offset_in_page(address) ((unsigned long)(address) & ~PAGE_MASK)
#define memset32(to, word, count)                                              \
	do {                                                                   \
		for (size_t i_ = 0; i_ < (count); i_++)                        \
			patcher_write((unsigned long)(to) + 4 * i_, &(word),   \
				      4);                                      \
	} while (0)
#define aarch64_insn_is_bti(insn) ((insn) == 0xd503245f)

#define isb() asm volatile("isb" : : : "memory")
#define caches_clean_inval_pou(from, to) flush_icache_range(from, to)

#endif
