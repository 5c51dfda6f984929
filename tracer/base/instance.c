/* SPDX-License-Identifier: MIT */
/* The tracer's mutex, and its instances, which core/instances.c fills: instance.h. */
#include <tracer/base/instance.h>

struct mutex trace_mutex = MUTEX_INIT_AROUND_TASKS(trace_mutex);

struct trace_instance trace_instances[INSTANCES];
