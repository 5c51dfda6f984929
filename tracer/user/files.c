/* SPDX-License-Identifier: MIT */
/* Control files that set the tracer up: /sys/kernel/tracing, Linux's names and
 * formats. Those that show events are in show/files_buffer.c. */
#include <tracer/core/tracer.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/time.h>
#include <kernel/lock/mutex.h>
#include <tracer/show/output.h>
#include <tracer/show/snapshot.h>
#include <tracer/patch/patch.h>
#include <tracer/ops/returns.h>
#include <tracer/core/client.h>
#include <tracer/core/filter.h>
#include <tracer/core/calls.h>
#include <tracer/core/triggers.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/ring/ring_control.h>

/* ---- Tracers ------------------------------------------------------------------ */

/* As in Linux, nop is the last: libtracefs takes the last name with its newline, and asks for
 * nop without a look at this list. */
static void available_tracers_show(struct ctl_handle *h, struct seq *s)
{
	const struct tracer *t;

	for_each_registered (t, tracers)
		if (t != &tracer_nop && instance_has(instance_of(h), t))
			seq_printf(s, "%s ", t->name);
	seq_printf(s, "%s\n", tracer_nop.name);
}
CTL_FILE(available_tracers, .path = TRACING "available_tracers",
	 .folders = &trace_folders, .show = available_tracers_show);

static void current_tracer_show(struct ctl_handle *h, struct seq *s)
{
	seq_printf(s, "%s\n", READ_ONCE(instance_of(h)->tracer)->name);
}

static int current_tracer_write(struct ctl_handle *h, char *text)
{
	const struct trace_instance *in = instance_of(h);
	const struct tracer *t;

	text = ctl_strip(text);
	if (!h->dry)
		return instance_select(h, instance_of(h), text);
	t = trace_find(text);
	return t && instance_has(in, t) ? 0 : trace_unknown(h, in, text);
}
TRACE_FILE(current_tracer, .path = TRACING "current_tracer",
	   .folders = &trace_folders, .show = current_tracer_show,
	   .write = current_tracer_write, .checks = true);

/* trace-cmd writes 1 before it selects a tracer. */
static void ftrace_enabled_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "1\n");
}

static int ftrace_enabled_write(struct ctl_handle *h, char *text)
{
	int on, err = ctl_int(h, text, CTL_SWITCH, &on);

	if (err || on)
		return err;
	return ctl_error(h, -EINVAL,
			 "functions are traced as current_tracer says; nop "
			 "traces none");
}
CTL_FILE(ftrace_enabled, .path = "/proc/sys/kernel/ftrace_enabled",
	 .show = ftrace_enabled_show, .write = ftrace_enabled_write);

static void tracing_on_show(struct ctl_handle *h, struct seq *s)
{
	seq_printf(s, "%d\n", READ_ONCE(instance_of(h)->on));
}

static int tracing_on_write(struct ctl_handle *h, char *text)
{
	u64 on;
	int err = ctl_number(h, text, ~0ull, CTL_SWITCH, &on);

	if (!err)
		instance_record(instance_of(h), on != 0,
				instance_of(h)->cpumask);
	return err;
}
TRACE_FILE(tracing_on, .path = TRACING "tracing_on", .folders = &trace_folders,
	   .show = tracing_on_show, .write = tracing_on_write);

static void tracing_cpumask_show(struct ctl_handle *h, struct seq *s)
{
	seq_printf(s, "%x\n", READ_ONCE(instance_of(h)->cpumask));
}

static int tracing_cpumask_write(struct ctl_handle *h, char *text)
{
	cpumask_t mask;
	int err;

	text = ctl_strip(text);
	err = instance_cpus_parse(text, &mask);
	if (err)
		return ctl_error(h, err,
				 "'%.32s' is no "
				 "hexadecimal mask of CPUs within %x",
				 text, cpus_present());
	instance_record(instance_of(h), instance_of(h)->on, mask);
	return 0;
}
TRACE_FILE(tracing_cpumask, .path = TRACING "tracing_cpumask",
	   .folders = &trace_folders, .show = tracing_cpumask_show,
	   .write = tracing_cpumask_write);

static void clock_show(struct ctl_handle *h, struct seq *s)
{
	trace_clock_show(s, instance_of(h));
}

static int trace_clock_write(struct ctl_handle *h, char *text)
{
	struct trace_instance *in = instance_of(h);
	unsigned int before = in->clock;
	int err = trace_clock_select(in, ctl_strip(text));

	if (err)
		return ctl_error(h, err, "'%.32s' is none of: %s", text,
				 trace_clock_names);
	/* C code alone gives numbers: trampolines and events learn of it before the rings are
	 * cleared. */
	err = clients_settings_changed(h);
	if (err) {
		in->clock = before;
		clients_settings_changed(h);
	}
	trace_refresh();
	ring_clear(in->buffer, cpus_present());
	clients_trace_cleared(in, cpus_present());
	if (!in->tracer->latency)
		snapshot_forget(in, cpus_present());
	return err;
}
TRACE_FILE(trace_clock, .path = TRACING "trace_clock",
	   .folders = &trace_folders, .show = clock_show,
	   .write = trace_clock_write, .at_boot = "local");

/* An entry of a binary page says how long after the one before it came. */
static void timestamp_mode_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "[delta] absolute\n");
}
CTL_FILE(timestamp_mode, .path = TRACING "timestamp_mode",
	 .folders = &trace_folders, .show = timestamp_mode_show);

/* ---- A least time ---------------------------------------------------------------- */

static void thresh_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "%llu\n", (unsigned long long)trace_thresh.us);
}

/* Linux's unit is the microsecond, too. */
static int thresh_write(struct ctl_handle *h, char *text)
{
	u64 us;
	int err =
		ctl_number(h, text, ~0ull / NSEC_PER_USEC,
			   "number of microseconds; 0 records every call", &us);

	if (err)
		return err;
	trace_thresh.us = us;
	/* No wait is shorter than a tick, so 0 must not be converted. */
	trace_thresh.ticks = us ? ns_to_clock_delta(us * NSEC_PER_USEC) : 0;
	clients_options_changed();
	return 0;
}
TRACE_FILE(tracing_thresh, .path = TRACING "tracing_thresh",
	   .show = thresh_show, .write = thresh_write, .at_boot = "0");

static void total_info_show(struct ctl_handle *h, struct seq *s)
{
	struct patch_stats p;

	(void)h;
	patch_stats(&p);
	seq_printf(s, "%u pages:%lu groups: 1\n", site_boot.patched,
		   (site_bytes() + PAGE_SIZE - 1) / PAGE_SIZE);
	seq_printf(s, "ftrace boot update time = %llu (ns)\n",
		   (unsigned long long)clock_delta_to_ns(site_boot.clock));
	seq_printf(s,
		   "patch strategy: %s, batches: %u, sites written: %llu, by "
		   "breakpoint instead: %llu\n",
		   p.strategy, p.batches, (unsigned long long)p.sites_written,
		   (unsigned long long)p.fallback);
	seq_printf(s, "breakpoints hit: %u, late: %u\n", p.traps, p.late);
	seq_printf(s, "longest time a CPU was held = %llu (ns)\n",
		   (unsigned long long)p.held_ns_max);
	seq_printf(s, "longest write with interrupts off = %llu (ns)\n",
		   (unsigned long long)p.window_ns_max);
	seq_printf(s, "returns not taken: %u too deep, %u without an address\n",
		   returns_lost, returns_refused);
}
CTL_FILE(dyn_ftrace_total_info, .path = TRACING "dyn_ftrace_total_info",
	 .show = total_info_show);

/* clang-format off */
static const char readme[] =
"  available_tracers   what current_tracer takes; nop is off\n"
"  available_events    what set_event takes: SYSTEM:NAME\n"
"  set_event           events to record; > replaces, >> adds, !event removes;\n"
"                      sched:* and * match; empty is none\n"
"  events/             the same, 0 or 1: enable, SYSTEM/enable,\n"
"                      SYSTEM/NAME/enable; format and id of each; filter:\n"
"                      prev_pid == 0 && (next_prio > 3 || next_comm ~ p*)\n"
"                      trigger: COMMAND[:COUNT] [if FILTER], with ! taken back:\n"
"                      traceon traceoff stacktrace snapshot\n"
"                      enable_event:SYSTEM:NAME disable_event:SYSTEM:NAME\n"
"  set_event_pid       tasks whose events are recorded; empty is all\n"
"  set_event_notrace_pid  tasks whose events are not\n"
"  error_log           mistakes in filters, with the place marked\n"
"  tracing_on          0 stops recording, sites stay as they are\n"
"  trace               what was recorded; > clears it\n"
"  snapshot            1 sets aside what trace holds, 0 frees it, 2 clears it\n"
"  trace_pipe          the same, consuming, waits for more\n"
"  set_ftrace_filter   functions to trace; > replaces, >> adds, !name\n"
"                      removes; * ? [a-z] match; a number is a line of\n"
"                      available_filter_functions; empty is all\n"
"                      FUNC:traceon FUNC:traceoff FUNC:stacktrace FUNC:snapshot\n"
"                      FUNC:dump (to the console, and tracing_on becomes 0)\n"
"                      FUNC:enable_event:SYSTEM:NAME FUNC:disable_event:...,\n"
"                      with :COUNT or without: done when FUNC is called\n"
"  set_ftrace_notrace  functions never to trace\n"
"  set_ftrace_pid      tasks whose calls are recorded; empty is all\n"
"  set_ftrace_notrace_pid  tasks whose calls are not\n"
"  stack_trace         the deepest stack, while stack_tracer_enabled in\n"
"                      /proc/sys/kernel is 1; echo 0 > stack_max_size\n"
"                      begins anew, stack_trace_filter names functions\n"
"  function_profile_enabled  1 counts calls and their time, for functions of\n"
"                      set_ftrace_filter: trace_stat/functionN shows them\n"
"  set_graph_function  function_graph: only calls that begin in these\n"
"  set_graph_notrace   function_graph: neither these nor what they call\n"
"  max_graph_depth     function_graph: levels that are recorded; 0 is all\n"
"  tracing_thresh      function_graph: only returns of calls that took as\n"
"                      many microseconds; 0 is all; latency tracers: keep\n"
"                      the last that took as long, and not the longest\n"
"  tracing_max_latency microseconds of the longest that a latency tracer has\n"
"                      seen; only what takes longer is kept; trace shows it\n"
"  trace_options       what is shown: NAME or noNAME; or options/NAME, 1 or 0;\n"
"                      nosleep-time: times of function_graph and the profiler\n"
"                      without those in which the task did not run;\n"
"                      nograph-time: those of the profiler without called\n"
"                      functions; with both they are own time on a CPU\n"
"  enabled_functions   functions whose call is on now, how many are told of it,\n"
"                      and where it leads; touched_functions: has ever been on\n"
"  buffer_size_kb      KiB of buffer a CPU\n"
"  buffer_percent      how full a buffer is when a reader of trace_pipe_raw\n"
"                      that waits goes on; 0 is at the first event\n"
"  patch_strategy      how sites are switched: stop breakpoint word\n"
"                      bypass\n"
"  patch_log           in which order text was written and CPUs synchronised\n"
"  patch_log_check     whether that order is right\n"
"  patch_probe         1 starts tasks that note how long they are kept from\n"
"                      running; shows the longest, by strategy and CPU\n"
"  trace_clock         local global counter uptime mono boot; clears\n"
"  tracing_cpumask     CPUs that record, hexadecimal\n"
"  trace_marker        text to put into the trace; trace_marker_raw: a number of\n"
"                      4 bytes and any bytes behind it\n"
"  saved_cmdlines      the names of tasks, by pid\n"
"  per_cpu/cpuN/       trace, trace_pipe and stats of one CPU\n"
"  instances/          mkdir instances/NAME makes another buffer, with a tracer,\n"
"                      filters, events, options and a clock of its own; rmdir\n";
/* clang-format on */

/* A line each time: a record has no room for all of them. */
static int readme_read(struct ctl_handle *h, struct seq *s)
{
	const char *line = readme + h->pos, *end = strchr(line, '\n');

	if (!end)
		return 0;
	h->pos += end + 1 - line;
	seq_printf(s, "%.*s", (int)(end + 1 - line), line);
	return 1;
}
CTL_FILE(readme, .path = TRACING "README", .read = readme_read);
