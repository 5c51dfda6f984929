/* SPDX-License-Identifier: MIT */
/* The shell's `trace start` and `trace reset`: what they mean for the control files. */
#include <tracer/user/cmd_start.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lock/mutex.h>
#include <kernel/printk.h>
#include <kernel/shell/shell.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/calls/profile.h>
#include <tracer/calls/triggers.h>
#include <tracer/core/filter.h>
#include <tracer/core/options.h>
#include <tracer/events/event_filter.h>
#include <tracer/events/event_trigger.h>
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
	const char *tracer;	 /* NULL: nop, if there are events */
	/* What -e names, and the filters and triggers that -f and -R give to the last one. */
	char events[LIST_MAX];
	const char *event;
	struct setting {
		const char *event, *text;
		bool is_trigger; /* not a filter */
	} settings[SETTINGS_MAX];
	unsigned int nr_settings;
	/* What -l and -n name, separated by blanks; and room to check it. */
	char filter[LIST_MAX], left_out[LIST_MAX], graph[LIST_MAX];
	char options[LIST_MAX], pids[LIST_MAX];
	const char *depth;
	char cpus[12]; /* tracing_cpumask; "": it stays */
	char scratch[LIST_MAX];
	struct ctl_handle errors;
};

static int add_function_word(char *list, const char *word)
{
	size_t len = strlen(list);

	if (len + strlen(word) + 2 > LIST_MAX)
		return shell_error(-E2BIG, "trace",
				   "start: too many functions");
	if (len)
		list[len++] = ' ';
	strlcpy(list + len, word, LIST_MAX - len);
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

static int start_option(struct start *st, const char *option, const char *value)
{
	u64 number;

	if (!strcmp(option, "-p") && value)
		st->tracer = value;
	else if (!strcmp(option, "-e") && value)
		return add_event(st, value);
	else if (!strcmp(option, "-f") && value)
		return add_setting(st, value, false);
	else if (!strcmp(option, "-R") && value)
		return add_setting(st, value, true);
	else if (!strcmp(option, "-M") && value)
		return set_cpus(st, value);
	else if (!strcmp(option, "-l") && value)
		return add_function_word(st->filter, value);
	else if (!strcmp(option, "-n") && value)
		return add_function_word(st->left_out, value);
	else if (!strcmp(option, "-g") && value)
		return add_function_word(st->graph, value);
	else if (!strcmp(option, "-P") && value && !parse_u64(value, &number))
		return add_function_word(st->pids, value);
	else if (!strcmp(option, "-O") && value && trace_option_exists(value))
		return add_function_word(st->options, value);
	else if (!strcmp(option, "-O") && value)
		return shell_error(-EINVAL, "trace",
				   "start -O '%.32s': `trace list -O` names "
				   "the options",
				   value);
	else if (!strcmp(option, "--max-graph-depth") && value &&
		 !parse_u64(value, &number))
		st->depth = value;
	else
		return shell_error(
			-EINVAL, "trace",
			"start '%.32s': accepted "
			"are -p TRACER, -e EVENT, -f FILTER, "
			"-R TRIGGER, -l, -n, -g FUNCTION, -P PID, "
			"-M CPUS, -O OPTION, --max-graph-depth LEVELS; "
			"before them -B INSTANCE",
			option);
	return 0;
}

static int check_list(struct start *st, struct site_filter *f, const char *list)
{
	strlcpy(st->scratch, list, LIST_MAX);
	return filter_check(&st->errors, f, st->scratch, false);
}

/* The folder of an event, or of a system, that -e has named: of one, because a filter has
 * fields. */
static bool event_folder(const char *name, char *folder, size_t size)
{
	const char *colon = strchr(name, ':');
	struct event *e;

	for_each_event (e) {
		if (colon ? !strncmp(e->system, name, colon - name) &&
				    !strcmp(e->name, colon + 1) :
			    !strcmp(e->name, name)) {
			snprintf(folder, size, "%s", e->path);
			return true;
		}
		if (!strcmp(e->system, name)) {
			snprintf(folder, size, "%s", name);
			return true;
		}
	}
	return false;
}

static int check_filter(struct start *st, const char *event, const char *text)
{
	const char *what = "no event of that name alone";
	struct event_filter *f = NULL;
	unsigned int at = 0;
	char folder[64];
	struct event *e;

	if (event_folder(event, folder, sizeof(folder)))
		for_each_event (e)
			if (!f && (!strcmp(e->path, folder) ||
				   !strcmp(e->system, folder)))
				f = event_filter_parse(e, text, &what, &at);
	if (!f)
		return ctl_error(&st->errors, -EINVAL,
				 "start -e %.32s -f '%.32s': %s", event, text,
				 what);
	event_filter_free(f);
	return 0;
}

/* The one event of that name; NULL: there is none, or it names several. */
static struct event *event_alone(const char *name)
{
	char folder[64] = "";
	struct event *e;

	event_folder(name, folder, sizeof(folder));
	for_each_event (e)
		if (!strcmp(e->path, folder))
			return e;
	return NULL;
}

static int check_trigger(struct start *st, const char *event, const char *text)
{
	const struct event *e = event_alone(event);
	int err;

	if (!e)
		return ctl_error(&st->errors, -EINVAL,
				 "start -e %.32s -R '%.32s': no event of that "
				 "name alone",
				 event, text);
	strlcpy(st->scratch, text, LIST_MAX);
	err = event_trigger_check(&st->errors, e, st->scratch);
	if (!err)
		return 0;
	strlcpy(st->scratch, st->errors.error, LIST_MAX);
	return ctl_error(&st->errors, err, "start -R: %s", st->scratch);
}

static int check_events(struct start *st)
{
	struct event_set set = EVENTS_UNTOUCHED;
	char *list = st->scratch, *word;
	int err = 0;

	strlcpy(st->scratch, st->events, LIST_MAX);
	while (!err && (word = ctl_word(&list)))
		err = event_set_change(&st->errors, &set, word);
	for (const struct setting *s = st->settings;
	     !err && s < st->settings + st->nr_settings; s++)
		err = s->is_trigger ? check_trigger(st, s->event, s->text) :
				      check_filter(st, s->event, s->text);
	return err;
}

/* All of it before any of it changes something. */
static int start_check(struct start *st)
{
	/* One that is still to be made has what any other has. */
	const struct trace_instance *in =
		&trace_instances[st->folder[0] ? 1 : 0];
	const struct tracer *t;
	int err;

	if (!st->tracer && !st->events[0])
		return shell_error(-EINVAL, "trace",
				   "start needs -p TRACER or -e EVENT; "
				   "`trace list` names them");
	if (!st->tracer)
		st->tracer = "nop";
	if (st->folder[0] && (st->graph[0] || st->pids[0] || st->depth))
		return shell_error(-EINVAL, "trace",
				   "start -B: -g, -P and --max-graph-depth are "
				   "the top level's alone");
	t = trace_find(st->tracer);
	err = t && instance_has(in, t) ?
		      0 :
		      trace_unknown(&st->errors, in, st->tracer);
	if (!err)
		err = check_list(st, &trace_top.filter, st->filter);
	if (!err)
		err = check_list(st, &trace_top.left_out, st->left_out);
	if (!err)
		err = check_list(st, &filter_graph, st->graph);
	if (!err)
		err = check_events(st);
	return err ? shell_error(err, "trace", "%s", st->errors.error) : 0;
}

/* The instance that a folder belongs to; NULL: another task has removed it. */
static const struct trace_instance *instance_at(const char *folder)
{
	char name[CMD_FOLDER];

	if (!folder[0])
		return &trace_top;
	strlcpy(name, folder + strlen("instances/"), sizeof(name));
	name[strlen(name) - 1] = '\0';
	return instance_find(name);
}

/* All events off, without filters and triggers. */
static int reset_events(struct start *st)
{
	const struct trace_instance *in;
	int err;

	mutex_lock(&trace_mutex);
	in = instance_at(st->folder);
	err = in ? events_reset(&st->errors, in) :
		   ctl_error(&st->errors, -ENOENT, "%s is gone", st->folder);
	mutex_unlock(&trace_mutex);
	return err ? shell_error(err, "trace", "%s", st->errors.error) : 0;
}

static int apply_settings(const struct start *st, bool triggers)
{
	char file[80], folder[64] = "";
	int err = 0;

	for (const struct setting *s = st->settings;
	     !err && s < st->settings + st->nr_settings; s++) {
		if (s->is_trigger != triggers)
			continue;
		event_folder(s->event, folder, sizeof(folder));
		snprintf(file, sizeof(file), "events/%s/%s", folder,
			 triggers ? "trigger" : "filter");
		err = cmd_write(st->folder, file, s->text);
	}
	return err;
}

/* What the top level has alone. */
static int apply_top(const struct start *st)
{
	int err = cmd_write("", "set_graph_function", st->graph);

	if (!err)
		err = cmd_write("", "set_ftrace_pid", st->pids);
	if (!err)
		err = cmd_write("", "set_event_pid", st->pids);
	return err ? err : cmd_write("", "max_graph_depth", st->depth ?: "0");
}

/* As trace-cmd: what is not asked for with -l and -n is not filtered, and events that are
 * not asked for are off. Triggers come last, for they may end the tracing at once. */
static int start_apply(struct start *st)
{
	int err = reset_events(st);

	if (!err)
		err = cmd_write(st->folder, "set_ftrace_filter", st->filter);
	if (!err)
		err = cmd_write(st->folder, "set_ftrace_notrace", st->left_out);
	if (!err && !st->folder[0])
		err = apply_top(st);
	if (!err && st->options[0])
		err = cmd_write(st->folder, "trace_options", st->options);
	if (!err && st->cpus[0])
		err = cmd_write(st->folder, "tracing_cpumask", st->cpus);
	if (!err)
		err = apply_settings(st, false);
	if (!err)
		err = cmd_write(st->folder, "trace", "");
	if (!err)
		err = cmd_write(st->folder, "tracing_on", "1");
	if (!err)
		err = cmd_write(st->folder, "current_tracer", st->tracer);
	if (!err)
		err = cmd_write(st->folder, "set_event", st->events);
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
	struct start *st = kzalloc(sizeof(*st));
	char path[128], error[160];
	bool made = false;
	int i, err = 0;

	if (!st)
		return shell_error(-ENOMEM, "trace", "out of memory");
	strlcpy(st->folder, folder, sizeof(st->folder));
	for (i = 0; !err && i < argc; i += 2)
		err = start_option(st, argv[i], argv[i + 1]);
	if (!err)
		err = start_check(st);
	if (!err)
		err = make_instance(st->folder, &made);
	if (!err)
		err = start_apply(st);
	snprintf(path, sizeof(path), TRACING "%s", folder);
	if (err && made)
		ctl_rmdir(path, error, sizeof(error));
	if (!err)
		say_silent_cpus(out, folder);
	kfree(st);
	return err;
}

/* ---- reset ------------------------------------------------------------------- */

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

/* What acts by itself: triggers, which switch events and tracing_on; events; the profiler. */
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
