/* SPDX-License-Identifier: MIT */
/* The tracer's mutex: instance.h. */
#include <tracer/base/instance.h>

struct mutex trace_mutex = MUTEX_INIT_AROUND_TASKS(trace_mutex);
