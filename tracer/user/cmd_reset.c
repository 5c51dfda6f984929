/* SPDX-License-Identifier: MIT */
/* The shell's `trace reset` of the top level. */
#include <tracer/user/cmd_reset.h>

#include <kernel/cpu/cpu.h>
#include <kernel/ctl/ctl.h>
#include <kernel/lock/mutex.h>
#include <kernel/printk.h>
#include <kernel/shell/shell.h>
#include <tracer/calls/profile.h>
#include <tracer/core/triggers.h>
#include <tracer/core/options.h>
#include <tracer/events/events.h>
#include <tracer/core/tracer.h>

int cmd_write(const char *folder, const char *file, const char *text)
{
	char path[128], error[160];
	int err;

	snprintf(path, sizeof(path), TRACING "%s%s", folder, file);
	err = ctl_echo(path, text, false, error, sizeof(error));
	return err ? shell_error(err, "trace", "%s%s: %s", folder, file,
				 error) :
		     0;
}

/* As they are at boot. */
static const struct {
	const char *file, *text;
} at_boot[] = {
	{ "current_tracer", "nop" },	  { "set_ftrace_filter", "" },
	{ "set_ftrace_notrace", "" },	  { "set_ftrace_pid", "" },
	{ "set_ftrace_notrace_pid", "" }, { "set_event_pid", "" },
	{ "set_event_notrace_pid", "" },  { "set_graph_function", "" },
	{ "set_graph_notrace", "" },	  { "max_graph_depth", "0" },
	{ "tracing_thresh", "0" },	  { "snapshot", "0" },
	{ "buffer_percent", "50" },
};

/* The first error of several steps, each of which is done whatever became of the others. */
static void note_error(int *first, int err)
{
	if (!*first)
		*first = err;
}

/* All that acts by itself: triggers, which switch events and tracing_on, events, the profiler. */
static int reset_actors(void)
{
	static struct ctl_handle errors; /* too large for a stack */
	int err;

	mutex_lock(&trace_mutex);
	err = triggers_clear(&errors, &trace_top);
	note_error(&err, events_reset(&errors, &trace_top));
	note_error(&err, profile_reset(&errors));
	mutex_unlock(&trace_mutex);
	return err ? shell_error(err, "trace", "reset: %s", errors.error) : 0;
}

/*
 * Recording ends first. Then all goes that could act on the reset itself, and all else. Recording
 * begins last, for until its trigger has gone a function may end it. A step that fails lets the
 * others be done.
 */
int cmd_reset(void)
{
	char mask[12];
	int err = cmd_write("", "tracing_on", "0");

	note_error(&err, reset_actors());
	for (unsigned int i = 0; i < ARRAY_SIZE(at_boot); i++)
		note_error(&err,
			   cmd_write("", at_boot[i].file, at_boot[i].text));
	snprintf(mask, sizeof(mask), "%x", cpus_present());
	note_error(&err, cmd_write("", "tracing_cpumask", mask));
	mutex_lock(&trace_mutex);
	trace_options_reset();
	mutex_unlock(&trace_mutex);
	note_error(&err, cmd_write("", "trace", ""));
	note_error(&err, cmd_write("", "tracing_on", "1"));
	return err;
}
