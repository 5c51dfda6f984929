/* SPDX-License-Identifier: MIT */
/*
 * Seams: a client of the tracer is on, something happens, and another client follows. Each ordered
 * pair of clients at each moment is tried, and afterwards the machine must equal a fresh one.
 * tools/seams runs them.
 */
#ifndef TRACER_SEAMS_TEST_H
#define TRACER_SEAMS_TEST_H

#include <kernel/printk.h>

/* Something is wrong with the case that runs: a line names it. */
void seam_wrong(const char *fmt, ...) printf_like(1, 2);

#endif
