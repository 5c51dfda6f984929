/* SPDX-License-Identifier: MIT */
/*
 * The function profiler: how often each function was called, and how long it took until it
 * returned, on each CPU. Files: function_profile_enabled, trace_stat/functionN.
 */
#ifndef TRACER_PROFILE_H
#define TRACER_PROFILE_H

#include <kernel/ctl/ctl.h>
#include <kernel/sched/task.h>
#include <kernel/types.h>

/* Does it run? Context: trace_mutex held. The sites of word w that must be on for it. */
bool profile_is_on(void);
u32 profile_want(unsigned int w);

/* Stop, and forget what was counted. 0 or patch_apply()'s error. Context: trace_mutex held. */
int profile_reset(struct ctl_handle *h);

/*
 * A call has begun: it is counted, and r->clock set. False: no profile runs. And one has returned:
 * its time is added, if it began in the profile that runs. The task has taken `depth` others
 * outside of it. Interrupts off. No site.
 */
bool profile_enter(struct task_return *r);
void profile_leave(const struct task_return *r, unsigned int depth);

#endif
