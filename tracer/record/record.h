/* SPDX-License-Identifier: MIT */
/*
 * RECORD=runtime: nothing was recorded at link time. Compiled calls reach trace_stub, which hands
 * the caller to site_seen(). Once a second a daemon turns the recorded calls into sites like any
 * others, as the first ftrace did (2008).
 */
#ifndef TRACER_RECORD_H
#define TRACER_RECORD_H

#include <kernel/types.h>
#include <kernel/test/fault.h>

/* found = converted + left + known + waiting. */
struct record_stats {
	u32 found;     /* places recorded, each once a turn */
	u32 converted; /* that became sites */
	u32 left;      /* that no port knows or the tracer does not reach */
	u32 known;     /* recorded again: in flight while converted, or left */
	u32 waiting;   /* for the next turn */
	u32 skipped;   /* calls that found no free record */
	u32 records;   /* that there are */
	u32 turns;     /* batches */
};
void record_stats(struct record_stats *s);

/*
 * Convert the calls recorded until now, in one batch under the rendezvous, and
 * provide more records if some were lacking. 0, or stop_cpus()'s error: nothing
 * has changed. Context: a task, interrupts on, trace_mutex held.
 */
int record_convert(void);

/* Let there be n records, a power of two, all free: calls that are not converted
 * are found again. 0 or -ENOMEM. Context: as record_convert(). */
int record_resize(unsigned int n);

#define RECORD_PROBES 16 /* places where one call may be recorded */

/*
 * While tests run, the daemon acts only when they tell it to, so that their counts stand still. A
 * test of the daemon plants this.
 */
FAULT_DECLARE(record_in_tests);

#endif
