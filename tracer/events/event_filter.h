/* SPDX-License-Identifier: MIT */
/* Filters of events: which records are kept. */
#ifndef TRACER_EVENT_FILTER_H
#define TRACER_EVENT_FILTER_H

#include <kernel/types.h>

struct event;
struct event_filter;
struct trace_instance;

/* A marker has filters of its triggers, in events/ftrace/print/trigger. */
extern struct event event_marker;
#define MARKER_ID 5 /* its common_type: Linux's number */

/*
 * Parse a filter for records of an event. NULL, with *error and the position of the
 * mistake in *at, when it makes no sense, and with *error NULL when there is no memory. "0" is no
 * filter.
 */
struct event_filter *event_filter_parse(const struct event *e, const char *text,
					const char **error, unsigned int *at);
void event_filter_free(struct event_filter *f);
/* event_filter_parse() has refused the text, with the *error and the *at that it gave: note a
 * mistake in the instance's error_log. -EINVAL, or -ENOMEM. Context: trace_mutex held. */
int event_filter_refuse(const struct trace_instance *in, const char *text,
			const char *error, unsigned int at);
/* Instructions that it takes at most, where an event's texts are as long as they may be. NULL: 0 */
unsigned int event_filter_cost(const struct event_filter *f);
/* As it was written. */
const char *event_filter_text(const struct event_filter *f);

/*
 * Does the event's record pass? irqs_off: interrupts were off where it happened. The time of a
 * pattern grows with the length of its text times that of the pattern. The texts of events have
 * EVENT_WORD_MAX bytes at most: event_filter_cost(). A longer text is looked at with interrupts on.
 * Any context. No site.
 */
bool event_filter_matches(const struct event_filter *f, const struct event *e,
			  const void *record, bool irqs_off);

#endif
