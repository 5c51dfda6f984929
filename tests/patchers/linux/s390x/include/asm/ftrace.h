/* SPDX-License-Identifier: MIT */
/* A site of Linux on s390: brcl 0 or 15 to a trampoline of its own, which has the target. */
#ifndef PATCHERS_S390X_FTRACE_H
#define PATCHERS_S390X_FTRACE_H

#include <asm/text-patching.h>

/* called.S: what a trampoline calls until it is told another target. */
extern const char ftrace_caller[];
#define FTRACE_ADDR ((unsigned long)ftrace_caller)

/* 6.12 asks for it. A CPU that has it fetches instructions in order, and its sites need no
 * trampolines. Here none has. */
#define MACHINE_HAS_SEQ_INSN 0

/* The handler behind the trampolines, which is not judged here. */
#define ftrace_stub NULL

#define BUILD_BUG_ON(wrong) _Static_assert(!(wrong), #wrong)
#define WARN_ON_ONCE(wrong) WARN_ON(wrong)
#define get_kernel_nofault(value, from)                                        \
	copy_from_kernel_nofault(&(value), from, sizeof(value))
#define ERR_PTR(err) ((void *)(long)(err))
#define PTR_ERR(pointer) ((int)(long)(pointer))
#define IS_ERR(pointer) ((unsigned long)(pointer) >= -4095ul)

#endif
