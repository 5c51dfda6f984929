/* SPDX-License-Identifier: MIT */
/* The control files that describe events and the trace buffer, in Linux's words: id, format,
 * header_page, header_event. */
#include <tracer/events/files.h>

#include <kernel/lib/string.h>
#include <tracer/core/tracer.h>
#include <tracer/events/events.h>
#include <tracer/events/formats.h>
#include <tracer/show/lines.h>
#include <tracer/show/raw_swap.h>

static void event_id_show(struct ctl_handle *h, struct seq *s)
{
	seq_printf(s, "%u\n", event_id(event_at(h->index)));
}
CTL_FILE(event_id, .path = TRACING "events/%s/id", .folders = &trace_folders,
	 .name = event_path, .show = event_id_show);

static int event_format_read(struct ctl_handle *h, struct seq *s)
{
	const struct event *e = event_at(h->index);

	return event_show_file(h->pos++, s, e->name, event_id(e), e->fields,
			       e->text);
}
CTL_FILE(event_format, .path = TRACING "events/%s/format",
	 .folders = &trace_folders, .name = event_path,
	 .read = event_format_read);

static const char *own_path(unsigned int i)
{
	return own_formats[i].path;
}

static int own_format_read(struct ctl_handle *h, struct seq *s)
{
	const struct own_format *o = &own_formats[h->index];

	return event_show_file(h->pos++, s, o->name, o->id, o->fields, o->text);
}
CTL_FILE(own_format, .path = TRACING "events/%s/format",
	 .folders = &trace_folders, .name = own_path, .read = own_format_read);

static void own_id_show(struct ctl_handle *h, struct seq *s)
{
	seq_printf(s, "%u\n", own_formats[h->index].id);
}
CTL_FILE(own_id, .path = TRACING "events/%s/id", .folders = &trace_folders,
	 .name = own_path, .show = own_id_show);

CTL_FILE(header_page, .path = TRACING "events/header_page",
	 .folders = &trace_folders, .show = format_header_page);
CTL_FILE(header_event, .path = TRACING "events/header_event",
	 .folders = &trace_folders, .show = format_header_event);

/* ---- Binary pages for the other byte order (tracer/show/raw_swap.c) ---- */

/* NULL: numbers of that entry are not known. A raw marker is its writer's own bytes. */
static const struct event_field *fields_of(u16 id)
{
	const struct event *event = event_by_id(id);
	const struct own_format *o = own_formats;

	if (event)
		return event->fields;
	while (o->path && o->id != id)
		o++;
	return o->path && o->fields[1].kind != EVENT_BYTES ? o->fields : NULL;
}

static void swap_numbers(char *at, unsigned int size, unsigned int unit)
{
	for (unsigned int i = 0; i < size; i += unit)
		raw_swap(at + i, unit);
}

static void swap_payload(char *payload)
{
	const struct event_field *fields, *f;
	u32 word;
	u16 id;

	memcpy(&id, payload, sizeof(id));
	fields = fields_of(id);
	raw_swap(payload, sizeof(id));
	raw_swap(payload + 4, 4); /* the pid */
	for (f = fields; f && f->name; f++) {
		struct event_place place = event_place(fields, f);
		char *at = payload + EVENT_COMMON + place.offset;

		if (f->kind == EVENT_CPUS) {
			memcpy(&word, at, sizeof(word));
			swap_numbers(payload + (word & 0xffff), word >> 16,
				     sizeof(long));
		}
		swap_numbers(at, place.size, place.unit);
	}
}
TRACE_LINES(formats, .swap = swap_payload);
