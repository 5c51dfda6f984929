/* SPDX-License-Identifier: MIT */
/* Helpers that tests of events share. */
#ifndef TRACER_EVENTS_TESTING_H
#define TRACER_EVENTS_TESTING_H

#include <kernel/test/ktest.h>
#include <tracer/show/output.h>

/* Field @field of the event that @r holds. The event must have that field. */
s64 event_test_value(const struct ring_entry *r, const char *field);

/* Whether @r holds an event called @name. */
bool event_test_is(const struct ring_entry *r, const char *name);

/* Calls @look for each entry, in the order of time. The test fails if one was overwritten. */
void event_test_each(struct ktest_run *t,
		     void (*look)(struct ktest_run *t,
				  const struct ring_entry *r));

/* Empties the buffer, makes it large enough for a test, and enables @events. */
void event_test_begin(const char *events);

/* Disables every event, and empties the buffer. */
void event_test_end(void);

#endif
