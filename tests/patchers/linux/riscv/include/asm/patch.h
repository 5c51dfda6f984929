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
/* Not for patch.c, which maps text: in 6.1 it is static there. */
#ifndef PATCHERS_FIXMAP_H
int patch_insn_write(void *addr, const void *insns, size_t len);
#endif
#define local_flush_icache_range(from, to)                                     \
	((void)(from), (void)(to), patcher_sync())
#define local_flush_icache_all() patcher_sync()
#define flush_icache_all() patcher_sync_all()
typedef unsigned long phys_addr_t;
#define offset_in_page(address) ((unsigned long)(address) & ~PAGE_MASK)

#endif
