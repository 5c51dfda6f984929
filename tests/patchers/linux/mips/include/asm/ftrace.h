/* SPDX-License-Identifier: MIT */
#ifndef PATCHERS_MIPS_FTRACE_H
#define PATCHERS_MIPS_FTRACE_H

#define CONFIG_32BIT 1

/* A victim of the lab stands in the kernel's text or in a module's, as the adapter says. */
static bool site_in_kernel;
#undef core_kernel_text
#define core_kernel_text(address) ((void)(address), site_in_kernel)

extern const char lab_count[];
unsigned long lab_far_target(void);
#define MCOUNT_ADDR lab_far_target()
#define FTRACE_ADDR ((unsigned long)lab_count - 8)

#define safe_store_code(code, address, faulted)                                \
	do {                                                                   \
		unsigned int code_ = (code);                                   \
                                                                               \
		(faulted) = patcher_write((unsigned long)(address), &code_,    \
					  4) != 0;                             \
	} while (0)

/* The trampoline's own call, which is not the site that is judged here. */
static char ftrace_call[8];

#endif
