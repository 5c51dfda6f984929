/* SPDX-License-Identifier: MIT */
/* The shell's `trace`: trace-cmd's verbs over the control files, so that both
 * ways always mean the same. */
#include <tracer/user/cmd_reset.h>
#include <tracer/user/cmd_start.h>
#include <tracer/core/tracer.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lib/glob.h>
#include <kernel/lock/mutex.h>
#include <kernel/printk.h>
#include <kernel/shell/shell.h>
#include <kernel/lib/string.h>
#include <tracer/patch/patch.h>
#include <tracer/ring/ring.h>
#include <tracer/sites/sites.h>
#include <tracer/ring/ring_control.h>
#include <tracer/core/options.h>
#include <tracer/base/event.h>

static int show_file(struct sink *out, const char *folder, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), TRACING "%s%s", folder, file);
	return shell_copy_file(out, "trace", path);
}

/* An instance is removed, as its user is told: trace-cmd lets it stay. */
static int verb_reset(struct sink *out, const char *folder, int argc,
		      char **argv)
{
	char path[128], error[160];
	int err;

	(void)argc, (void)argv;
	if (!folder[0])
		return cmd_reset();
	snprintf(path, sizeof(path), TRACING "%s", folder);
	err = ctl_rmdir(path, error, sizeof(error));
	return err ? shell_error(err, "trace", "%s: %s", folder, error) :
		     sink_printf(out, "%s is removed\n", folder);
}

/* The i-th of those that are there. */
static const char *instance_name(unsigned int i)
{
	for (unsigned int n = 1; n < INSTANCES; n++)
		if (trace_instances[n].name[0] && !i--)
			return trace_instances[n].name;
	return NULL;
}

static int verb_snapshot(struct sink *out, const char *folder, int argc,
			 char **argv)
{
	static const struct {
		const char *option, *text;
	} writes[] = { { "-s", "1" }, { "-r", "2" }, { "-f", "0" } };

	(void)folder;
	if (!argc)
		return show_file(out, "", "snapshot");
	for (unsigned int i = 0; i < ARRAY_SIZE(writes); i++)
		if (!strcmp(argv[0], writes[i].option))
			return cmd_write("", "snapshot", writes[i].text);
	return shell_error(-EINVAL, "trace",
			   "snapshot '%.32s': accepted are -s (take one), -r "
			   "(forget it), -f (free its memory); none shows it",
			   argv[0]);
}

static int verb_stat(struct sink *out, const char *folder, int argc,
		     char **argv)
{
	struct patch_stats p;
	char file[40];
	unsigned int cpu;
	int err;

	(void)folder;
	(void)argc, (void)argv;
	patch_stats(&p);
	err = sink_printf(out,
			  "tracer: %s\ntracing_on: %d\nfunctions: %u of "
			  "%u on\nbuffer: %lu KiB on each of %u CPUs\n",
			  trace_top.tracer->name, trace_top.on, p.enabled,
			  site_boot.patched, ring_kb(rings, 0), nr_cpus);
	for (cpu = 0; !err && cpu < nr_cpus; cpu++) {
		err = sink_printf(out, "\nCPU: %u\n", cpu);
		snprintf(file, sizeof(file), "per_cpu/cpu%u/stats", cpu);
		if (!err)
			err = show_file(out, "", file);
	}
	return err;
}

/* trace-cmd's `stack`: the deepest stack that was seen. */
static int verb_stack(struct sink *out, const char *folder, int argc,
		      char **argv)
{
	static const char enabled[] = "/proc/sys/kernel/stack_tracer_enabled";
	const char *option = argc ? argv[0] : "";
	char error[160];
	struct ctl_handle *h;
	char running = '0';
	int err;

	(void)folder;
	if (!strcmp(option, "--reset"))
		return cmd_write("", "stack_max_size", "0");
	if (!strcmp(option, "--start") || !strcmp(option, "--stop")) {
		err = ctl_echo(enabled, option[4] == 'a' ? "1" : "0", false,
			       error, sizeof(error));
		return err ? shell_error(err, "trace", "stack: %s", error) : 0;
	}
	if (argc)
		return shell_error(-EINVAL, "trace",
				   "stack '%.32s': accepted are --start, "
				   "--stop, --reset (forget it); none shows it",
				   option);
	err = ctl_open(enabled, false, false, &h);
	if (err)
		return shell_error(err, "trace", "stack: %s",
				   ctl_error_text(err));
	ctl_read(h, &running, 1);
	ctl_abandon(h);
	err = sink_printf(out, "(stack tracer %srunning)\n",
			  running == '1' ? "" : "not ");
	return err ? err : show_file(out, "", "stack_trace");
}

static int list_instances(struct sink *out)
{
	const char *name;
	int err = 0;

	for (unsigned int i = 0; !err && (name = instance_name(i)); i++)
		err = sink_printf(out, "%s\n", name);
	return err;
}

/* Both ways in which a function is left out. The second one no user can change. */
static int list_left_out(struct sink *out)
{
	int err = sink_printf(out, "by set_ftrace_notrace, as start -n sets "
				   "it:\n");

	if (!err)
		err = show_file(out, "", "set_ftrace_notrace");
	if (!err)
		err = sink_printf(out, "kept off for good, with what calls "
				       "each (unpatchable_functions):\n");
	return err ? err : show_file(out, "", "unpatchable_functions");
}

/* The options of `trace list`: trace-cmd's letter, that of `trace start`, and the file. */
static const struct {
	const char *letter, *also, *file;
	int (*show)(struct sink *out); /* instead of a file */
} lists[] = {
	{ "-t", "-p", .file = "available_tracers" },
	{ "-e", "-e", .file = "available_events" },
	{ "-f", "-l", .file = "available_filter_functions" },
	{ "-n", "-n", .show = list_left_out },
	{ "-o", "-O", .file = "trace_options" },
	{ "-C", "-C", .file = "trace_clock" },
	{ "-B", "-B", .show = list_instances },
};

/* The events whose name, system, or both match. */
static int list_events(struct sink *out, const char *glob)
{
	const struct event *e;
	char name[64];
	int err = 0;

	for_each_event (e) {
		snprintf(name, sizeof(name), "%s:%s", e->system, e->name);
		if (!err &&
		    (glob_match(glob, name) || glob_match(glob, e->system) ||
		     glob_match(glob, e->name)))
			err = sink_printf(out, "%s\n", name);
	}
	return err;
}

static int list_functions(struct sink *out, const char *glob)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < site_count; i++)
		if (site_test(live_calls.patchable, i) &&
		    glob_match(glob, site_function(i)))
			err = sink_printf(out, "%s\n", site_function(i));
	return err;
}

static int list_all(struct sink *out)
{
	int err = sink_printf(out, "tracers (-t):\n");

	if (!err)
		err = show_file(out, "", "available_tracers");
	if (!err)
		err = sink_printf(out, "options (-o):\n");
	if (!err)
		err = show_file(out, "", "trace_options");
	if (!err)
		err = sink_printf(out, "clocks (-C):\n");
	if (!err)
		err = show_file(out, "", "trace_clock");
	return err ? err :
		     sink_printf(out,
				 "%u functions: list -f [GLOB]; those left "
				 "out: list -n; %u events: list -e [GLOB]; "
				 "instances: list -B\n",
				 site_weight(live_calls.patchable),
				 event_id(__stop_events) - EVENT_FIRST_ID);
}

static int verb_list(struct sink *out, const char *folder, int argc,
		     char **argv)
{
	const char *what = argc ? argv[0] : "", *glob = argc ? argv[1] : NULL;
	unsigned int i = 0;

	(void)folder;
	if (!argc)
		return list_all(out);
	while (i < ARRAY_SIZE(lists) && strcmp(what, lists[i].letter) &&
	       strcmp(what, lists[i].also))
		i++;
	if (glob && !strcmp(what, "-e"))
		return list_events(out, glob);
	if (glob && i < ARRAY_SIZE(lists) && !strcmp(lists[i].letter, "-f"))
		return list_functions(out, glob);
	if (glob || i == ARRAY_SIZE(lists))
		return shell_error(-EINVAL, "trace",
				   "list '%.32s': accepted are -t (tracers), "
				   "-e [GLOB] (events), -f [GLOB] (functions), "
				   "-n (those left out), -o (options), -C "
				   "(clocks), -B (instances)",
				   glob ?: what);
	return lists[i].file ? show_file(out, "", lists[i].file) :
			       lists[i].show(out);
}

static const struct verb {
	const char *name;
	int max_args;
	bool in_instances; /* behind it, -B INSTANCE is accepted */
	/* folder: "instances/NAME/", or "" */
	int (*run)(struct sink *out, const char *folder, int argc, char **argv);
	/* Instead of run(): write the text into the file, or show it where there is no text. */
	const char *file, *text;
} verbs[] = {
	{ "start", 64, true, .run = cmd_start },
	{ "stop", 0, true, .file = "tracing_on", .text = "0" },
	{ "restart", 0, true, .file = "tracing_on", .text = "1" },
	{ "show", 0, true, .file = "trace" },
	{ "clear", 0, true, .file = "trace", .text = "" },
	{ "reset", 0, true, .run = verb_reset },
	{ "stat", 0, false, .run = verb_stat },
	{ "list", 2, false, .run = verb_list },
	{ "snapshot", 1, false, .run = verb_snapshot },
	{ "stack", 1, false, .run = verb_stack },
};

/* Words that Tab offers behind another one. */
static const char *offer_words(const char *before, unsigned int i)
{
	static const char *const snapshot[] = { "-s", "-r", "-f" };
	static const char *const stack[] = { "--start", "--stop", "--reset" };
	const struct event *e = __start_events + i;
	const struct tracer *t = __start_tracers + i;

	if (!strcmp(before, "trace"))
		return i < ARRAY_SIZE(verbs) ? verbs[i].name : NULL;
	if (!strcmp(before, "start"))
		return cmd_start_option(i);
	if (!strcmp(before, "list"))
		return i < ARRAY_SIZE(lists) ? lists[i].letter : NULL;
	if (!strcmp(before, "snapshot"))
		return i < ARRAY_SIZE(snapshot) ? snapshot[i] : NULL;
	if (!strcmp(before, "stack"))
		return i < ARRAY_SIZE(stack) ? stack[i] : NULL;
	if (!strcmp(before, "-p"))
		return t < __stop_tracers ? t->name : NULL;
	if (!strcmp(before, "-B"))
		return instance_name(i);
	if (!strcmp(before, "-e"))
		return e < __stop_events ? e->name : NULL;
	if (!strcmp(before, "-O"))
		return trace_option_name(i);
	return NULL;
}

/* The folder of an instance. Only `trace start` makes one that is not there. */
static int find_folder(const struct verb *v, const char *instance, char *folder)
{
	char path[128];

	if (!instance || !*instance || strchr(instance, '/') ||
	    strlen(instance) >= sizeof(trace_top.name))
		return shell_error(-EINVAL, "trace",
				   "-B takes the name of an instance");
	snprintf(folder, CMD_FOLDER, "instances/%s/", instance);
	snprintf(path, sizeof(path), TRACING "%s", folder);
	if (v->run != cmd_start && !ctl_is_dir(path))
		return shell_error(-ENOENT, "trace",
				   "-B %s: no such instance; ls instances",
				   instance);
	return 0;
}

static int run_verb(struct sink *out, const struct verb *v, int argc,
		    char **argv)
{
	char folder[CMD_FOLDER] = "";
	int err;

	if (v->in_instances && argc && !strcmp(argv[0], "-B")) {
		err = find_folder(v, argv[1], folder);
		if (err)
			return err;
		argc -= 2;
		argv += 2;
	}
	if (argc > v->max_args)
		return shell_error(-EINVAL, "trace", "%s '%.32s': accepted %s",
				   v->name, argv[v->max_args],
				   v->max_args > 1 ? "are fewer arguments" :
				   v->max_args	   ? "is one argument" :
				   v->in_instances ? "is -B INSTANCE" :
						     "are no arguments");
	return v->run  ? v->run(out, folder, argc, argv) :
	       v->text ? cmd_write(folder, v->file, v->text) :
			 show_file(out, folder, v->file);
}

static int cmd_trace(struct sink *out, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct verb *v;
	char names[12 * ARRAY_SIZE(verbs)] = "";

	for (v = verbs; v < verbs + ARRAY_SIZE(verbs); v++) {
		if (!strcmp(v->name, name))
			return run_verb(out, v, argc - 2, argv + 2);
		string_copy(names + strlen(names), " ",
			    sizeof(names) - strlen(names));
		string_copy(names + strlen(names), v->name,
			    sizeof(names) - strlen(names));
	}
	if (argc > 1)
		return shell_error(-EINVAL, "trace", "'%.32s': accepted are%s",
				   name, names);
	return shell_error(-EINVAL, "trace", "accepted are%s; begin with list",
			   names);
}
SHELL_CMD_FOLLOW(trace, "trace",
		 "start [-B INSTANCE] [-p TRACER] "
		 "[-e EVENT [-f FILTER] [-R TRIGGER]...]... "
		 "[-l|-n|-g FUNC]... [-P PID]... [-M CPUS] "
		 "[-O OPTION]... [--max-graph-depth N] | stop | restart | show "
		 "| clear | reset [-B INSTANCE, which it removes] | stat | "
		 "list [-t|-n|-o|-C|-B] | list -e|-f [GLOB] | "
		 "snapshot [-s|-r|-f] | stack [--start|--stop|--reset]",
		 "trace functions and events, in trace-cmd's words", cmd_trace,
		 offer_words);
