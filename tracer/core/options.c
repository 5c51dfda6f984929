/* SPDX-License-Identifier: MIT */
/* The trace options and their files: options.h. */
#include <tracer/core/options.h>

#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <tracer/core/client.h>
#include <tracer/core/tracer.h>

enum { OFF, ON };
enum { TOP, EACH };

#define OPTION_NAME(bit, name, ...) [OPT_##bit] = (name),
static const char *const names[NR_OPTIONS] = { TRACE_OPTIONS(OPTION_NAME) };

#define OPTION_DEFAULT(bit, name, boot, ...) | (boot) << OPT_##bit
const u32 trace_options_at_boot = 0u TRACE_OPTIONS(OPTION_DEFAULT);

#define OPTION_EACH(bit, name, boot, which) | (which) << OPT_##bit
static const u32 of_each_instance = 0u TRACE_OPTIONS(OPTION_EACH);

static bool instance_has_option(const struct trace_instance *in,
				unsigned int option)
{
	return in == &trace_top || of_each_instance >> option & 1;
}

void instance_settle(struct trace_instance *in)
{
	WRITE_ONCE(in->overwrites,
		   instance_option(in, OPT_OVERWRITE) || in->tracer->latency);
}

/* The value that the option's file shows. */
static bool option_is_on(const struct trace_instance *in, unsigned int option)
{
	return option == OPT_OVERWRITE ? in->overwrites :
					 instance_option(in, option);
}

static int refuse_off(struct ctl_handle *h, unsigned int option)
{
	const struct tracer *tracer = instance_of(h)->tracer;

	if (option != OPT_OVERWRITE || !tracer->latency)
		return 0;
	return ctl_error(h, -EINVAL,
			 "overwrite stays 1 while the tracer %s runs",
			 tracer->name);
}

static u32 options_with(u32 options, unsigned int option, bool on)
{
	u32 bit = 1u << option;

	return on ? options | bit : options & ~bit;
}

/* All of them, or after an error none. */
static int set_all(struct ctl_handle *h, u32 options)
{
	struct trace_instance *in = instance_of(h);
	u32 before = in->options;
	bool wanted = trace_wants(trace_top.tracer);
	int err;

	mutex_assert_held(&trace_mutex);
	WRITE_ONCE(in->options, options);
	instance_settle(in);
	err = in == &trace_top ? trace_wants_changed(h, wanted) : 0;
	/* An event looks at this option only where something is special about it. */
	if (!err && (before ^ options) >> OPT_STACKTRACE & 1)
		err = clients_settings_changed(h);
	if (err) {
		WRITE_ONCE(in->options, before);
		instance_settle(in);
	}
	clients_options_changed();
	return err;
}

/* The option of that name, or NR_OPTIONS. */
static unsigned int find_option(const char *name)
{
	unsigned int i = 0;

	while (i < NR_OPTIONS && strcmp(names[i], name))
		i++;
	return i;
}

const char *trace_option_name(unsigned int i)
{
	return i < NR_OPTIONS ? names[i] : NULL;
}

bool trace_option_exists(const char *name)
{
	return find_option(name + 2 * !strncmp(name, "no", 2)) < NR_OPTIONS;
}

void trace_options_reset(void)
{
	mutex_assert_held(&trace_mutex);
	WRITE_ONCE(trace_top.options, trace_options_at_boot);
	instance_settle(&trace_top);
	clients_options_changed();
}

static int options_read(struct ctl_handle *h, struct seq *s)
{
	const struct trace_instance *in = instance_of(h);
	unsigned int i;

	while ((i = h->pos++) < NR_OPTIONS && !instance_has_option(in, i))
		;
	if (i >= NR_OPTIONS)
		return 0;
	seq_printf(s, "%s%s\n", option_is_on(in, i) ? "" : "no", names[i]);
	return 1;
}

/* Words separated by blanks. */
static int parse_words(struct ctl_handle *h, char *text, u32 *options)
{
	unsigned int option;
	char *word;
	int err = 0;
	bool off;

	while (!err && (word = ctl_word(&text))) {
		off = !strncmp(word, "no", 2);
		option = find_option(word + 2 * off);
		if (option == NR_OPTIONS ||
		    !instance_has_option(instance_of(h), option))
			return ctl_error(h, -EINVAL,
					 "'%.32s' is no option; cat "
					 "trace_options lists them",
					 word);
		if (off)
			err = refuse_off(h, option);
		*options = options_with(*options, option, !off);
	}
	return err;
}

static int options_write(struct ctl_handle *h, char *text)
{
	u32 options = instance_of(h)->options;
	int err = parse_words(h, text, &options);

	return err ?: set_all(h, options);
}
TRACE_FILE(trace_options, .path = TRACING "trace_options",
	   .folders = &trace_folders, .read = options_read,
	   .write = options_write);

static void option_show(struct ctl_handle *h, struct seq *s)
{
	seq_printf(s, "%d\n", option_is_on(instance_of(h), h->file->data));
}

static int option_write(struct ctl_handle *h, char *text)
{
	bool on;
	int err = ctl_bool(h, text, &on);

	if (!err && !on)
		err = refuse_off(h, h->file->data);
	return err   ?:
		       set_all(h, options_with(instance_of(h)->options,
					       h->file->data, on));
}

#define OPTION_FILE(bit, name, boot, which)                                    \
	TRACE_FILE(option_##bit, .path = TRACING "options/" name,              \
		   .folders = (which) == EACH ? &trace_folders : NULL,         \
		   .show = option_show, .write = option_write,                 \
		   .data = OPT_##bit);
TRACE_OPTIONS(OPTION_FILE)
