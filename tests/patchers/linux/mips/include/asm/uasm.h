/* SPDX-License-Identifier: MIT */
/* The two instructions that Linux's ftrace.c has its assembler make. */
#ifndef PATCHERS_MIPS_UASM_H
#define PATCHERS_MIPS_UASM_H

#include <linux/patching.h>

#define uasm_in_compat_space_p(address) ((void)(address), true) /* 32 bits */

static inline void uasm_i_jal(u32 **buf, unsigned long target)
{
	*(*buf)++ = 0x0c000000 | (target >> 2 & 0x03ffffff);
}

/* lui and addiu, whose immediate is signed. */
static inline void UASM_i_LA(u32 **buf, unsigned int reg, unsigned long address)
{
	*(*buf)++ =
		0x3c000000 | reg << 16 | ((address + 0x8000) >> 16 & 0xffff);
	*(*buf)++ = 0x24000000 | reg << 21 | reg << 16 | (address & 0xffff);
}

#endif
