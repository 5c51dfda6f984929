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
#include <tracer/core/filter.h>
#include <tracer/core/options.h>
#include <tracer/events/event_filter.h>
#include <tracer/events/event_trigger.h>
#include <tracer/events/events.h>
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
	const char *tracer;	 /* NULL: nop, if there are events */
	/* What -e names, and the filters and triggers that -f and -R give to the last one. */
	char events[LIST_MAX];
	const char *event;
	struct setting {
		const char *event, *text;
		bool is_trigger; /* not a filter */
	} settings[SETTINGS_MAX];
	unsigned int nr_settings;
	/* The functions of -l and -n, separated by blanks, and room to check them. */
	char filter[LIST_MAX], left_out[LIST_MAX], graph[LIST_MAX];
	char options[LIST_MAX], pids[LIST_MAX];
	const char *depth;
	char cpus[12]; /* tracing_cpumask. "": it stays */
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

static int choose_tracer(struct start *st, const char *text)
{
	st->tracer = text;
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
	st->depth = text;
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

static int check_list(struct start *st, struct site_filter *f, const char *list)
{
	strlcpy(st->scratch, list, LIST_MAX);
	return filter_check(&st->errors, f, st->scratch, false);
}

/* The folder of the event, or of the system, that -e has named. A filter has fields, so there is
 * none for a pattern. */
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
	struct event_filter *f = NULL;
	const char *what = NULL;
	unsigned int at = 0;
	char folder[64];
	struct event *e;

	if (!event_folder(event, folder, sizeof(folder)))
		return ctl_error(&st->errors, -EINVAL,
				 "start -e %.32s -f '%.32s': no event of that "
				 "name alone",
				 event, text);
	for_each_event (e)
		if (!f &&
		    (!strcmp(e->path, folder) || !strcmp(e->system, folder)))
			f = event_filter_parse(e, text, &what, &at);
	if (f) {
		event_filter_free(f);
		return 0;
	}
	event_filter_log(instance_of(&st->errors), text, what, at);
	return ctl_error(&st->errors, -EINVAL,
			 "start -f '%.32s': %s, at character %u; the fields "
			 "are in events/%s%s/format",
			 text, what, at + 1, folder,
			 strchr(folder, '/') ? "" : "/*");
}

/* The one event of that name. NULL: there is none, or it names several. */
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

/* The instance that a folder belongs to. NULL: there is none, or another task has removed it. */
static const struct trace_instance *instance_at(const char *folder)
{
	char name[CMD_FOLDER];

	if (!folder[0])
		return &trace_top;
	strlcpy(name, folder + strlen("instances/"), sizeof(name));
	name[strlen(name) - 1] = '\0';
	return instance_find(name);
}

/* Each value of each option. Context: trace_mutex held. */
static int check_values(struct start *st)
{
	/* An instance that -B is going to make has the same tracers as an existing one. */
	const struct trace_instance *in =
		&trace_instances[st->folder[0] ? 1 : 0];
	const struct tracer *t = trace_find(st->tracer);
	int err = t && instance_has(in, t) ?
			  0 :
			  trace_unknown(&st->errors, in, st->tracer);

	/* Its error_log is not there yet: a mistake stands in the top level's. */
	in = instance_at(st->folder);
	st->errors.folder = in ? instance_number(in) : 0;
	if (!err)
		err = check_list(st, &trace_top.filter, st->filter);
	if (!err)
		err = check_list(st, &trace_top.left_out, st->left_out);
	if (!err)
		err = check_list(st, &filter_graph, st->graph);
	return err ? err : check_events(st);
}

/* All of the command before any of it changes something. */
static int start_check(struct start *st)
{
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
	mutex_lock(&trace_mutex);
	err = check_values(st);
	mutex_unlock(&trace_mutex);
	return err ? shell_error(err, "trace", "%s", st->errors.error) : 0;
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
		err = take_option(st, argv[i], argv[i + 1]);
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
