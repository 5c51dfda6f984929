/* SPDX-License-Identifier: MIT */
/*
 * The stack tracer: the deepest stack that any function was called with since it began, and
 * who used it. Files: stack_max_size, stack_trace, stack_trace_filter, and
 * /proc/sys/kernel/stack_tracer_enabled.
 */
#ifndef TRACER_STACK_H
#define TRACER_STACK_H

#include <kernel/types.h>

/* The site's call, which returns to ip, has just been made. Interrupts off, not for an NMI's. */
void stack_check(unsigned int site, unsigned long ip);

/* Does it run, and the sites of word w that must be on for it. Context: trace_mutex held. */
bool stack_is_traced(void);
u32 stack_want(unsigned int w);

#endif
