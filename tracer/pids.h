/* Whose calls are recorded, and whose events: set_ftrace_pid and set_event_pid, and the same
 * with notrace. */
#ifndef TRACER_PIDS_H
#define TRACER_PIDS_H

#include <kernel/types.h>

/* Are the calls of that task recorded? Any context with interrupts off. */
bool pid_is_traced(s32 pid);

/* Is there any list for calls? Context: trace_mutex held. */
bool pids_are_listed(void);

/* The same for events. The first: any context with interrupts off, no site. */
bool pid_has_events(s32 pid);
bool event_pids_are_listed(void);

#endif
