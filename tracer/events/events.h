/*
 * Events while the machine runs: what kernel/event/list.h defines, switched by jump labels
 * and written into the trace buffer.
 */
#ifndef TRACER_EVENTS_H
#define TRACER_EVENTS_H

#include <arch/jump_label.h>
#include <kernel/ctl/ctl.h>
#include <tracer/events/fields.h>

struct event_filter;
struct event_triggers;

struct event {
	const char *system, *name;
	const char *path; /* "sched/sched_switch" */
	const struct event_field *fields;
	const char *text;	/* the template of list.h */
	struct static_key *key; /* under trace_mutex, as what follows */
	bool on; /* it is recorded; triggers store to it as well */
	u32 special; /* 1: one of these says what to do; a word, for the fast path */
	struct event_filter *filter; /* NULL: every event is recorded */
	struct event_triggers *triggers;
	/* The field that names the other task of a switch or a wake-up, or NULL. */
	const struct event_field *other;
};
extern struct event __start_events[], __stop_events[];
#define for_each_event(e) for ((e) = __start_events; (e) < __stop_events; (e)++)

/* The number that a record names its event by; those below are Linux's own entries. */
#define EVENT_FIRST_ID 32
static inline unsigned int event_id(const struct event *e)
{
	return EVENT_FIRST_ID + (e - __start_events);
}
const struct event *event_by_id(unsigned int id);

/* Which events are on, or shall be: a bit for each, in list.h's order. */
struct event_set {
	u32 bits[4];
};

/* Those that are on. And one event's bit. Context: trace_mutex held. */
struct event_set events_now(void);
void event_set_bit(struct event_set *set, const struct event *e, bool on);

/*
 * Make these the events that are on, all or none: 0, or patch_apply()'s error, explained
 * in h. Context: trace_mutex held.
 */
int events_switch(struct ctl_handle *h, const struct event_set *set);

/* Is any event's jump label on? Context: trace_mutex held. */
bool events_are_on(void);

/* Is the event's jump label on for a trigger's sake? Context: trace_mutex held. */
bool event_is_held(const struct event *e);

/* Give an event another filter, or NULL. It is the event's from now on, and the old one is
 * freed. Context: a task, trace_mutex held. */
void event_set_filter(struct event *e, struct event_filter *f);

/* All events off, without filters. 0 or an error as above. Context: trace_mutex held. */
int events_reset(struct ctl_handle *h);

/*
 * Change the set by a word of set_event: "sched:*", "sched:", "sched", "sched_switch",
 * "*:*", with "!" off. -EINVAL: there is no such event, and the set is as it was.
 */
int event_set_change(struct ctl_handle *h, struct event_set *set,
		     const char *word);

#endif
