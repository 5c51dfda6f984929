/* SPDX-License-Identifier: MIT */
/* The shell's `trace reset` of the top level. */
#include <tracer/user/cmd_reset.h>

#include <kernel/cpu/cpu.h>
#include <kernel/ctl/ctl.h>
#include <kernel/lock/mutex.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/shell/shell.h>
#include <tracer/core/client.h>
#include <tracer/core/triggers.h>
#include <tracer/core/options.h>
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

/* The first error of several steps. Each step is done, even after another one has failed. */
static void note_error(int *first, int err)
{
	if (!*first)
		*first = err;
}

/* All that acts by itself: triggers, which switch events and tracing_on, and clients. */
static int reset_actors(void)
{
	static struct ctl_handle errors; /* too large for a stack */
	int err;

	mutex_lock(&trace_mutex);
	err = triggers_clear(&errors, &trace_top);
	note_error(&err, clients_instance_restarts(&errors, &trace_top, true));
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
	const struct ctl_file *f;
	char mask[12];
	int err = cmd_write("", "tracing_on", "0");

	note_error(&err, reset_actors());
	note_error(&err, cmd_write("", "current_tracer", "nop"));
	for_each_registered (f, ctl_files)
		/* The file of all CPUs takes the same text as one CPU's file. */
		if (f->at_boot && !strchr(f->path, '%'))
			note_error(&err,
				   cmd_write("", f->path + strlen(TRACING),
					     f->at_boot));
	snprintf(mask, sizeof(mask), "%x", cpus_present());
	note_error(&err, cmd_write("", "tracing_cpumask", mask));
	mutex_lock(&trace_mutex);
	trace_options_reset();
	mutex_unlock(&trace_mutex);
	note_error(&err, cmd_write("", "trace", ""));
	note_error(&err, cmd_write("", "tracing_on", "1"));
	return err;
}
