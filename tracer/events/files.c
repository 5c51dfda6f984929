/* SPDX-License-Identifier: MIT */
/* The control files that switch events: events/, available_events, set_event, error_log. Those
 * that describe them are in files_format.c. */
#include <tracer/events/files.h>
#include <tracer/core/command.h>
#include <tracer/events/event_filter.h>
#include <tracer/events/event_trigger.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/core/tracer.h>

struct event *event_at(unsigned int i)
{
	struct event *e = __start_events + i;

	return e < __stop_events ? e : NULL;
}

const char *event_path(unsigned int i)
{
	const struct event *e = event_at(i);

	return e ? e->path : NULL;
}

/* The i-th system: its events stand together in list.h. */
static const char *event_system(unsigned int i)
{
	const char *last = "";
	struct event *e;

	for_each_event (e) {
		if (!strcmp(e->system, last))
			continue;
		if (!i--)
			return e->system;
		last = e->system;
	}
	return NULL;
}

/* ---- enable ----------------------------------------------------------------------- */

/* Which events a file switches: each, those of a system, or one. */
enum { EACH_EVENT, OF_SYSTEM, ONE_EVENT };

static bool is_of_file(const struct ctl_handle *h, const struct event *e)
{
	return h->file->data == ONE_EVENT ?
		       e == event_at(h->index) :
	       h->file->data == OF_SYSTEM ?
		       !strcmp(e->system, event_system(h->index)) :
		       true;
}

/* 0 or 1. X when some of them are on, and some off. A * behind it: a trigger holds the event. */
static void enable_show(struct ctl_handle *h, struct seq *s)
{
	const struct trace_instance *in = instance_of(h);
	bool on = false, off = false, held = false;
	struct event *e;

	for_each_event (e)
		if (is_of_file(h, e)) {
			on |= event_is_on(e, in);
			off |= !event_is_on(e, in);
			held |= event_is_held(e, in);
		}
	seq_printf(s, "%c%s\n",
		   on && off ? 'X' :
		   on	     ? '1' :
			       '0',
		   held && h->file->data == ONE_EVENT ? "*" : "");
}

static int enable_write(struct ctl_handle *h, char *text)
{
	struct event_set set = EVENTS_UNTOUCHED;
	struct event *e;
	bool on;
	int err = ctl_bool(h, text, &on);

	if (err)
		return err;
	for_each_event (e)
		if (is_of_file(h, e))
			event_set_bit(&set, e, on);
	return events_switch(h, instance_of(h), &set);
}

#define ENABLE_FILE(ident, below, which, ...)                                  \
	TRACE_FILE(ident, .path = TRACING "events/" below "enable",            \
		   .folders = &trace_folders, .show = enable_show,             \
		   .write = enable_write, .data = (which), __VA_ARGS__)
ENABLE_FILE(events_enable, "", EACH_EVENT);
ENABLE_FILE(system_enable, "%s/", OF_SYSTEM, .name = event_system);
ENABLE_FILE(event_enable, "%s/", ONE_EVENT, .name = event_path);

/* ---- available_events, set_event ------------------------------------------------------- */

static int available_events_read(struct ctl_handle *h, struct seq *s)
{
	const struct event *e = event_at(h->pos++);

	if (!e)
		return 0;
	seq_printf(s, "%s:%s\n", e->system, e->name);
	return 1;
}
CTL_FILE(available_events, .path = TRACING "available_events",
	 .folders = &trace_folders, .read = available_events_read);

static int set_event_read(struct ctl_handle *h, struct seq *s)
{
	const struct event *e;

	while ((e = event_at(h->pos++)))
		if (event_is_on(e, instance_of(h))) {
			seq_printf(s, "%s:%s\n", e->system, e->name);
			return 1;
		}
	return 0;
}

/* With `>`, all that the words do not name are off. */
static int set_event_write(struct ctl_handle *h, char *text)
{
	struct event_set set = h->truncate ? events_off() : EVENTS_UNTOUCHED;
	char *word;
	int err = 0;

	while (!err && (word = ctl_word(&text)))
		err = event_set_change(h, &set, word);
	return err || h->dry ? err : events_switch(h, instance_of(h), &set);
}
TRACE_FILE(set_event, .path = TRACING "set_event", .folders = &trace_folders,
	   .read = set_event_read, .write = set_event_write, .empties = true,
	   .checks = true);

/* ---- filter ------------------------------------------------------------------------------- */

static void event_filter_show(struct ctl_handle *h, struct seq *s)
{
	const struct event_filter *f;

	f = event_at(h->index)->filters[h->folder];
	seq_printf(s, "%s\n", f ? event_filter_text(f) : "none");
}

static void give_filter(const struct ctl_handle *h, struct event *e,
			struct event_filter *f)
{
	if (h->dry)
		event_filter_free(f);
	else
		event_set_filter(e, instance_of(h), f);
}

/* "0", and nothing, take the filter away. */
static int set_filter(struct ctl_handle *h, struct event *e, const char *text)
{
	struct event_filter *f = NULL;
	const char *what;
	unsigned int at;
	int err;

	if (*text && strcmp(text, "0")) {
		f = event_filter_parse(e, text, &what, &at);
		if (!f && event_filter_refuse(instance_of(h), text, what, at) ==
				  -ENOMEM)
			return -ENOMEM;
		if (!f)
			return ctl_error(h, -EINVAL,
					 "%s, at character %u; the fields are "
					 "in events/%s/format",
					 what, at + 1, e->path);
	}
	err = event_filters_afford(h, e, f, e->filters[h->folder]);
	if (err)
		event_filter_free(f);
	else
		give_filter(h, e, f);
	return err;
}

static int event_filter_write(struct ctl_handle *h, char *text)
{
	return set_filter(h, event_at(h->index), ctl_strip(text));
}
TRACE_FILE(event_filter, .path = TRACING "events/%s/filter",
	   .folders = &trace_folders, .name = event_path,
	   .show = event_filter_show, .write = event_filter_write,
	   .empties = true, .checks = true);

/* Parse the text for each event of the system: 0, -ENOMEM, or -EINVAL when no event has the
 * fields. */
static int parse_for_each(struct ctl_handle *h, const char *system,
			  const char *text, struct event_filter **filters)
{
	const char *what = NULL;
	unsigned int at = 0;
	bool any = false;
	struct event *e;
	int err;

	for_each_event (e) {
		struct event_filter **f = &filters[e - __start_events];

		if (strcmp(e->system, system))
			continue;
		*f = event_filter_parse(e, text, &what, &at);
		if (!*f && !what)
			return -ENOMEM;
		any |= *f != NULL;
	}
	if (any)
		return 0;
	err = event_filter_refuse(instance_of(h), text, what, at);
	return ctl_error(h, err,
			 "%s, at character %u, for every event of %s; the "
			 "fields are in events/%s/*/format",
			 what, at + 1, system, system);
}

/* A system's filter goes to each of its events that has the fields, Linux's rule. All of them are
 * made before the first is given, so that nothing changes when the memory ends. */
static int system_filter_write(struct ctl_handle *h, char *text)
{
	const char *system = event_system(h->index);
	struct event_filter **filters;
	bool none;
	struct event *e;
	int err = 0;

	text = ctl_strip(text);
	none = !*text || !strcmp(text, "0");
	filters = kmalloc_zeroed((__stop_events - __start_events) *
				 sizeof(*filters));
	if (!filters)
		return -ENOMEM;
	if (!none)
		err = parse_for_each(h, system, text, filters);
	for_each_event (e)
		err = err   ?:
			      event_filters_afford(h, e,
						   filters[e - __start_events],
						   e->filters[h->folder]);
	for_each_event (e) {
		struct event_filter *f = filters[e - __start_events];

		if (err)
			event_filter_free(f);
		else if (f || (none && !strcmp(e->system, system)))
			give_filter(h, e, f);
	}
	kfree(filters);
	return err;
}

static void system_filter_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s,
		   "### global filter ###\n# Use this to set filters for "
		   "multiple events.\n# Only events with the given fields "
		   "will be affected.\n# If no events are modified, an error "
		   "message will be displayed here\n");
}
TRACE_FILE(system_filter, .path = TRACING "events/%s/filter",
	   .folders = &trace_folders, .name = event_system,
	   .show = system_filter_show, .write = system_filter_write,
	   .empties = true, .checks = true);

/* ---- trigger ------------------------------------------------------------------------- */

/* A text written into trace_marker is an event that stands in no list. */
static struct event *triggering(const struct ctl_handle *h)
{
	return h->file->name ? event_at(h->index) : &event_marker;
}

static int trigger_file_read(struct ctl_handle *h, struct seq *s)
{
	bool some =
		event_trigger_show(s, triggering(h), instance_of(h), h->pos);

	if (!some && !h->pos)
		seq_printf(s, "# Available triggers:\n# %s\n", command_names);
	return !h->pos++ || some;
}

static int trigger_file_write(struct ctl_handle *h, char *text)
{
	struct event *e = triggering(h);

	text = ctl_strip(text);
	if (h->dry)
		return event_trigger_check(h, e, text);
	return *text ? event_trigger_write(h, e, text) :
		       event_triggers_clear(h, e, instance_of(h));
}

#define TRIGGER_FILE(ident, event, ...)                                        \
	TRACE_FILE(ident, .path = TRACING "events/" event "/trigger",          \
		   .folders = &trace_folders, .read = trigger_file_read,       \
		   .write = trigger_file_write, .empties = true,               \
		   .checks = true, __VA_ARGS__)
TRIGGER_FILE(event_trigger, "%s", .name = event_path);
TRIGGER_FILE(marker_trigger, "ftrace/print");
