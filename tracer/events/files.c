/* The control files of events: events/, available_events, set_event, error_log. */
#include <tracer/events/events.h>
#include <tracer/calls/command.h>
#include <tracer/events/event_filter.h>
#include <tracer/events/event_trigger.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/time.h>
#include <tracer/tracer.h>

/* For files of one record: true the first time. */
static bool once(struct ctl_handle *h)
{
	return h->pos++ == 0;
}

static struct event *event_at(unsigned int i)
{
	struct event *e = __start_events + i;

	return e < __stop_events ? e : NULL;
}

static const char *event_path(unsigned int i)
{
	const struct event *e = event_at(i);

	return e ? e->path : NULL;
}

/* The i-th system: its events stand together in list.h. */
static const char *event_system(unsigned int i)
{
	const char *last = "";
	struct event *e;

	for_each_event (e) {
		if (!strcmp(e->system, last))
			continue;
		if (!i--)
			return e->system;
		last = e->system;
	}
	return NULL;
}

/* ---- enable ----------------------------------------------------------------------- */

static bool of_system(const struct event *e, const void *arg)
{
	return !arg || !strcmp(e->system, arg);
}

static bool is_event(const struct event *e, const void *arg)
{
	return e == arg;
}

/* 0 or 1; X when some of them are on, and some off. */
static char state_of(bool (*chosen)(const struct event *e, const void *arg),
		     const void *arg)
{
	bool on = false, off = false;
	struct event *e;

	for_each_event (e)
		if (chosen(e, arg)) {
			on |= READ_ONCE(e->on);
			off |= !READ_ONCE(e->on);
		}
	return on && off ? 'X' : on ? '1' : '0';
}

static int enable(struct ctl_handle *h, char *text,
		  bool (*chosen)(const struct event *e, const void *arg),
		  const void *arg)
{
	struct event_set set;
	struct event *e;
	u64 v;
	int err = parse_u64(ctl_strip(text), &v);

	if (err || v > 1)
		return ctl_error(h, err ? err : -EINVAL,
				 "'%.32s' is neither 0 nor 1", text);
	mutex_lock(&trace_mutex);
	set = events_now();
	for_each_event (e)
		if (chosen(e, arg))
			event_set_bit(&set, e, v);
	err = events_switch(h, &set);
	mutex_unlock(&trace_mutex);
	return err;
}

static int all_enable_read(struct ctl_handle *h, struct seq *s)
{
	if (!once(h))
		return 0;
	seq_printf(s, "%c\n", state_of(of_system, NULL));
	return 1;
}

static int all_enable_write(struct ctl_handle *h, char *text)
{
	return enable(h, text, of_system, NULL);
}
CTL_FILE(events_enable, .path = TRACING "events/enable",
	 .read = all_enable_read, .write = all_enable_write);

static int system_enable_read(struct ctl_handle *h, struct seq *s)
{
	if (!once(h))
		return 0;
	seq_printf(s, "%c\n", state_of(of_system, event_system(h->cpu)));
	return 1;
}

static int system_enable_write(struct ctl_handle *h, char *text)
{
	return enable(h, text, of_system, event_system(h->cpu));
}
CTL_FILE(system_enable, .path = TRACING "events/%s/enable",
	 .name = event_system, .read = system_enable_read,
	 .write = system_enable_write);

static int event_enable_read(struct ctl_handle *h, struct seq *s)
{
	if (!once(h))
		return 0;
	mutex_lock(&trace_mutex);
	seq_printf(s, "%c%s\n", state_of(is_event, event_at(h->cpu)),
		   event_is_held(event_at(h->cpu)) ? "*" : "");
	mutex_unlock(&trace_mutex);
	return 1;
}

static int event_enable_write(struct ctl_handle *h, char *text)
{
	return enable(h, text, is_event, event_at(h->cpu));
}
CTL_FILE(event_enable, .path = TRACING "events/%s/enable", .name = event_path,
	 .read = event_enable_read, .write = event_enable_write);

/* ---- id and format ------------------------------------------------------------------ */

static int event_id_read(struct ctl_handle *h, struct seq *s)
{
	if (!once(h))
		return 0;
	seq_printf(s, "%u\n", event_id(event_at(h->cpu)));
	return 1;
}
CTL_FILE(event_id, .path = TRACING "events/%s/id", .name = event_path,
	 .read = event_id_read);

static const char common_fields[] =
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;"
	"\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/* A record for the head, one for each field, and one for the print fmt. */
static int put_format(struct ctl_handle *h, struct seq *s, const char *name,
		      unsigned int id, const struct event_field *fields,
		      const char *text)
{
	unsigned int n = 0, at = h->pos++;

	while (fields[n].name)
		n++;
	if (at > n + 1)
		return 0;
	if (at == 0)
		seq_printf(s, "name: %s\nID: %u\nformat:\n%s", name, id,
			   common_fields);
	else if (at <= n)
		event_show_field(s, fields, &fields[at - 1]);
	else
		event_show_format(s, fields, text);
	return 1;
}

static int event_format_read(struct ctl_handle *h, struct seq *s)
{
	const struct event *e = event_at(h->cpu);

	return put_format(h, s, e->name, event_id(e), e->fields, e->text);
}
CTL_FILE(event_format, .path = TRACING "events/%s/format", .name = event_path,
	 .read = event_format_read);

/*
 * What the tracers record, as Linux describes it: trace-cmd and others look for these
 * formats before they read anything. The numbers are Linux's enum trace_type.
 */
#define STACK_TEXT                                                             \
	"\\t=> {caller[0]}\\n\\t=> {caller[1]}\\n\\t=> {caller[2]}\\n"         \
	"\\t=> {caller[3]}\\n\\t=> {caller[4]}\\n\\t=> {caller[5]}\\n"         \
	"\\t=> {caller[6]}\\n\\t=> {caller[7]}\\n"
static const struct own {
	const char *path, *name, *text;
	unsigned int id;
	struct event_field fields[6];
} own[] = {
	{ "ftrace/function",
	  "function",
	  " {ip:%ps} <-- {parent_ip:%ps}",
	  1,
	  { { "ip", EVENT_ULONG }, { "parent_ip", EVENT_ULONG } } },
	{ "ftrace/funcgraph_entry",
	  "funcgraph_entry",
	  "--> {func:%ps} ({depth})",
	  11,
	  { { "func", EVENT_ULONG }, { "depth", EVENT_INT } } },
	{ "ftrace/funcgraph_exit",
	  "funcgraph_exit",
	  "<-- {func:%ps} ({depth}) (start: {calltime:%llx}  end: "
	  "{rettime:%llx}) over: {overrun}",
	  10,
	  { { "func", EVENT_ULONG },
	    { "depth", EVENT_INT },
	    { "overrun", EVENT_UINT },
	    { "calltime", EVENT_U64 },
	    { "rettime", EVENT_U64 } } },
	{ "ftrace/kernel_stack",
	  "kernel_stack",
	  STACK_TEXT,
	  4,
	  { { "size", EVENT_INT }, { "caller", EVENT_CALLERS } } },
	{ "ftrace/print",
	  "print",
	  "{ip:%ps}: {buf}",
	  5,
	  { { "ip", EVENT_ULONG }, { "buf", EVENT_TEXT } } },
};

static const char *own_path(unsigned int i)
{
	return i < ARRAY_SIZE(own) ? own[i].path : NULL;
}

static int own_format_read(struct ctl_handle *h, struct seq *s)
{
	const struct own *o = &own[h->cpu];

	return put_format(h, s, o->name, o->id, o->fields, o->text);
}
CTL_FILE(own_format, .path = TRACING "events/%s/format", .name = own_path,
	 .read = own_format_read);

static int own_id_read(struct ctl_handle *h, struct seq *s)
{
	if (!once(h))
		return 0;
	seq_printf(s, "%u\n", own[h->cpu].id);
	return 1;
}
CTL_FILE(own_id, .path = TRACING "events/%s/id", .name = own_path,
	 .read = own_id_read);

/* Linux's page of binary events. The commit field has the size of a long. */
static int header_page_read(struct ctl_handle *h, struct seq *s)
{
	unsigned int commit = sizeof(long), data = 8 + commit;

	if (!once(h))
		return 0;
	seq_printf(s,
		   "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		   "\tfield: local_t commit;\toffset:8;\tsize:%u;\tsigned:1;\n"
		   "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		   "\tfield: char data;\toffset:%u;\tsize:%u;\tsigned:0;\n",
		   commit, data, (unsigned int)PAGE_SIZE - data);
	return 1;
}
CTL_FILE(header_page, .path = TRACING "events/header_page",
	 .read = header_page_read);

static int header_event_read(struct ctl_handle *h, struct seq *s)
{
	if (!once(h))
		return 0;
	seq_printf(s, "# compressed entry header\n"
		      "\ttype_len    :    5 bits\n"
		      "\ttime_delta  :   27 bits\n"
		      "\tarray       :   32 bits\n\n"
		      "\tpadding     : type == 29\n"
		      "\ttime_extend : type == 30\n"
		      "\ttime_stamp : type == 31\n"
		      "\tdata max type_len  == 28\n");
	return 1;
}
CTL_FILE(header_event, .path = TRACING "events/header_event",
	 .read = header_event_read);

/* ---- available_events, set_event ------------------------------------------------------- */

static int available_events_read(struct ctl_handle *h, struct seq *s)
{
	const struct event *e = event_at(h->pos++);

	if (!e)
		return 0;
	seq_printf(s, "%s:%s\n", e->system, e->name);
	return 1;
}
CTL_FILE(available_events, .path = TRACING "available_events",
	 .read = available_events_read);

static int set_event_read(struct ctl_handle *h, struct seq *s)
{
	const struct event *e;

	while ((e = event_at(h->pos++)))
		if (READ_ONCE(e->on)) {
			seq_printf(s, "%s:%s\n", e->system, e->name);
			return 1;
		}
	return 0;
}

/* With `>`, all that the words do not name are off. */
static int set_event_write(struct ctl_handle *h, char *text)
{
	struct event_set set = { { 0 } };
	char *word;
	int err = 0;

	mutex_lock(&trace_mutex);
	if (!h->truncate)
		set = events_now();
	while (!err && (word = ctl_word(&text)))
		err = event_set_change(h, &set, word);
	if (!err)
		err = events_switch(h, &set);
	mutex_unlock(&trace_mutex);
	return err;
}
CTL_FILE(set_event, .path = TRACING "set_event", .read = set_event_read,
	 .write = set_event_write, .empties = true);

/* ---- filter, error_log ------------------------------------------------------------------ */

#define ERRORS 8 /* kept, as in Linux */

/* Mistakes in what was written, the newest last; under trace_mutex. */
static struct {
	unsigned int nr; /* since the log was cleared */
	struct {
		u64 ns;
		const char *what;
		unsigned int at;
		char command[160];
	} last[ERRORS];
} errors;

static void note_error(const char *command, const char *what, unsigned int at)
{
	unsigned int i = errors.nr++ % ERRORS;

	errors.last[i].ns = time_ns();
	errors.last[i].what = what;
	errors.last[i].at = at;
	strlcpy(errors.last[i].command, command,
		sizeof(errors.last[i].command));
}

static int error_log_read(struct ctl_handle *h, struct seq *s)
{
	unsigned int first, i;

	mutex_lock(&trace_mutex);
	first = errors.nr > ERRORS ? errors.nr - ERRORS : 0;
	i = first + h->pos++;
	if (i < errors.nr) {
		u64 us = errors.last[i % ERRORS].ns / NSEC_PER_USEC;

		seq_printf(s,
			   "[%5llu.%06llu] event filter parse error: error: "
			   "%s\n  Command: %s\n           %*s^\n",
			   (unsigned long long)us / 1000000,
			   (unsigned long long)us % 1000000,
			   errors.last[i % ERRORS].what,
			   errors.last[i % ERRORS].command,
			   (int)errors.last[i % ERRORS].at, "");
	}
	mutex_unlock(&trace_mutex);
	return s->len != 0;
}

static int error_log_write(struct ctl_handle *h, char *text)
{
	(void)h, (void)text;
	mutex_lock(&trace_mutex);
	errors.nr = 0;
	mutex_unlock(&trace_mutex);
	return 0;
}
CTL_FILE(error_log, .path = TRACING "error_log", .read = error_log_read,
	 .write = error_log_write, .empties = true);

static int event_filter_read(struct ctl_handle *h, struct seq *s)
{
	const struct event *e = event_at(h->cpu);

	if (!once(h))
		return 0;
	mutex_lock(&trace_mutex);
	seq_printf(s, "%s\n",
		   e->filter ? event_filter_text(e->filter) : "none");
	mutex_unlock(&trace_mutex);
	return 1;
}

/* "0", and nothing, take the filter away. */
static int set_filter(struct ctl_handle *h, struct event *e, const char *text)
{
	struct event_filter *f = NULL;
	const char *what;
	unsigned int at;

	if (*text && strcmp(text, "0")) {
		f = event_filter_parse(e->fields, text, &what, &at);
		if (!f) {
			note_error(text, what, at);
			return ctl_error(h, -EINVAL,
					 "%s, at character %u; the fields are "
					 "in events/%s/format",
					 what, at + 1, e->path);
		}
	}
	event_set_filter(e, f);
	return 0;
}

static int event_filter_write(struct ctl_handle *h, char *text)
{
	int err;

	mutex_lock(&trace_mutex);
	err = set_filter(h, event_at(h->cpu), ctl_strip(text));
	mutex_unlock(&trace_mutex);
	return err;
}
CTL_FILE(event_filter, .path = TRACING "events/%s/filter", .name = event_path,
	 .read = event_filter_read, .write = event_filter_write,
	 .empties = true);

/* A system's filter goes to each of its events that has the fields; Linux's rule. */
static int system_filter_write(struct ctl_handle *h, char *text)
{
	const char *system = event_system(h->cpu), *what = NULL;
	struct event_filter *f;
	unsigned int at = 0, set = 0;
	struct event *e;

	text = ctl_strip(text);
	mutex_lock(&trace_mutex);
	for_each_event (e) {
		if (strcmp(e->system, system))
			continue;
		f = NULL;
		if (*text && strcmp(text, "0")) {
			f = event_filter_parse(e->fields, text, &what, &at);
			if (!f)
				continue;
		}
		event_set_filter(e, f);
		set++;
	}
	if (!set)
		note_error(text, what, at);
	mutex_unlock(&trace_mutex);
	if (!set)
		return ctl_error(h, -EINVAL,
				 "%s, at character %u, for every event of %s",
				 what, at + 1, system);
	return 0;
}

static int system_filter_read(struct ctl_handle *h, struct seq *s)
{
	if (!once(h))
		return 0;
	seq_printf(s,
		   "### global filter ###\n# Use this to set filters for "
		   "multiple events.\n# Only events with the given fields "
		   "will be affected.\n# If no events are modified, an error "
		   "message will be displayed here\n");
	return 1;
}
CTL_FILE(system_filter, .path = TRACING "events/%s/filter",
	 .name = event_system, .read = system_filter_read,
	 .write = system_filter_write, .empties = true);

/* ---- trigger ------------------------------------------------------------------------- */

static int event_trigger_read(struct ctl_handle *h, struct seq *s)
{
	bool some;

	mutex_lock(&trace_mutex);
	some = event_trigger_show(s, event_at(h->cpu), h->pos);
	mutex_unlock(&trace_mutex);
	if (!some && !h->pos)
		seq_printf(s, "# Available triggers:\n# %s\n", command_names);
	return !h->pos++ || some;
}

static int trigger_write(struct ctl_handle *h, char *text)
{
	struct event *e = event_at(h->cpu);
	int err;

	text = ctl_strip(text);
	mutex_lock(&trace_mutex);
	err = *text ? event_trigger_write(h, e, text) :
		      event_triggers_clear(h, e);
	mutex_unlock(&trace_mutex);
	return err;
}
CTL_FILE(event_trigger, .path = TRACING "events/%s/trigger", .name = event_path,
	 .read = event_trigger_read, .write = trigger_write, .empties = true);
