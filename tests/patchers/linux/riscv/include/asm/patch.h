/* SPDX-License-Identifier: MIT */
#ifndef PATCHERS_RISCV_PATCH_H
#define PATCHERS_RISCV_PATCH_H

#include <linux/patching.h>

enum { FIX_TEXT_POKE0, FIX_TEXT_POKE1 };
extern char __exittext_begin[],
	__exittext_end[]; /* never looked at: the system runs */
#define GET_INSN_LENGTH(insn) (((insn)&3) == 3 ? 4ul : 2ul)

extern int riscv_patch_in_stop_machine;
int patch_text_nosync(void *addr, const void *insns, size_t len);
int patch_text(void *addr, u32 insn);

#endif
