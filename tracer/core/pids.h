/* SPDX-License-Identifier: MIT */
/* Whose calls an instance records, and whose events: set_ftrace_pid and set_event_pid, and the same
 * with notrace. */
#ifndef TRACER_PIDS_H
#define TRACER_PIDS_H

#include <kernel/types.h>

struct trace_instance;

/* Are the calls of that task recorded? Any context with interrupts off, no site. */
bool pid_is_traced(const struct trace_instance *in, s32 pid);

/* Is there any list for calls? Context: trace_mutex held. */
bool pids_are_listed(const struct trace_instance *in);

/* The same for events. */
bool pid_has_events(const struct trace_instance *in, s32 pid);
bool event_pids_are_listed(const struct trace_instance *in);

/* Free an instance's lists, which no CPU looks at any more. Context: trace_mutex held. */
void pids_forget(const struct trace_instance *in);

#endif
