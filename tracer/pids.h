/* Whose calls are recorded: set_ftrace_pid and set_ftrace_notrace_pid. */
#ifndef TRACER_PIDS_H
#define TRACER_PIDS_H

#include <kernel/types.h>

/* Are the calls of that task recorded? Any context with interrupts off. */
bool pid_is_traced(s32 pid);

/* Is there any list? Context: trace_mutex held. */
bool pids_are_listed(void);

#endif
