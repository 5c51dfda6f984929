/* SPDX-License-Identifier: MIT */
#ifndef PATCHERS_ARM64_FTRACE_H
#define PATCHERS_ARM64_FTRACE_H

/* The trampoline's own call, which is not the site that is judged here. */
extern char ftrace_call[];

#endif
