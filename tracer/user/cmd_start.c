/* SPDX-License-Identifier: MIT */
/* The shell's `trace start`: its options, and the control files that they are written into. */
#include <tracer/user/cmd_start.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lock/mutex.h>
#include <kernel/printk.h>
#include <kernel/shell/shell.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/core/client.h>
#include <tracer/core/options.h>
#include <tracer/core/tracer.h>
#include <tracer/user/cmd_reset.h>

/* The instance of `trace start -B`, unless it is there. *made: it was not. */
static int make_instance(const char *folder, bool *made)
{
	char path[128], error[160];
	int err;

	snprintf(path, sizeof(path), TRACING "%s", folder);
	if (!folder[0] || ctl_is_dir(path))
		return 0;
	err = ctl_mkdir(path, error, sizeof(error));
	*made = !err;
	return err ? shell_error(err, "trace", "%s: %s", folder, error) : 0;
}

#define LIST_MAX 2048 /* bytes of functions on the command line */

#define SETTINGS_MAX 8

struct start {
	char folder[CMD_FOLDER]; /* "": the top level's */
	bool made;		 /* its instance was not there */
	/* The events that -e names, and the filters and triggers that -f and -R give to the last
	 * one. */
	char events[LIST_MAX];
	const char *event;
	struct setting {
		const char *event, *text;
		bool is_trigger; /* not a filter */
	} settings[SETTINGS_MAX];
	unsigned int nr_settings;
	/* The functions of -l and -n, separated by blanks. */
	char filter[LIST_MAX], left_out[LIST_MAX], graph[LIST_MAX];
	char options[LIST_MAX], pids[LIST_MAX];
	/* Of the last option of its kind. "": there was none */
	char tracer[LIST_MAX], depth[LIST_MAX], cpus[12];
	char error[160];
};

static int add_function_word(char *list, const char *word)
{
	size_t len = strlen(list);

	if (len + strlen(word) + 2 > LIST_MAX)
		return shell_error(-E2BIG, "trace",
				   "start: too many functions");
	if (len)
		list[len++] = ' ';
	string_copy(list + len, word, LIST_MAX - len);
	return 0;
}

/* As trace-cmd has it, "all" is every event. */
static int add_event(struct start *st, const char *name)
{
	st->event = strcmp(name, "all") ? name : "*:*";
	return add_function_word(st->events, st->event);
}

static int add_setting(struct start *st, const char *text, bool is_trigger)
{
	if (!st->event || st->nr_settings == SETTINGS_MAX)
		return shell_error(-EINVAL, "trace",
				   "start -f FILTER and -R TRIGGER stand "
				   "behind -e EVENT, at most %u in all",
				   SETTINGS_MAX);
	st->settings[st->nr_settings++] =
		(struct setting){ st->event, text, is_trigger };
	return 0;
}

/* As trace-cmd has it, -1 is every CPU. */
static int set_cpus(struct start *st, const char *text)
{
	cpumask_t all = cpus_present(), mask = all;

	if (strcmp(text, "-1") && (!*text || instance_cpus_parse(text, &mask)))
		return shell_error(-EINVAL, "trace",
				   "start -M '%.32s': a hexadecimal mask of "
				   "CPUs within %x is accepted, or -1 for all",
				   text, all);
	snprintf(st->cpus, sizeof(st->cpus), "%x", mask);
	return 0;
}

static int choose_tracer(struct start *st, const char *text)
{
	string_copy(st->tracer, text, sizeof(st->tracer));
	return 0;
}

static int add_filter(struct start *st, const char *text)
{
	return add_setting(st, text, false);
}

static int add_trigger(struct start *st, const char *text)
{
	return add_setting(st, text, true);
}

static int check_number(const char *option, const char *text, const char *kind)
{
	u64 number;

	return parse_u64(text, &number) ?
		       shell_error(-EINVAL, "trace",
				   "start %s '%.32s': a number is accepted, %s",
				   option, text, kind) :
		       0;
}

static int check_pid(struct start *st, const char *text)
{
	(void)st;
	return check_number("-P", text, "as ps shows it for each task");
}

static int check_option(struct start *st, const char *name)
{
	(void)st;
	return trace_option_exists(name) ?
		       0 :
		       shell_error(-EINVAL, "trace",
				   "start -O '%.32s': `trace list -O` names "
				   "the options",
				   name);
}

static int choose_depth(struct start *st, const char *text)
{
	string_copy(st->depth, text, sizeof(st->depth));
	return check_number("--max-graph-depth", text, "of levels; 0 is all");
}

#define LIST(list) offsetof(struct start, list)

/* The options, in the order in which messages and Tab show them. Each has a value. */
static const struct {
	const char *name, *value;
	/* Optional: take the value, or check it. */
	int (*take)(struct start *st, const char *value);
	size_t list; /* of words, to which the value goes. 0: none */
} options[] = {
	{ "-p", "TRACER", .take = choose_tracer },
	{ "-e", "EVENT", .take = add_event },
	{ "-f", "FILTER", .take = add_filter },
	{ "-R", "TRIGGER", .take = add_trigger },
	{ "-l", "FUNCTION", .list = LIST(filter) },
	{ "-n", "FUNCTION", .list = LIST(left_out) },
	{ "-g", "FUNCTION", .list = LIST(graph) },
	{ "-P", "PID", check_pid, LIST(pids) },
	{ "-M", "CPUS", .take = set_cpus },
	{ "-O", "OPTION", check_option, LIST(options) },
	{ "--max-graph-depth", "LEVELS", .take = choose_depth },
};

/* "-B" is the last: it stands before the others. */
const char *cmd_start_option(unsigned int i)
{
	return i < ARRAY_SIZE(options)	? options[i].name :
	       i == ARRAY_SIZE(options) ? "-B" :
					  NULL;
}

static int unknown_option(const char *option)
{
	char names[200];
	size_t n = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(options); i++)
		n += snprintf(names + n, sizeof(names) - n, "%s%s %s",
			      i ? ", " : "", options[i].name, options[i].value);
	return shell_error(-EINVAL, "trace",
			   "start '%.32s': accepted are %s; before them -B "
			   "INSTANCE",
			   option, names);
}

static int take_option(struct start *st, const char *option, const char *value)
{
	unsigned int i = 0;
	int err;

	while (i < ARRAY_SIZE(options) && strcmp(option, options[i].name))
		i++;
	if (i == ARRAY_SIZE(options))
		return unknown_option(option);
	if (!value)
		return shell_error(-EINVAL, "trace",
				   "start %s: its %s is missing", option,
				   options[i].value);
	err = options[i].take ? options[i].take(st, value) : 0;
	if (err || !options[i].list)
		return err;
	return add_function_word((char *)st + options[i].list, value);
}

/* ---- The control files ---------------------------------------------------------- */

/* In the order in which they are written. As trace-cmd: without -l and -n no function is filtered
 * out, and events that are not asked for are off. */
static const struct {
	const char *file;
	size_t text; /* LIST() */
	const char *
		otherwise; /* written if the text is empty. NULL: it stays then */
	bool top;	   /* the top level has it alone */
	bool checks;	   /* ctl_check() can refuse its text */
} writes[] = {
	{ "set_ftrace_filter", LIST(filter), .otherwise = "", .checks = true },
	{ "set_ftrace_notrace", LIST(left_out), .otherwise = "",
	  .checks = true },
	{ "set_graph_function", LIST(graph), .otherwise = "", .top = true,
	  .checks = true },
	{ "set_ftrace_pid", LIST(pids), .otherwise = "", .top = true },
	{ "set_event_pid", LIST(pids), .otherwise = "", .top = true },
	{ "max_graph_depth", LIST(depth), .otherwise = "0", .top = true },
	{ .file = "trace_options", .text = LIST(options) },
	{ .file = "tracing_cpumask", .text = LIST(cpus) },
	{ .file = "events/" }, /* the filters of -f */
	{ "trace", .otherwise = "" },
	{ "tracing_on", .otherwise = "1" },
	{ "current_tracer", LIST(tracer), .checks = true },
	{ "set_event", LIST(events), .otherwise = "", .checks = true },
};

/* The folder of the event, or of the system, that -e has named. False: there is none. */
static bool event_folder(const char *name, char *folder, size_t size)
{
	const char *colon = strchr(name, ':');
	char path[128], system[64] = "";

	snprintf(folder, size, "%.*s%s%s", (int)(colon ? colon - name : 64),
		 name, colon ? "/" : "", colon ? colon + 1 : "");
	snprintf(path, sizeof(path), TRACING "events/%s", folder);
	if (!strchr(name, '/') && ctl_is_dir(path))
		return true;
	while (!colon && !ctl_next(TRACING "events", system, sizeof(system))) {
		snprintf(folder, size, "%s%s", system, name);
		snprintf(path, sizeof(path), TRACING "events/%s", folder);
		if (!strchr(name, '/') && ctl_is_dir(path))
			return true;
	}
	return false;
}

/* The path below an instance's folder of the file that an -f or -R is written into. False: none. */
static bool setting_file(const struct setting *s, char *file, size_t size)
{
	char folder[64], path[128];

	if (!event_folder(s->event, folder, sizeof(folder)))
		return false;
	snprintf(file, size, "events/%s/%s", folder,
		 s->is_trigger ? "trigger" : "filter");
	snprintf(path, sizeof(path), TRACING "%s", file);
	return ctl_mode(path) >= 0;
}

/* An instance that has just been made has no error_log that outlives a mistake: that stands in the
 * top level's. */
static int check_text(struct start *st, const char *file, const char *text)
{
	bool at_top = st->made && strcmp(file, "current_tracer");
	char path[128];

	snprintf(path, sizeof(path), TRACING "%s%s", at_top ? "" : st->folder,
		 file);
	return ctl_check(path, text, st->error, sizeof(st->error));
}

static int check_setting(struct start *st, const struct setting *s)
{
	char file[80];
	int err;

	if (!setting_file(s, file, sizeof(file)))
		return shell_error(-EINVAL, "trace",
				   "start -e %.32s -%c '%.32s': no event of "
				   "that name alone",
				   s->event, s->is_trigger ? 'R' : 'f',
				   s->text);
	err = check_text(st, file, s->text);
	if (!err)
		return 0;
	return s->is_trigger ?
		       shell_error(err, "trace", "start -R: %s", st->error) :
		       shell_error(err, "trace", "start -f '%.32s': %s",
				   s->text, st->error);
}

/* All of the command before any of it changes something. */
static int check_all(struct start *st)
{
	const char *text;
	int err = 0;

	for (unsigned int i = 0; !err && i < ARRAY_SIZE(writes); i++) {
		text = (char *)st + writes[i].text;
		if (writes[i].checks && *text)
			err = check_text(st, writes[i].file, text);
		if (err)
			return shell_error(err, "trace", "%s", st->error);
	}
	for (unsigned int i = 0; !err && i < st->nr_settings; i++)
		err = check_setting(st, &st->settings[i]);
	return err;
}

static int check_options(struct start *st)
{
	if (!st->tracer[0] && !st->events[0])
		return shell_error(-EINVAL, "trace",
				   "start needs -p TRACER or -e EVENT; "
				   "`trace list` names them");
	if (!st->tracer[0])
		string_copy(st->tracer, "nop", sizeof(st->tracer));
	if (st->folder[0] && (st->graph[0] || st->pids[0] || st->depth[0]))
		return shell_error(-EINVAL, "trace",
				   "start -B: -g, -P and --max-graph-depth are "
				   "the top level's alone");
	return 0;
}

/* The instance that a folder belongs to. NULL: there is none, or another task has removed it. */
static const struct trace_instance *instance_at(const char *folder)
{
	char name[CMD_FOLDER];

	if (!folder[0])
		return &trace_top;
	string_copy(name, folder + strlen("instances/"), sizeof(name));
	name[strlen(name) - 1] = '\0';
	return instance_find(name);
}

/* All events off, without filters and triggers. */
static int forget_events(const struct start *st)
{
	static struct ctl_handle errors; /* too large for a stack */
	const struct trace_instance *in;
	int err;

	mutex_lock(&trace_mutex);
	errors.error[0] = '\0';
	in = instance_at(st->folder);
	err = in ? clients_instance_restarts(&errors, in, false) :
		   ctl_error(&errors, -ENOENT, "%s is gone", st->folder);
	mutex_unlock(&trace_mutex);
	return err ? shell_error(err, "trace", "%s", errors.error) : 0;
}

static int apply_settings(const struct start *st, bool triggers)
{
	char file[80];
	int err = 0;

	for (const struct setting *s = st->settings;
	     !err && s < st->settings + st->nr_settings; s++)
		if (s->is_trigger == triggers &&
		    setting_file(s, file, sizeof(file)))
			err = cmd_write(st->folder, file, s->text);
	return err;
}

/* One row of writes[]. A kernel without the file needs no write that takes something back. */
static int apply_write(const struct start *st, unsigned int i)
{
	const char *text = writes[i].text ? (char *)st + writes[i].text : "";
	char path[128];

	snprintf(path, sizeof(path), TRACING "%s", writes[i].file);
	if (writes[i].top && st->folder[0])
		return 0;
	if (!*text && (!writes[i].otherwise || ctl_mode(path) < 0))
		return 0;
	return cmd_write(st->folder, writes[i].file,
			 *text ? text : writes[i].otherwise);
}

/* Triggers come last, for they may end the tracing at once. */
static int start_apply(const struct start *st)
{
	int err = forget_events(st);

	for (unsigned int i = 0; !err && i < ARRAY_SIZE(writes); i++)
		err = strcmp(writes[i].file, "events/") ?
			      apply_write(st, i) :
			      apply_settings(st, false);
	return err ? err : apply_settings(st, true);
}

/* The mask of an earlier start stays, and `-M 1` reads as if it were CPU 1's number: an empty
 * trace alone would not say why it is empty. */
static void say_silent_cpus(struct sink *out, const char *folder)
{
	const struct trace_instance *in;
	cpumask_t silent = 0, mask = 0;

	mutex_lock(&trace_mutex);
	in = instance_at(folder);
	if (in) {
		mask = in->cpumask;
		silent = cpus_present() & ~mask;
	}
	mutex_unlock(&trace_mutex);
	if (!silent)
		return;
	sink_printf(out,
		    "trace: tracing_cpumask is %x: nothing is recorded "
		    "on CPU",
		    mask);
	for (unsigned int c = 0; c < MAX_CPUS; c++)
		if (silent & 1u << c)
			sink_printf(out, " %u", c);
	sink_printf(out, "; -M -1 is all CPUs\n");
}

int cmd_start(struct sink *out, const char *folder, int argc, char **argv)
{
	struct start *st = kmalloc_zeroed(sizeof(*st));
	char path[128];
	int i, err = 0;

	if (!st)
		return shell_error(-ENOMEM, "trace", "out of memory");
	string_copy(st->folder, folder, sizeof(st->folder));
	for (i = 0; !err && i < argc; i += 2)
		err = take_option(st, argv[i], argv[i + 1]);
	if (!err)
		err = check_options(st);
	if (!err)
		err = make_instance(st->folder, &st->made);
	if (!err)
		err = check_all(st);
	if (!err)
		err = start_apply(st);
	snprintf(path, sizeof(path), TRACING "%s", folder);
	if (err && st->made)
		ctl_rmdir(path, st->error, sizeof(st->error));
	if (!err)
		say_silent_cpus(out, folder);
	kfree(st);
	return err;
}
