/* SPDX-License-Identifier: MIT */
/*
 * The stack tracer: the deepest stack that any function was called with since it began, and
 * who used it. Files: stack_max_size, stack_trace, stack_trace_filter, and
 * /proc/sys/kernel/stack_tracer_enabled.
 */
#ifndef TRACER_STACK_H
#define TRACER_STACK_H

#include <kernel/types.h>

/* Does it run? Context: trace_mutex held. */
bool stack_is_traced(void);

#endif
