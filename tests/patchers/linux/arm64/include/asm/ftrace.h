/* SPDX-License-Identifier: MIT */
#ifndef PATCHERS_ARM64_FTRACE_H
#define PATCHERS_ARM64_FTRACE_H

/* Linux 6.12 asks for it where 6.1 asks for CONFIG_DYNAMIC_FTRACE_WITH_REGS. */
#define CONFIG_DYNAMIC_FTRACE_WITH_ARGS 1
struct __arch_ftrace_regs {
	unsigned long regs[9], fp, lr, sp, pc;
};

/* The trampoline's own call, which is not the site that is judged here. */
extern char ftrace_call[];
#define FTRACE_ADDR ((unsigned long)ftrace_call)

#endif
