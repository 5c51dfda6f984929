/* SPDX-License-Identifier: MIT */
/* The trace options and their files: options.h. */
#include <tracer/core/options.h>

#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <tracer/core/client.h>
#include <tracer/core/tracer.h>

/* clang-format off */
static const char *const names[NR_OPTIONS] = {
	[OPT_PRINT_PARENT] = "print-parent",
	[OPT_SYM_OFFSET] = "sym-offset",
	[OPT_SYM_ADDR] = "sym-addr",
	[OPT_CONTEXT_INFO] = "context-info",
	[OPT_IRQ_INFO] = "irq-info",
	[OPT_ANNOTATE] = "annotate",
	[OPT_MARKERS] = "markers",
	[OPT_RECORD_CMD] = "record-cmd",
	[OPT_OVERWRITE] = "overwrite",
	[OPT_PAUSE_ON_TRACE] = "pause-on-trace",
	[OPT_FUNC_STACK] = "func_stack_trace",
	[OPT_FUNC_NO_REPEATS] = "func-no-repeats",
	[OPT_STACKTRACE] = "stacktrace",
	[OPT_LATENCY_FORMAT] = "latency-format",
	[OPT_FUNCTION_TRACE] = "function-trace",
	[OPT_FUNCTION_FORK] = "function-fork",
	[OPT_EVENT_FORK] = "event-fork",
	[OPT_GRAPH_CPU] = "funcgraph-cpu",
	[OPT_GRAPH_OVERHEAD] = "funcgraph-overhead",
	[OPT_GRAPH_PROC] = "funcgraph-proc",
	[OPT_GRAPH_DURATION] = "funcgraph-duration",
	[OPT_GRAPH_ABSTIME] = "funcgraph-abstime",
	[OPT_GRAPH_TAIL] = "funcgraph-tail",
	[OPT_GRAPH_OVERRUN] = "funcgraph-overrun",
	[OPT_GRAPH_IRQS] = "funcgraph-irqs",
	[OPT_SLEEP_TIME] = "sleep-time",
	[OPT_GRAPH_TIME] = "graph-time",
};
/* clang-format on */

/* Has the instance the option? Then it has its file. */
static bool instance_has_option(const struct trace_instance *in,
				unsigned int option)
{
	char path[128];

	snprintf(path, sizeof(path), TRACING "instances/%s/options/%s",
		 in->name, names[option]);
	return in == &trace_top || ctl_mode(path) >= 0;
}

void instance_settle(struct trace_instance *in)
{
	WRITE_ONCE(in->overwrites,
		   instance_option(in, OPT_OVERWRITE) || in->tracer->latency);
}

/* What its file shows. */
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
	WRITE_ONCE(trace_top.options, TRACE_OPTIONS_AT_BOOT);
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

static unsigned int option_of_file(const struct ctl_handle *h)
{
	return find_option(strrchr(h->file->path, '/') + 1);
}

static void option_show(struct ctl_handle *h, struct seq *s)
{
	seq_printf(s, "%d\n", option_is_on(instance_of(h), option_of_file(h)));
}

static int option_write(struct ctl_handle *h, char *text)
{
	bool on;
	int err = ctl_bool(h, text, &on);

	if (!err && !on)
		err = refuse_off(h, option_of_file(h));
	return err   ?:
		       set_all(h, options_with(instance_of(h)->options,
					       option_of_file(h), on));
}

#define OPTION_FILE(ident, name, ...)                                          \
	TRACE_FILE(option_##ident, .path = TRACING "options/" name,            \
		   .show = option_show, .write = option_write, __VA_ARGS__)
/* One that each instance has. */
#define INSTANCE_OPTION_FILE(ident, name)                                      \
	OPTION_FILE(ident, name, .folders = &trace_folders)
INSTANCE_OPTION_FILE(print_parent, "print-parent");
INSTANCE_OPTION_FILE(sym_offset, "sym-offset");
INSTANCE_OPTION_FILE(sym_addr, "sym-addr");
INSTANCE_OPTION_FILE(context_info, "context-info");
INSTANCE_OPTION_FILE(irq_info, "irq-info");
INSTANCE_OPTION_FILE(annotate, "annotate");
INSTANCE_OPTION_FILE(markers, "markers");
OPTION_FILE(record_cmd, "record-cmd");
INSTANCE_OPTION_FILE(overwrite, "overwrite");
INSTANCE_OPTION_FILE(pause_on_trace, "pause-on-trace");
OPTION_FILE(func_stack_trace, "func_stack_trace");
OPTION_FILE(func_no_repeats, "func-no-repeats");
INSTANCE_OPTION_FILE(latency_format, "latency-format");
OPTION_FILE(function_trace, "function-trace");
INSTANCE_OPTION_FILE(stacktrace, "stacktrace");
INSTANCE_OPTION_FILE(function_fork, "function-fork");
INSTANCE_OPTION_FILE(event_fork, "event-fork");
OPTION_FILE(graph_cpu, "funcgraph-cpu");
OPTION_FILE(graph_overhead, "funcgraph-overhead");
OPTION_FILE(graph_proc, "funcgraph-proc");
OPTION_FILE(graph_duration, "funcgraph-duration");
OPTION_FILE(graph_abstime, "funcgraph-abstime");
OPTION_FILE(graph_tail, "funcgraph-tail");
OPTION_FILE(graph_overrun, "funcgraph-overrun");
OPTION_FILE(graph_irqs, "funcgraph-irqs");
OPTION_FILE(sleep_time, "sleep-time");
OPTION_FILE(graph_time, "graph-time");
