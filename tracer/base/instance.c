/* SPDX-License-Identifier: MIT */
/* The tracer's mutex: instance.h. */
#include <tracer/base/instance.h>

struct mutex trace_mutex = MUTEX_INIT(trace_mutex);
