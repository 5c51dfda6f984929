/* SPDX-License-Identifier: MIT */
#ifndef PATCHERS_ARM64_PATCHING_H
#define PATCHERS_ARM64_PATCHING_H

#include <linux/patching.h>

enum { FIX_TEXT_POKE0 };
extern char __exittext_begin[],
	__exittext_end[]; /* never looked at: the system runs */

int aarch64_insn_read(void *addr, u32 *insnp);
int aarch64_insn_write(void *addr, u32 insn);
int aarch64_insn_patch_text_nosync(void *addr, u32 insn);
int aarch64_insn_patch_text(void *addrs[], u32 insns[], int cnt);

#endif
