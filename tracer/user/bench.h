/* SPDX-License-Identifier: MIT */
#ifndef TRACER_BENCH_H
#define TRACER_BENCH_H

#include <kernel/shell/shell.h>

/* Write a figure's line. tenths: ten times the figure. unit: a word. limit: the most that any port
 * may need, or 0 for none. The sink's error, or 0. Context: a task. */
int bench_figure(struct sink *out, const char *name, u64 tenths,
		 const char *unit, unsigned int limit);

#endif
