/* SPDX-License-Identifier: MIT */
/* The tracer's boot parameters, and how it starts: they are written to its control files. */
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/lib/string.h>
#include <kernel/panic.h>
#include <kernel/param.h>
#include <kernel/printk.h>
#include <tracer/core/tracer.h>
#include <tracer/ring/ring_control.h>
#include <tracer/show/output.h>
#include <tracer/sites/sites.h>

static unsigned long boot_kb = RING_DEFAULT_KB;

/* A parameter whose text is kept in boot_IDENT until its control file takes it. */
#define BOOT_TEXT(ident, name, accepts)                                        \
	static const char *boot_##ident;                                       \
	static int set_##ident(const char *value)                              \
	{                                                                      \
		boot_##ident = value;                                          \
		return 0;                                                      \
	}                                                                      \
	KERNEL_PARAM(ident, name, accepts, set_##ident)
#define NAMES "functions and globs, separated by commas"
BOOT_TEXT(filter, "ftrace_filter", NAMES);
BOOT_TEXT(left_out, "ftrace_notrace", NAMES);
BOOT_TEXT(graph, "ftrace_graph_filter", NAMES);
BOOT_TEXT(graph_hidden, "ftrace_graph_notrace", NAMES);
BOOT_TEXT(events, "trace_event",
	  "events as set_event takes them, separated by commas");
BOOT_TEXT(options, "trace_options",
	  "options or noOPTIONs, separated by commas");

BOOT_TEXT(instance, "trace_instance",
	  "NAME[,EVENT]...: an instance, and the events that it records");

static const char *boot_tracer, *boot_depth;

static int set_tracer(const char *value)
{
	if (!trace_find(value))
		return -EINVAL;
	boot_tracer = value;
	return 0;
}
KERNEL_PARAM(ftrace, "ftrace", "a tracer: function function_graph nop",
	     set_tracer);

static int set_depth(const char *value)
{
	u64 levels;

	if (parse_in_base(value, 10, &levels))
		return -EINVAL;
	boot_depth = value;
	return 0;
}
KERNEL_PARAM(ftrace_graph_max_depth, "ftrace_graph_max_depth",
	     "levels of calls; 0 is all", set_depth);

static int set_clock(const char *value)
{
	return trace_clock_select(&trace_top, value);
}
KERNEL_PARAM(trace_clock, "trace_clock",
	     "a clock: local global counter uptime mono boot", set_clock);

static int set_boot_size(const char *value)
{
	u64 bytes;

	if (parse_u64(value, &bytes) || !bytes || bytes >> 30)
		return -EINVAL;
	boot_kb = (bytes + 1023) / 1024;
	return 0;
}
KERNEL_PARAM(trace_buf_size, "trace_buf_size",
	     "bytes for each CPU, with K or M, below 1024M", set_boot_size);

static void boot_echo(const char *file, const char *value)
{
	char text[BOOT_CMDLINE], error[160], *p;

	if (!value)
		return;
	string_copy(text, value, sizeof(text));
	for (p = text; *p; p++)
		if (*p == ',')
			*p = ' ';
	if (ctl_echo(file, text, false, error, sizeof(error)))
		printk("param: %s: %s\n", file, error);
}

/* "NAME,EVENT,EVENT" */
static void boot_make_instance(void)
{
	const char *events = boot_instance ? strchr(boot_instance, ',') : NULL;
	char path[128], error[160];
	int name;

	if (!boot_instance)
		return;
	name = events ? events - boot_instance : (int)strlen(boot_instance);
	snprintf(path, sizeof(path), TRACING "instances/%.*s", name,
		 boot_instance);
	if (ctl_mkdir(path, error, sizeof(error))) {
		printk("param: %s: %s\n", path, error);
		return;
	}
	snprintf(path, sizeof(path), TRACING "instances/%.*s/set_event", name,
		 boot_instance);
	boot_echo(path, events ? events + 1 : NULL);
}

static void tracer_start(void)
{
	if (site_recorder.start)
		site_recorder.start();
	sites_report();
	if (ring_resize(rings, cpus_present(), boot_kb)) {
		printk("param: trace_buf_size: no memory for %lu KiB a CPU; "
		       "%lu instead\n",
		       boot_kb, RING_MIN_PAGES * PAGE_SIZE / 1024);
		if (ring_resize(rings, cpus_present(), 0))
			panic("no memory for the smallest trace buffer");
	}
	mutex_lock(&trace_mutex);
	trace_record(true, cpus_present());
	mutex_unlock(&trace_mutex);
	boot_echo(TRACING "trace_options", boot_options);
	boot_echo(TRACING "set_graph_function", boot_graph);
	boot_echo(TRACING "set_graph_notrace", boot_graph_hidden);
	boot_echo(TRACING "max_graph_depth", boot_depth);
	boot_echo(TRACING "set_ftrace_filter", boot_filter);
	boot_echo(TRACING "set_ftrace_notrace", boot_left_out);
	boot_echo(TRACING "set_event", boot_events);
	boot_make_instance();
	boot_echo(TRACING "current_tracer", boot_tracer);
}
INIT_HOOK(INIT_TASK, tracer_start);
