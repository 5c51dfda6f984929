/* Filters of events: which records are kept. */
#ifndef TRACER_EVENT_FILTER_H
#define TRACER_EVENT_FILTER_H

#include <tracer/events/fields.h>

struct event_filter;

/*
 * Parse a filter for events with these fields. NULL, with *error and the position of the
 * mistake in *at, when it makes no sense or there is no memory. "0" is no filter.
 */
struct event_filter *event_filter_parse(const struct event_field *fields,
					const char *text, const char **error,
					unsigned int *at);
/* What *error is where the event has no such field. *at is where the name begins. */
extern const char event_filter_no_field[];
void event_filter_free(struct event_filter *f);
/* How many characters of text are a field's name. */
size_t event_filter_name_length(const char *text);
/* As it was written. */
const char *event_filter_text(const struct event_filter *f);

/* Does the record pass? Any context. No site. */
bool event_filter_matches(const struct event_filter *f,
			  const struct event_field *fields, const void *record);

#endif
