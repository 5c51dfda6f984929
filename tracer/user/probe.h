/* SPDX-License-Identifier: MIT */
/*
 * The probe: on every CPU a task of the highest priority sleeps for short times and
 * notes how late it runs again. The strategies differ in that: `stop` keeps every task
 * waiting for a whole batch, the others for one chunk at most.
 */
#ifndef TRACER_PROBE_H
#define TRACER_PROBE_H

#include <kernel/types.h>

#define PROBE_STRATEGIES 4

/* How late it was while a strategy was selected. */
struct probe_figures {
	u32 wakeups;	       /* of all CPUs */
	u64 late_ns[MAX_CPUS]; /* the longest, by CPU. 0: none */
};

/*
 * Begin on every CPU that is online, all figures 0. -EBUSY: runs already.
 * -ENOMEM. And end: 0, or -EINVAL: does not run. Context: a task, trace_mutex held.
 */
int probe_start(void);
int probe_stop(void);

/* Of the strategy with that index in the registry, whether it runs or not. */
void probe_figures(unsigned int strategy, struct probe_figures *f);

/*
 * The longest, of all CPUs, while the first n sites are switched on and off with
 * the strategy selected now, but those that waking a probe runs through, at many
 * moments between two wake-ups. 0 or an error
 * of probe_start() or patch_apply(). Context: a task, trace_mutex held, no site
 * on, the probe not running.
 */
int probe_measure(unsigned int n, u64 *longest_ns);

/* The instructions of a batch that switches every site on, and off, with that strategy, in tenths
 * a site. Context: a task, trace_mutex held, no site on; -icount. */
void probe_batches(u64 *enable, u64 *disable);

#endif
