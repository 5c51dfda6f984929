/* SPDX-License-Identifier: MIT */
/*
 * An instruction as Linux's jump_label.c makes it. That file stores by an assignment, not by a
 * function: it is given a word of ours instead of the site, and its flush brings that to the lab.
 */
#ifndef PATCHERS_MIPS_INST_H
#define PATCHERS_MIPS_INST_H

#include <linux/patching.h>

#define MIPS_ISA_REV 2
enum { j_op = 0x02, bc6_op = 0x32, mm_j32_op = 0x35 };

union mips_instruction {
	u32 word;
	u16 halfword[2];
	struct {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		u32 opcode : 6, target : 26;
#else
		u32 target : 26, opcode : 6;
#endif
	} j_format;
};

static union mips_instruction label_word;
static unsigned long label_site;

#define msk_isa16_mode(site) (label_site = (site), &label_word)
#define flush_icache_range(from, to)                                           \
	do {                                                                   \
		patcher_write(label_site, &label_word, sizeof(label_word));    \
		patcher_sync_all();                                            \
	} while (0)

#endif
