/* SPDX-License-Identifier: MIT */
/*
 * Triggers of events: actions when an event happens, whether it is recorded or not. They are
 * written to events/SYSTEM/EVENT/trigger as COMMAND[:COUNT] [if FILTER], and taken back with !
 * before that.
 */
#ifndef TRACER_EVENT_TRIGGER_H
#define TRACER_EVENT_TRIGGER_H

#include <tracer/events/events.h>

/*
 * Add the trigger that text says to e, for the instance of h, or take one back. 0. -EINVAL: text
 * makes no sense. -ENODEV: nothing to take back. -EEXIST: there is the same one. -ENOMEM, or
 * patch_apply()'s error. After an error nothing has changed. Context: trace_mutex held.
 */
int event_trigger_write(struct ctl_handle *h, struct event *e, char *text);

/*
 * Interrupts are off while all filters and triggers of an event look at a record. 0, or -E2BIG:
 * with f, and without the filter `gone`, they could take longer than they may. Either may be NULL.
 */
int event_filters_afford(struct ctl_handle *h, const struct event *e,
			 const struct event_filter *f,
			 const struct event_filter *gone);

/* Does text say a trigger that can be added to e? 0 or -EINVAL. text is changed. */
int event_trigger_check(struct ctl_handle *h, const struct event *e,
			char *text);

/* Take back all triggers of e that are an instance's. As above. */
int event_triggers_clear(struct ctl_handle *h, struct event *e,
			 const struct trace_instance *in);

/* Put the line of an instance's i-th trigger into s. False: there are no more. Context: trace_mutex
 * held. */
bool event_trigger_show(struct seq *s, const struct event *e,
			const struct trace_instance *in, unsigned long i);

/* Has any event a trigger, has another instance than the top level one? Has event e one of an
 * instance's, does one switch it? In NULL: any instance's. Context: trace_mutex held. */
bool event_triggers_any(void);
bool event_triggers_apart(void);
bool event_triggers_of(const struct event *e, const struct trace_instance *in);
bool event_triggers_switch(const struct event *e,
			   const struct trace_instance *in);

/*
 * The event has happened, with this record: run the triggers that act before it is recorded, or
 * those that act after. Interrupts off. No site.
 */
void event_triggers_before(const struct event *e, const void *record,
			   bool irqs_off);
void event_triggers_after(const struct event *e, const void *record,
			  unsigned long ip, bool irqs_off);

struct marker_record {
	unsigned long ip; /* as the marker's entry has it */
	char buf[];	  /* ends with a NUL */
};

#endif
