/* SPDX-License-Identifier: MIT */
/* An event, as rooms below its own know it: commands and triggers switch events
 * (tracer/events/events.h). */
#ifndef TRACER_EVENT_H
#define TRACER_EVENT_H

#include <arch/jump_label.h>
#include <tracer/base/instance.h>

struct event_field;
struct event_filter;
struct event_triggers;

struct event {
	const char *system, *name;
	const char *path; /* "sched/sched_switch" */
	const struct event_field *fields;
	const char *text;	/* the template of list.h */
	struct static_key *key; /* under trace_mutex, as all below */
	/* By which instances it is recorded, a bit for each, atomic, for triggers switch the
	 * top level's as well. */
	u32 on;
	u32 special; /* 1: event_special() runs. A word, for the fast path */
	struct event_filter
		*filters[INSTANCES]; /* NULL: every event is recorded */
	struct event_triggers *triggers;
	/* The field that names the other task of a switch or a wake-up, or NULL. */
	const struct event_field *other;
};
extern struct event __start_events[], __stop_events[];
#define for_each_event(e) for ((e) = __start_events; (e) < __stop_events; (e)++)

/* The number that a record names its event by. Those below are Linux's own entries. */
#define EVENT_FIRST_ID 32
static inline unsigned int event_id(const struct event *e)
{
	return EVENT_FIRST_ID + (e - __start_events);
}

/* Is the event recorded by the instance? Any context. */
static inline bool event_is_on(const struct event *e,
			       const struct trace_instance *in)
{
	return READ_ONCE(e->on) >> instance_number(in) & 1;
}

#endif
