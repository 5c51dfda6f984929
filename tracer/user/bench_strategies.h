/* SPDX-License-Identifier: MIT */
#ifndef TRACER_BENCH_STRATEGIES_H
#define TRACER_BENCH_STRATEGIES_H

#include <kernel/shell/shell.h>

/* Measure each patch strategy that this CPU does not refuse. 0. Context: a task, trace_mutex held,
 * no tracer selected. */
int bench_strategies(struct sink *out);

#endif
