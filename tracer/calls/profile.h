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

/* Stop, and forget what was counted. 0 or patch_apply()'s error. Context: trace_mutex held. */
int profile_reset(struct ctl_handle *h);

#endif
