/* SPDX-License-Identifier: MIT */
/* Shared by the control files of events: a path of events/%s stands for each event. */
#ifndef TRACER_EVENT_FILES_H
#define TRACER_EVENT_FILES_H

#include <tracer/events/events.h>

/* The i-th event and its path, "sched/sched_switch". NULL: there are no more. */
struct event *event_at(unsigned int i);
const char *event_path(unsigned int i);

#endif
