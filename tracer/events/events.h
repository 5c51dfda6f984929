/* SPDX-License-Identifier: MIT */
/*
 * Events while the machine runs: what kernel/event/list.h defines, switched by jump labels
 * and written into the trace buffer.
 */
#ifndef TRACER_EVENTS_H
#define TRACER_EVENTS_H

#include <arch/jump_label.h>
#include <kernel/ctl/ctl.h>
#include <tracer/events/fields.h>
#include <tracer/core/instances.h>

struct event_filter;
struct event_triggers;

struct event {
	const char *system, *name;
	const char *path; /* "sched/sched_switch" */
	const struct event_field *fields;
	const char *text;	/* the template of list.h */
	struct static_key *key; /* under trace_mutex, as what follows */
	/* By which instances it is recorded, a bit for each, atomic, for triggers switch the
	 * top level's as well. */
	u32 on;
	u32 special; /* 1: one of these says what to do, a word, for the fast path */
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
const struct event *event_by_id(unsigned int id);

/* Which events of an instance are to be on or off: bits in list.h's order. */
struct event_set {
	u32 bits[4];
	u32 touched[4]; /* the others stay as they are */
};
void event_set_bit(struct event_set *set, const struct event *e, bool on);
/* All of them off, and none touched. */
struct event_set events_off(void);
#define EVENTS_UNTOUCHED                                                       \
	(struct event_set)                                                     \
	{                                                                      \
		{ 0 },                                                         \
		{                                                              \
			0                                                      \
		}                                                              \
	}

/*
 * Switch the events of an instance, all or none: 0, or patch_apply()'s error, explained in h.
 * Context: trace_mutex held.
 */
int events_switch(struct ctl_handle *h, const struct trace_instance *in,
		  const struct event_set *set);

/* Is the event recorded by the instance? Any context. */
static inline bool event_is_on(const struct event *e,
			       const struct trace_instance *in)
{
	return READ_ONCE(e->on) >> instance_number(in) & 1;
}

/* Does any instance but the top level record an event, or has it a trigger that looks at one, or
 * switches one? Context: trace_mutex held. */
bool events_apart(void);

/* Is any event's jump label on? Context: trace_mutex held. */
bool events_are_on(void);

/* Is the event's jump label on for the sake of an instance's trigger (NULL: of any's)? Context:
 * trace_mutex held. */
bool event_is_held(const struct event *e, const struct trace_instance *in);

/* Give an event of an instance another filter, or NULL. It is the event's from now on, and the
 * old one is freed. Context: a task, trace_mutex held. */
void event_set_filter(struct event *e, const struct trace_instance *in,
		      struct event_filter *f);

/* All events of an instance off, without filters and triggers. 0 or an error as above.
 * Context: trace_mutex held. */
int events_reset(struct ctl_handle *h, const struct trace_instance *in);

/*
 * Change the set by a word of set_event: "sched:*", "sched:", "sched", "sched_switch",
 * "*:*", with "!" off. -EINVAL: there is no such event, and the set is as it was.
 */
int event_set_change(struct ctl_handle *h, struct event_set *set,
		     const char *word);

#endif
