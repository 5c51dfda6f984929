/* SPDX-License-Identifier: MIT */
/* Numbers that control files take: each file takes and refuses the same numbers as in Linux 6.1,
 * where this table was run. */
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/lib/format.h>
#include <kernel/lib/string.h>
#include <kernel/test/ktest.h>
#include <tracer/testing.h>
#include <tracer/core/tracer.h>
#include <kernel/test/again.h>

/* The ways of Linux: a decimal number, 0 or 1, a mask of CPUs, a list of pids, an int in
 * /proc/sys, of which these files show whether it is 0. */
enum { DECIMAL, SWITCH, MASK, PIDS, SYSCTL, KINDS };

#define ANY 1000 /* LINUX.md says it, or it depends on the number of CPUs */

static const struct {
	const char *text;
	long is[KINDS]; /* the file's number then, or its error */
} numbers[] = {
	{ "0x1", { -EINVAL, -EINVAL, -EINVAL, 1, 1 } },
	{ "0X2", { -EINVAL, -EINVAL, -EINVAL, 2, 1 } },
	{ "0x", { -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL } },
	{ " 1", { -EINVAL, -EINVAL, 1, 1, 1 } },
	{ "1 ", { -EINVAL, -EINVAL, 1, 1, 1 } },
	{ "\t1", { -EINVAL, -EINVAL, 1, 1, 1 } },
	{ "1k", { -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL } },
	{ "+1", { 1, 1, -EINVAL, 1, -EINVAL } },
	{ "-1", { -EINVAL, -EINVAL, -EINVAL, -EINVAL, 1 } },
	{ "1 2", { -EINVAL, -EINVAL, ANY, ANY, ANY } },
	{ "\n", { -EINVAL, -EINVAL, 0, 0, -EINVAL } },
	{ " \n", { -EINVAL, -EINVAL, 0, 0, -EINVAL } },
	{ "010", { 10, -EINVAL, ANY, 8, 1 } },
	{ "01", { 1, 1, 1, 1, 1 } },
	{ "08", { 8, -EINVAL, ANY, -EINVAL, -EINVAL } },
	{ "1", { 1, 1, 1, 1, 1 } },
	{ "1\n", { 1, 1, 1, 1, 1 } },
	{ "1\n\n", { -EINVAL, -EINVAL, 1, 1, 1 } },
	{ "0b1", { -EINVAL, -EINVAL, ANY, -EINVAL, -EINVAL } },
	{ "one", { -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL } },
	{ "99999999999999999999",
	  { -ERANGE, -ERANGE, -EOVERFLOW, -EINVAL, -EINVAL } },
	{ "4294967296", { ANY, -EINVAL, -EOVERFLOW, -EINVAL, -EINVAL } },
};

static const struct {
	const char *path, *reset;
	unsigned int kind;
	bool shows; /* the number that it was given */
} files[] = {
	{ TRACING "tracing_on", "1", DECIMAL, false },
	{ TRACING "max_graph_depth", "0", DECIMAL, true },
	{ TRACING "tracing_thresh", "0", DECIMAL, true },
	{ TRACING "tracing_max_latency", "0", DECIMAL, true },
	{ TRACING "buffer_size_kb", "256", DECIMAL, false },
	{ TRACING "buffer_percent", "50", DECIMAL, true },
	{ TRACING "per_cpu/cpu0/buffer_size_kb", "256", DECIMAL, false },
	{ TRACING "snapshot", "0", DECIMAL, false },
	{ TRACING "per_cpu/cpu0/snapshot", "2", DECIMAL, false },
	{ TRACING "options/sym-addr", "0", SWITCH, true },
	{ TRACING "options/overwrite", "1", SWITCH, true },
	{ TRACING "events/sched/sched_migrate_task/enable", "0", SWITCH, true },
	{ TRACING "events/ipi/enable", "0", SWITCH, true },
	{ TRACING "function_profile_enabled", "0", SWITCH, true },
	{ TRACING "tracing_cpumask", "1", MASK, true },
	{ TRACING "set_ftrace_pid", "\n", PIDS, true },
	{ TRACING "set_ftrace_notrace_pid", "\n", PIDS, true },
	{ TRACING "set_event_pid", "\n", PIDS, true },
	{ TRACING "set_event_notrace_pid", "\n", PIDS, true },
	{ "/proc/sys/kernel/ftrace_enabled", "1", SYSCTL, true },
	{ "/proc/sys/kernel/stack_tracer_enabled", "0", SYSCTL, true },
	{ "/proc/sys/kernel/traceoff_on_warning", "0", SYSCTL, true },
	{ "/proc/sys/kernel/tracepoint_printk", "0", SYSCTL, true },
};

/* Does the file show the number that it took? A list of pids shows 0 as an empty list. */
static bool number_is_shown(const char *path, long number)
{
	char text[32], expected[32];

	trace_test_read_path(path, text, sizeof(text), sizeof(text));
	snprintf(expected, sizeof(expected), "%ld\n", number);
	if (strstr(path, "_pid") && !number)
		string_copy(expected, strstr(path, "event") ? "" : "no pid\n",
			    sizeof(expected));
	return !strcmp(text, expected);
}

static void try_number(struct ktest_run *t, unsigned int file,
		       const char *number, long is)
{
	const char *path = files[file].path;
	char line[128];
	int err;

	ctl_echo(path, files[file].reset, false, NULL, 0);
	err = ctl_echo(path, number, false, NULL, 0);
	if (err == min(is, 0l) &&
	    (err || !files[file].shows || number_is_shown(path, is)))
		return;
	snprintf(line, sizeof(line), "'%s' to %s: %d, and not %ld", number,
		 path, err, is);
	ktest_fail(t, __FILE__, __LINE__, line);
}

KTEST(files_numbers, "tracefs.numbers")
{
	KNEED_CLIENT(t, "graph");
	KNEED_CLIENT(t, "events");
	KNEED_CLIENT(t, "profiler");
	KNEED_CLIENT(t, "latency");
	trace_test_reset();
	for (unsigned int f = 0; f < ARRAY_SIZE(files); f++) {
		for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++) {
			long is = numbers[i].is[files[f].kind];

			if (is != ANY)
				try_number(t, f, numbers[i].text, is);
		}
		ctl_echo(files[f].path, files[f].reset, false, NULL, 0);
	}
	trace_test_put("snapshot", "0");
	trace_test_reset();
}

/* Lists of pids are alike but for one thing: an empty list of events is shown as an empty text. */
KTEST(files_pid_lists, "tracefs.lists_of_pids")
{
	static const char *const paths[] = { "set_ftrace_pid",
					     "set_ftrace_notrace_pid",
					     "set_event_pid",
					     "set_event_notrace_pid" };

	trace_test_reset();
	for (unsigned int i = 0; i < ARRAY_SIZE(paths); i++) {
		const char *empty = i < 2 ? "no pid\n" : "";
		char text[32] = "";

		KEXPECT(t, trace_test_says(paths[i], empty));
		/* `no pid`, the text of an empty list, cannot be written back. */
		KEXPECT_EQ(t, trace_test_put(paths[i], "no pid"), -EINVAL);
		KEXPECT_EQ(t, trace_test_put(paths[i], "3 5"), 0);
		KEXPECT_EQ(t, trace_test_add(paths[i], "7 x"), -EINVAL);
		trace_test_read(paths[i], text, sizeof(text), sizeof(text));
		KEXPECT(t, !strcmp(text, "3\n5\n"));
		/* Opened with >, it is empty, however the write ends. */
		KEXPECT_EQ(t, trace_test_put(paths[i], "7 x"), -EINVAL);
		KEXPECT(t, trace_test_says(paths[i], empty));
	}
	trace_test_reset();
}
