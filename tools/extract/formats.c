/* SPDX-License-Identifier: MIT */
/* The guest's events: their fields and texts, as its tables have them (tracer/events/fields.h). */
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <tracer/show/lines.h>

#define FIELDS_MAX 16
/* As far behind a record's beginning as 16 bits of a word in it can lead. */
#define RECORD_REACH 0x10000

static char *copy_text(const struct trace *t, u64 addr)
{
	char *text = strdup(guest_text(t->g, addr));

	if (!text)
		errx(1, "out of memory");
	return text;
}

static const struct event_field *read_fields(const struct trace *t,
					     const char *name, u64 at)
{
	u64 size = guest_size(t->g, "event_field"), kind;
	struct event_field *fields = calloc(FIELDS_MAX + 1, sizeof(*fields));

	if (!fields)
		errx(1, "out of memory");
	for (unsigned int i = 0; i < FIELDS_MAX; i++, at += size) {
		u64 text = guest_get(t->g, at, "event_field", "name");

		if (!text)
			break;
		kind = guest_get(t->g, at, "event_field", "kind");
		if (kind >= EVENT_ALL_KINDS)
			errx(1, "event %s has a field of the unknown kind %u",
			     name, (unsigned int)kind);
		fields[i] = (struct event_field){ copy_text(t, text), kind };
	}
	return fields;
}

static struct trace *trace;

static void add_event(struct trace *t, const struct event *e)
{
	t->events = array_grow(t->events, t->nr_events, sizeof(*e));
	t->events[t->nr_events++] = *e;
}

void formats_read(struct trace *t)
{
	u64 size = guest_size(t->g, "event"), at;
	u64 n = image_entries(&t->g->im, "__start_events", "__stop_events",
			      size, &at);
	const struct own_format *own = own_formats;
	struct event e;

	trace = t;
	if (guest_enumerator(t->g, "event_kind", "EVENT_ALL_KINDS") !=
	    EVENT_ALL_KINDS)
		errx(1, "%s: other kinds of fields than this program's",
		     t->g->im.path);
	for (; own->path; own++, t->nr_own++) {
		e = (struct event){ own->id,   "ftrace",    own->name,
				    own->text, own->fields, true };
		add_event(t, &e);
	}
#define MEMBER(name) guest_get(t->g, at, "event", #name)
	for (u64 i = 0; i < n; i++, at += size) {
		e = (struct event){ .id = RING_FIRST_EVENT + i,
				    .system = copy_text(t, MEMBER(system)),
				    .name = copy_text(t, MEMBER(name)),
				    .text = copy_text(t, MEMBER(text)) };
		e.fields = read_fields(t, e.name, MEMBER(fields));
		add_event(t, &e);
	}
}

/* A field's name in an event's text. Returns behind it. */
static const char *check_field(const struct event *e, const char *p)
{
	size_t n = strcspn(p, "}:-[");

	if (!event_field_find(e->fields, p, n))
		errx(1, "event %s has no field '%.*s'", e->name, (int)n, p);
	return p + n;
}

/* The text is read as the kernel reads it, which trusts its own: fields.c. */
static void check_text(struct event *e)
{
	for (const char *p = strchr(e->text, '{'); p && !e->checked;
	     p = strchr(p, '{')) {
		if (!strchr(p, '}'))
			errx(1, "event %s: its text '%s' makes no sense",
			     e->name, e->text);
		p = check_field(e, p + 1);
		if (*p == '[' && p[1] && p[2] == ']')
			p += 3;
		if (*p == '-')
			p = check_field(e, p + 1);
		if (*p == ':')
			p += strcspn(p, "}");
		if (*p != '}')
			errx(1, "event %s: its text '%s' makes no sense",
			     e->name, e->text);
	}
	e->checked = true;
}

const struct event *find_event(u32 id)
{
	for (struct event *e = trace->events, *end = e + trace->nr_events;
	     e < end; e++)
		if (e->id == id) {
			check_text(e);
			return e;
		}
	return NULL;
}

void for_each_word(const struct trace *t,
		   void (*fn)(u64 addr, const char *text, FILE *f), FILE *f)
{
	u64 size = t->g->im.pointer_size, at, name;
	u64 n = image_entries(&t->g->im, "__start_event_words",
			      "__stop_event_words", size, &at);

	for (; n; n--, at += size) {
		name = guest_pointer(t->g, at);
		fn(name, guest_text(t->g, name), f);
	}
	size = guest_size(t->g, "patch_strategy");
	n = image_entries(&t->g->im, "__start_patch_strategies",
			  "__stop_patch_strategies", size, &at);
	for (; n; n--, at += size) {
		name = guest_get(t->g, at, "patch_strategy", "name");
		fn(name, guest_text(t->g, name), f);
	}
}

/* Behind the record there are zeros as far as it can lead, and before it. */
void record_text(const struct event *event, const struct ring_entry *e,
		 struct seq *s)
{
	static char room[EVENT_COMMON + RECORD_REACH + EVENT_COMMON];

	memcpy(room + EVENT_COMMON, e->record, e->len - 4);
	event_show(s, event->fields, event->text, room + EVENT_COMMON);
	memset(room + EVENT_COMMON, 0, e->len - 4);
}

static bool show_event(struct seq *s, const struct ring_entry *e)
{
	const struct event *event =
		e->event < RING_FIRST_EVENT ? NULL : find_event(e->event);

	if (!event)
		return false;
	seq_printf(s, "%s: ", event->name);
	record_text(event, e, s);
	return true;
}
TRACE_LINES(events, .event = show_event);

void event_format(const struct event *e, FILE *f)
{
	struct seq s = { 0 };

	e = find_event(e->id);
	for (unsigned int at = 0;
	     event_show_file(at, &s, e->name, e->id, e->fields, e->text);
	     at++, s.len = 0)
		fwrite(s.buf, s.len, 1, f);
}
