/* SPDX-License-Identifier: MIT */
/*
 * Events while the machine runs: kernel/event/list.h defines them, jump labels switch them, and
 * each one is written into the trace buffer.
 */
#ifndef TRACER_EVENTS_H
#define TRACER_EVENTS_H

#include <arch/jump_label.h>
#include <kernel/ctl/ctl.h>
#include <tracer/base/event.h>
#include <tracer/events/fields.h>
#include <tracer/core/instances.h>

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

/*
 * Change the set by a word of set_event: "sched:*", "sched:", "sched", "sched_switch",
 * "*:*", with "!" off. -EINVAL: there is no such event, and the set is as it was.
 */
int event_set_change(struct ctl_handle *h, struct event_set *set,
		     const char *word);

#endif
