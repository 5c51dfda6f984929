/* SPDX-License-Identifier: MIT */
/* Helpers that tests of events share. */
#include <tracer/events/testing.h>

#include <kernel/lib/string.h>
#include <tracer/events/events.h>
#include <tracer/testing.h>

/* A field's value. The event must have it. */
s64 event_test_value(const struct ring_entry *r, const char *field)
{
	const struct event_field *fields = event_by_id(r->event)->fields;
	const struct event_field *f =
		event_field_find(fields, field, strlen(field));

	return event_number(fields, f, r->record);
}

bool event_test_is(const struct ring_entry *r, const char *name)
{
	return r->event && !strcmp(event_by_id(r->event)->name, name);
}

/* Call look() for each entry, in the order of time. All that was written must be there. */
void event_test_each(struct ktest_run *t,
		     void (*look)(struct ktest_run *t,
				  const struct ring_entry *r))
{
	struct trace_iter *it = trace_iter_open(rings, cpus_present(), true);
	const struct ring_entry *r;
	struct ring_stats sum;
	u64 n = 0;

	KASSERT(t, it);
	while ((r = trace_iter_peek(it))) {
		look(t, r);
		trace_iter_next(it);
		n++;
	}
	trace_iter_close(it);
	KEXPECT(t, trace_test_books(&sum));
	KEXPECT_EQ(t, sum.overwritten, 0);
	KEXPECT_EQ(t, sum.held, n);
}

/* An empty buffer that holds all of the test. */
void event_test_begin(const char *events)
{
	trace_test_reset();
	trace_test_size(2048);
	trace_test_put("set_event", events);
}

void event_test_end(void)
{
	trace_test_put("set_event", "");
	trace_test_reset();
	trace_test_size(RING_DEFAULT_KB);
}