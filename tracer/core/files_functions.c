/* SPDX-License-Identifier: MIT */
/* Control files that take functions, or list them: set_ftrace_filter and the like. */
#include <tracer/core/tracer.h>

#include <kernel/errno.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/core/calls.h>
#include <tracer/core/client.h>
#include <tracer/core/files_functions.h>
#include <tracer/core/filter.h>
#include <tracer/core/triggers.h>

/* One record a site whose bit is set. h->pos is the site to look at next. */
static bool next_site(struct ctl_handle *h, const u32 *bits)
{
	while (h->pos < site_count && !site_test(bits, h->pos))
		h->pos++;
	return h->pos < site_count;
}

static int list_sites(struct ctl_handle *h, struct seq *s, const u32 *bits,
		      const char *format)
{
	if (!next_site(h, bits))
		return 0;
	seq_printf(s, format, site_function(h->pos));
	h->pos++;
	return 1;
}

/* An instance's own, where the file's is one of the top level's. */
static struct site_filter *filter_of(const struct ctl_handle *h)
{
	size_t offset = h->file->data - (unsigned long)&trace_top;

	return offset < sizeof(trace_top) ?
		       (void *)((char *)instance_of(h) + offset) :
		       (void *)h->file->data;
}

/* A write may give the bits' memory back, but not meanwhile. */
int filter_file_read(struct ctl_handle *h, struct seq *s)
{
	const struct site_filter *f = filter_of(h);
	unsigned long i = f->count ? site_count : 1, before;

	if (f->count && list_sites(h, s, *f->bits, "%s\n"))
		return 1;
	if (!f->count && !h->pos) {
		h->pos++;
		seq_printf(s, "%s\n", f->empty);
		return 1;
	}
	i = h->pos++ - i;
	if (filter_show_module(s, f, &i))
		return 1;
	if (f != &instance_of(h)->filter)
		return 0;
	before = i;
	if (!triggers_show(s, instance_of(h), &i))
		return 0;
	h->pos += i - before - 1;
	return 1;
}

/* Takes the triggers out of text, and returns them. NULL: out of memory. */
static char *part_triggers(char *text)
{
	char *triggers = kmalloc_zeroed(strlen(text) + 1), *found = triggers;
	char *rest = text, *kept = text, *word, **to;

	while (triggers && (word = ctl_word(&rest))) {
		to = trigger_is_one(word) ? &found : &kept;
		if (*to != triggers && *to != text)
			*(*to)++ = ' ';
		memmove(*to, word, strlen(word) + 1);
		*to += strlen(*to);
	}
	if (triggers)
		*kept = '\0';
	return triggers;
}

/* A wrong word of either kind changes nothing. */
static int change_with_triggers(struct ctl_handle *h, struct site_filter *f,
				char *text, char *commands)
{
	char *copy;
	int err;

	if (!*commands && !h->dry)
		return filter_write(h, f, text, !h->truncate);
	copy = kmalloc(strlen(text) + 1);
	if (!copy)
		return ctl_error(h, -ENOMEM, "out of memory");
	string_copy(copy, text, strlen(text) + 1);
	err = filter_check(h, f, copy, !h->truncate);
	kfree(copy);
	if (!err && *commands)
		err = triggers_write(h, commands);
	return err || h->dry ? err : filter_write(h, f, text, !h->truncate);
}

/* Functions and triggers in one write. */
static int write_with_triggers(struct ctl_handle *h, struct site_filter *f,
			       char *text)
{
	char *commands = part_triggers(text);
	int err;

	if (!commands)
		return ctl_error(h, -ENOMEM, "out of memory");
	err = change_with_triggers(h, f, text, commands);
	kfree(commands);
	return err;
}

int filter_file_write(struct ctl_handle *h, char *text)
{
	struct site_filter *f = filter_of(h);
	int err;

	if (f == &instance_of(h)->filter)
		return write_with_triggers(h, f, text);
	if (h->dry)
		return filter_check(h, f, text, !h->truncate);
	err = filter_write(h, f, text, !h->truncate);
	if (!err && !f->in)
		clients_options_changed();
	return err;
}
FILTER_FILE(set_ftrace_filter, &trace_top.filter, .folders = &trace_folders);
FILTER_FILE(set_ftrace_notrace, &trace_top.left_out, .folders = &trace_folders);

static int available_functions_read(struct ctl_handle *h, struct seq *s)
{
	return list_sites(h, s, live_calls.patchable, "%s\n");
}
CTL_FILE(available_functions, .path = TRACING "available_filter_functions",
	 .read = available_functions_read);

static int available_addrs_read(struct ctl_handle *h, struct seq *s)
{
	if (!next_site(h, live_calls.patchable))
		return 0;
	seq_printf(s, "%lx %s\n", site_address(h->pos), site_function(h->pos));
	h->pos++;
	return 1;
}
CTL_FILE(available_addrs, .path = TRACING "available_filter_functions_addrs",
	 .read = available_addrs_read);

/* How many are told of its calls, and where they lead, if they do: as Linux shows it. */
static void put_use(struct seq *s, unsigned int site)
{
	unsigned long entry = (unsigned long)calls_entry(site);
	struct symbol sym;

	seq_printf(s, "%s (%u)", site_function(site), calls_users(site));
	if (site_test(live_calls.enabled, site) && symbol_at(entry, &sym))
		seq_printf(s, "\ttramp: %s+0x0/0x%lx", sym.name, sym.size);
	seq_printf(s, "\n");
}

static int list_uses(struct ctl_handle *h, struct seq *s, const u32 *bits)
{
	if (!next_site(h, bits))
		return 0;
	put_use(s, h->pos++);
	return 1;
}

static int enabled_functions_read(struct ctl_handle *h, struct seq *s)
{
	return list_uses(h, s, live_calls.enabled);
}
TRACE_FILE(enabled_functions, .path = TRACING "enabled_functions",
	   .read = enabled_functions_read);

static int touched_functions_read(struct ctl_handle *h, struct seq *s)
{
	return list_uses(h, s, live_calls.touched);
}
TRACE_FILE(touched_functions, .path = TRACING "touched_functions",
	   .read = touched_functions_read);
