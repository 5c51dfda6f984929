/* SPDX-License-Identifier: MIT */
/* A site of Linux on RISC-V: auipc and jalr, through t0 or ra, or two NOPs. */
#ifndef PATCHERS_RISCV_FTRACE_H
#define PATCHERS_RISCV_FTRACE_H

#include <arch_trace_inline.h>

/* Linux 6.12 asks for it where 6.1 does not, of the function that changes the target. */
#define CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS 1

#define NOP4 INSN_NOP
#define MCOUNT_INSN_SIZE 8
#define MCOUNT_ADDR 0ul

#define make_call_by(link, from, to, words)                                    \
	do {                                                                   \
		long rounded_ = distance_rounded(from, (const char *)(to));    \
                                                                               \
		(words)[0] = insn_auipc(link, rounded_);                       \
		(words)[1] = insn_jalr(link, rounded_);                        \
	} while (0)
#define make_call_t0(from, to, words) make_call_by(REG_T0, from, to, words)
#define make_call_ra(from, to, words) make_call_by(REG_RA, from, to, words)

/* The trampoline's own calls, which are not the site that is judged here. */
extern char ftrace_call[], ftrace_regs_call[];

#endif
