/* SPDX-License-Identifier: MIT */
/*
 * A warning of the kernel ends the recording, so that the trace shows the calls and events before
 * it: traceoff_on_warning, a boot parameter and a file, as Linux has them. nopl warns of a lock
 * that a CPU has waited for too long (kernel/lock/lock.h).
 */
#ifndef TRACER_WARNING_H
#define TRACER_WARNING_H

#include <kernel/types.h>

/* Would a warning end the recording? Then C code looks at tracing_on at each entry. Context:
 * trace_mutex held. */
bool warning_ends_trace(void);

#endif
