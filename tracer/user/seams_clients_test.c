/* SPDX-License-Identifier: MIT */
/* The clients whose seams are tried, as the lines that a user would write. */
#include <tracer/user/seams_clients_test.h>

#include <tracer/testing.h>

#include <kernel/ctl/ctl.h>
#include <kernel/lib/format.h>
#include <kernel/shell/shell.h>

#define TRACER_OF(name) "current_tracer " name "\n"
#define NOP "current_tracer nop\n"
#define IN "instances/seam/"
#define STACK "/proc/sys/kernel/stack_tracer_enabled "

/* A client that is a tracer, with settings of its own before it is selected. */
#define TRACER_WITH(client, tracer, set, unset, grammar)                       \
	{                                                                      \
		client, set TRACER_OF(tracer), NOP unset, grammar              \
	}
/* A command of the function victim_call, beside the tracer function. */
#define FUNCTION_COMMAND(command)                                              \
	{                                                                      \
		"call:" command,                                               \
			"+set_ftrace_filter victim_call:" command              \
			"\n" TRACER_OF("function"),                            \
			NOP "+set_ftrace_filter !victim_call:" command "\n"    \
			    "tracing_on 1\nevents/enable 0\nsnapshot 0\n",     \
			NULL                                                   \
	}
/* A command of an event. */
#define EVENT_TRIGGER(command)                                                 \
	{                                                                      \
		"event:" command,                                              \
			"+events/sched/sched_switch/trigger " command "\n"     \
			"events/sched/enable 1\n",                             \
			"+events/sched/sched_switch/trigger !" command "\n"    \
			"events/enable 0\ntracing_on 1\nsnapshot 0\n",         \
			NULL                                                   \
	}
#define OPTION_OF(client, option, to, back, tracer, grammar)                   \
	TRACER_WITH(client, tracer, "options/" option " " to "\n",             \
		    "options/" option " " back "\n", grammar)

static const struct seam_client clients[] = {
	TRACER_WITH("function", "function", "", "", "function"),
	TRACER_WITH("graph", "function_graph", "", "", "graph"),
	TRACER_WITH("graph-depth", "function_graph", "max_graph_depth 2\n",
		    "max_graph_depth 0\n", "graph"),
	TRACER_WITH("graph-root", "function_graph",
		    "set_graph_function victim_outer\n", "set_graph_function\n",
		    "graph"),
	TRACER_WITH("graph-hidden", "function_graph",
		    "set_graph_notrace cpu_idle_check victim_outer\n",
		    "set_graph_notrace\n", "graph"),
	TRACER_WITH("graph-thresh", "function_graph", "tracing_thresh 1\n",
		    "tracing_thresh 0\n", NULL),
	OPTION_OF("graph-irqs", "funcgraph-irqs", "0", "1", "function_graph",
		  "graph"),
	OPTION_OF("graph-sleep", "sleep-time", "0", "1", "function_graph",
		  "graph"),
	TRACER_WITH("irqsoff", "irqsoff", "", "", NULL),
	TRACER_WITH("preemptoff", "preemptoff", "", "", NULL),
	TRACER_WITH("preemptirqsoff", "preemptirqsoff", "", "", NULL),
	TRACER_WITH("wakeup", "wakeup", "", "", NULL),
	TRACER_WITH("wakeup_rt", "wakeup_rt", "", "", NULL),
	OPTION_OF("irqsoff-calls", "function-trace", "0", "1", "irqsoff", NULL),
	OPTION_OF("function-stack", "func_stack_trace", "1", "0", "function",
		  NULL),
	OPTION_OF("function-repeats", "func-no-repeats", "1", "0", "function",
		  NULL),
	OPTION_OF("function-fork", "function-fork", "1", "0\nset_ftrace_pid",
		  "function\nset_ftrace_pid $", "function"),
	TRACER_WITH("function-pid", "function", "set_ftrace_pid $\n",
		    "set_ftrace_pid\n", "function"),
	TRACER_WITH("graph-notpid", "function_graph",
		    "set_ftrace_notrace_pid $\n", "set_ftrace_notrace_pid\n",
		    "graph"),
	{ "profiler", "function_profile_enabled 1\n",
	  "function_profile_enabled 0\n", NULL },
	{ "profiler-time",
	  "options/graph-time 0\noptions/sleep-time "
	  "0\nfunction_profile_enabled 1\n",
	  "function_profile_enabled 0\noptions/graph-time "
	  "1\noptions/sleep-time 1\n",
	  NULL },
	{ "stack", STACK "1\n", STACK "0\nstack_max_size 0\n", NULL },
	FUNCTION_COMMAND("traceon"),
	FUNCTION_COMMAND("traceoff:3"),
	FUNCTION_COMMAND("stacktrace:5"),
	FUNCTION_COMMAND("snapshot:2"),
	FUNCTION_COMMAND("enable_event:sched:sched_switch"),
	FUNCTION_COMMAND("disable_event:sched:sched_switch:3"),
	{ "events", "events/sched/enable 1\n", "events/enable 0\n", NULL },
	{ "event-filter",
	  "events/sched/sched_switch/filter prev_pid == $ || next_prio > 3\n"
	  "events/sched/sched_switch/enable 1\n",
	  "events/enable 0\nevents/sched/sched_switch/filter 0\n", NULL },
	{ "event-pid",
	  "options/event-fork 1\nset_event_pid $\nevents/enable 1\n",
	  "events/enable 0\nset_event_pid\noptions/event-fork 0\n", NULL },
	EVENT_TRIGGER("traceon"),
	EVENT_TRIGGER("traceoff:2"),
	EVENT_TRIGGER("stacktrace:3"),
	EVENT_TRIGGER("snapshot:2"),
	EVENT_TRIGGER("enable_event:irq:irq_handler_entry"),
	EVENT_TRIGGER("disable_event:sched:sched_wakeup:1"),
	{ "snapshot", TRACER_OF("function") "snapshot 1\n", NOP "snapshot 0\n",
	  NULL },
	{ "instance",
	  "mkdir " IN "\n" IN "set_ftrace_filter victim_*\n" IN
	  "current_tracer function\n",
	  "rmdir " IN "\n", NULL },
	{ "instance-events",
	  "mkdir " IN "\n" IN "events/sched/enable 1\n" IN
	  "events/sched/sched_wakeup/trigger stacktrace\n" IN "snapshot 1\n",
	  "rmdir " IN "\n", NULL },
	{ "instance-dump",
	  "mkdir " IN "\n" IN "set_ftrace_filter victim_call:dump:1\n" IN
	  "set_ftrace_pid $\n",
	  "rmdir " IN "\n", NULL },
	{ "probe", "patch_probe 1\n", "patch_probe 0\n", NULL },
	/* It is over as soon as it is on. */
	{ "bench",
	  "set_ftrace_filter\nsh bench calls\nset_ftrace_filter " SEAM_FILTER
	  "\n",
	  "", NULL },
};

/* Lines of the shell's, for the faults. */
#define SHELL_LINES(client, lines, after)                                      \
	{                                                                      \
		client, lines, after, NULL                                     \
	}
#define READ(file) "sh cat " TRACING file " | tail -1\n"

static const struct seam_client shell_clients[] = {
	SHELL_LINES("sh:filters",
		    READ("available_filter_functions") READ("set_ftrace_filter")
			    READ("enabled_functions"),
		    ""),
	SHELL_LINES("sh:buffer",
		    READ("trace") READ("snapshot") READ("per_cpu/cpu0/trace")
			    READ("per_cpu/cpu1/stats") READ("saved_cmdlines"),
		    ""),
	SHELL_LINES("sh:events",
		    READ("available_events") READ("events/header_page")
			    READ("events/sched/sched_switch/format")
				    READ("error_log") READ("trace_options"),
		    ""),
	SHELL_LINES("sh:system-filter",
		    "sh echo 'prev_pid == 1' > " TRACING
		    "events/sched/filter\n",
		    "sh echo 0 > " TRACING "events/sched/filter\n"),
	SHELL_LINES("sh:list",
		    "sh trace list -e\nsh trace list -f 'victim_*' | wc -l\n",
		    ""),
	SHELL_LINES("sh:tasks",
		    "sh ps | tail -2\nsh cpus | head -2\n"
		    "sh repeat 2 'ls -l /proc | grep -c u'\n",
		    ""),
	SHELL_LINES("sh:stress",
		    "sh stress start 4 mutex-a mutex-b ping pong fork sleep\n",
		    "sh stress stop\n"),
	SHELL_LINES(
		"sh:start",
		"sh trace start -p function_graph -g victim_outer -e "
		"sched_switch -f 'next_prio > 6'\nsh trace show | tail -2\n",
		"sh trace reset\n"),
	SHELL_LINES("sh:start-instance",
		    "sh trace start -B seam -e sched_switch -R stacktrace\n"
		    "sh trace show -B seam | tail -2\n",
		    "sh trace reset -B seam\n"),
	SHELL_LINES("sh:cpu",
		    "sh echo 0 > /sys/devices/system/cpu/cpu1/online\n",
		    "sh echo 1 > /sys/devices/system/cpu/cpu1/online\n"),
};

const struct seam_client *seam_client(unsigned int i)
{
	unsigned int shell = i - ARRAY_SIZE(clients);

	if (i < ARRAY_SIZE(clients))
		return &clients[i];
	return shell < ARRAY_SIZE(shell_clients) ? &shell_clients[shell] : NULL;
}

bool seam_is_shell(const struct seam_client *c)
{
	return c >= shell_clients &&
	       c < shell_clients + ARRAY_SIZE(shell_clients);
}

/* A line's text, with the pid in place of the $. */
static void put_pid(char *to, size_t size, const char *text, int pid)
{
	const char *dollar = strchr(text, '$');

	if (dollar)
		snprintf(to, size, "%.*s%d%s", (int)(dollar - text), text, pid,
			 dollar + 1);
	else
		snprintf(to, size, "%s", text);
}

static int write_nowhere(struct sink *s, const char *text, size_t len)
{
	(void)s;
	(void)text;
	(void)len;
	return 0;
}

static int do_line(char *line, int pid)
{
	struct sink nowhere = { write_nowhere };
	char *text = strchr(line, ' '), path[128], filled[128];
	bool append = *line == '+';

	if (text)
		*text++ = '\0';
	else
		text = line + strlen(line);
	put_pid(filled, sizeof(filled), text, pid);
	line += append;
	if (!strcmp(line, "sh"))
		return shell_run(&nowhere, filled);
	if (!strcmp(line, "mkdir") || !strcmp(line, "rmdir")) {
		/* The folder's name, without the / behind it. */
		snprintf(path, sizeof(path), TRACING "%.*s",
			 (int)strlen(filled) - 1, filled);
		return *line == 'm' ? ctl_mkdir(path, trace_test_error,
						sizeof(trace_test_error)) :
				      ctl_rmdir(path, trace_test_error,
						sizeof(trace_test_error));
	}
	if (*line == '/')
		return ctl_echo(line, filled, append, trace_test_error,
				sizeof(trace_test_error));
	return append ? trace_test_add(line, filled) :
			trace_test_put(line, filled);
}

int seam_switch(const struct seam_client *c, bool on, int pid)
{
	const char *at = on ? c->on : c->off, *end;
	char line[160];
	int err, first = 0;

	for (; *at; at = end + 1) {
		end = strchr(at, '\n');
		snprintf(line, sizeof(line), "%.*s", (int)(end - at), at);
		err = do_line(line, pid);
		if (!first)
			first = err;
	}
	return first;
}
