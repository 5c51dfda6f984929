/* SPDX-License-Identifier: MIT */
/* Triggers of events: event_trigger.h. */
#include <tracer/events/event_trigger.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/core/client.h>
#include <tracer/core/command.h>
#include <tracer/events/event_filter.h>
#include <tracer/core/tracer.h>
#include <tracer/show/files_marker.h>

#define TRIGGERS_MAX 8	    /* of one event */
#define FILTERS_COST 60000u /* instructions of all filters of one event */

/* A list never changes: a write makes another. */
struct event_triggers {
	unsigned int nr;
	struct {
		struct command command;
		struct event_filter *filter; /* NULL: always */
	} t[TRIGGERS_MAX];
};

/* ---- When the event happens -------------------------------------------------------- */

static void event_triggers_act(const struct event *e, const void *record,
			       bool after, unsigned long ip, bool irqs_off)
{
	const struct event_triggers *list = READ_ONCE(e->triggers);

	for (unsigned int i = 0; list && i < list->nr; i++) {
		const struct command *c = &list->t[i].command;

		if ((c->kind >= COMMAND_FIRST_AFTER) == after &&
		    (!list->t[i].filter ||
		     event_filter_matches(list->t[i].filter, e, record,
					  irqs_off)))
			command_do(c, ip, true, irqs_off);
	}
}

void event_triggers_before(const struct event *e, const void *record,
			   bool irqs_off)
{
	event_triggers_act(e, record, false, 0, irqs_off);
}

void event_triggers_after(const struct event *e, const void *record,
			  unsigned long ip, bool irqs_off)
{
	event_triggers_act(e, record, true, ip, irqs_off);
}

/* ---- Markers ------------------------------------------------------------------------ */

/* Each event that can have triggers. */
#define for_each_triggering(e)                                                 \
	for ((e) = __start_events; (e);                                        \
	     (e) = (e) == &event_marker	    ? NULL :                           \
		   (e) + 1 == __stop_events ? &event_marker :                  \
					      (e) + 1)

/* The mutex keeps the list, and the interrupts are off for one command at a time. */
/* The text may be long, and a filter of it slow, so filters are looked at with interrupts on. */
static void act_on_marker(const struct trace_instance *in,
			  const struct marker_record *record, unsigned long ip)
{
	const struct event_triggers *list;
	irq_state_t state;

	mutex_lock(&trace_mutex);
	list = event_marker.triggers;
	for (unsigned int i = 0; list && i < list->nr; i++) {
		if (list->t[i].command.in != instance_number(in) ||
		    (list->t[i].filter &&
		     !event_filter_matches(list->t[i].filter, &event_marker,
					   record, false)))
			continue;
		state = arch_irq_save();
		command_do(&list->t[i].command, ip, true, false);
		arch_irq_restore(state);
	}
	mutex_unlock(&trace_mutex);
}

static int marker_written(struct ctl_handle *h, const char *text, size_t len,
			  unsigned long ip)
{
	struct marker_record *record;

	if (!READ_ONCE(event_marker.triggers))
		return 0;
	record = kmalloc_zeroed(sizeof(*record) + len + 1);
	if (!record)
		return ctl_error(h, -ENOMEM,
				 "recorded, but its triggers are not looked "
				 "at: out of memory");
	record->ip = (unsigned long)tracing_mark_write;
	memcpy(record->buf, text, len);
	act_on_marker(instance_of(h), record, ip);
	kfree(record);
	return 0;
}

/* Those of markers are looked at with interrupts on. */
int event_filters_afford(struct ctl_handle *h, const struct event *e,
			 const struct event_filter *f,
			 const struct event_filter *gone)
{
	unsigned int cost = event_filter_cost(f) - event_filter_cost(gone), i;

	if (!f || e == &event_marker)
		return 0;
	for (i = 0; i < INSTANCES; i++)
		cost += event_filter_cost(e->filters[i]);
	for (i = 0; e->triggers && i < e->triggers->nr; i++)
		cost += event_filter_cost(e->triggers->t[i].filter);
	if (cost <= FILTERS_COST)
		return 0;
	return ctl_error(h, -E2BIG,
			 "all filters of %s together could keep interrupts "
			 "off for %u us; %u us are allowed",
			 e->path, cost / 1000, FILTERS_COST / 1000);
}

/* ---- Writing ------------------------------------------------------------------ */

bool event_triggers_any(void)
{
	const struct event *e;

	mutex_assert_held(&trace_mutex);
	for_each_triggering (e)
		if (e->triggers)
			return true;
	return false;
}

bool event_triggers_apart(void)
{
	const struct event *e;

	mutex_assert_held(&trace_mutex);
	for_each_triggering (e)
		for (unsigned int i = 0; e->triggers && i < e->triggers->nr;
		     i++)
			if (e->triggers->t[i].command.in)
				return true;
	return false;
}

bool event_triggers_of(const struct event *e, const struct trace_instance *in)
{
	mutex_assert_held(&trace_mutex);
	for (unsigned int i = 0; e->triggers && i < e->triggers->nr; i++)
		if (!in || e->triggers->t[i].command.in == instance_number(in))
			return true;
	return false;
}

bool event_triggers_switch(const struct event *e,
			   const struct trace_instance *in)
{
	const struct event *by;

	mutex_assert_held(&trace_mutex);
	for_each_triggering (by)
		for (unsigned int i = 0; by->triggers && i < by->triggers->nr;
		     i++)
			if (by->triggers->t[i].command.event == e &&
			    (!in || by->triggers->t[i].command.in ==
					    instance_number(in)))
				return true;
	return false;
}

static void event_triggers_drop(struct event_triggers *list)
{
	for (unsigned int i = 0; list && i < list->nr; i++)
		command_drop(&list->t[i].command);
	kfree(list);
}

/* Make `new` the event's list. `gone` is a filter that no list has any longer, or NULL. */
static int event_triggers_install(struct ctl_handle *h, struct event *e,
				  struct event_triggers *new,
				  struct event_filter *gone)
{
	struct event_triggers *old = e->triggers;
	int err;

	if (!new->nr) {
		event_triggers_drop(new);
		new = NULL;
	}
	/* Release: its contents first. */
	__atomic_store_n(&e->triggers, new, __ATOMIC_RELEASE);
	err = clients_settings_changed(h);
	if (err) {
		WRITE_ONCE(e->triggers, old);
		clients_settings_changed(h);
		gone = NULL;
		old = new;
	}
	trace_refresh(); /* after this no CPU looks at the old list */
	event_triggers_drop(old);
	event_filter_free(gone);
	return err;
}

static struct event_triggers *event_triggers_copy(const struct event *e)
{
	struct event_triggers *new = kmalloc_zeroed(sizeof(*new));

	if (new && e->triggers)
		*new = *e->triggers;
	for (unsigned int i = 0; new &&i < new->nr; i++)
		command_share(&new->t[i].command);
	return new;
}

static unsigned int event_triggers_find(const struct event_triggers *list,
					const struct command *c)
{
	unsigned int i = 0;

	while (i < list->nr && !command_same(&list->t[i].command, c))
		i++;
	return i;
}

static int event_triggers_add(struct ctl_handle *h, struct event *e,
			      struct command *c, struct event_filter *filter)
{
	struct event_triggers *new = event_triggers_copy(e);
	int err = 0;

	if (!new)
		err = ctl_error(h, -ENOMEM, "out of memory");
	else if (event_triggers_find(new, c) < new->nr)
		err = ctl_error(h, -EEXIST,
				"the event has this trigger already; ! takes "
				"it back");
	else if (new->nr == TRIGGERS_MAX)
		err = ctl_error(h, -ENOSPC, "an event has at most %u triggers",
				TRIGGERS_MAX);
	else
		err = event_filters_afford(h, e, filter, NULL) ?:
			      command_prepare(h, c->kind);
	if (!err && command_count_make(c))
		err = ctl_error(h, -ENOMEM, "out of memory");
	if (err) {
		event_triggers_drop(new);
	} else {
		new->t[new->nr].command = *c;
		new->t[new->nr++].filter = filter;
		err = event_triggers_install(h, e, new, NULL);
	}
	if (err)
		event_filter_free(filter);
	return err;
}

static int event_triggers_remove(struct ctl_handle *h, struct event *e,
				 const struct command *c)
{
	struct event_triggers *new = event_triggers_copy(e);
	struct event_filter *gone;
	unsigned int i;

	if (!new)
		return ctl_error(h, -ENOMEM, "out of memory");
	i = event_triggers_find(new, c);
	if (i == new->nr) {
		event_triggers_drop(new);
		return ctl_error(h, -ENODEV,
				 "the event has no such trigger; cat trigger "
				 "shows them");
	}
	gone = new->t[i].filter;
	command_drop(&new->t[i].command);
	new->t[i] = new->t[--new->nr];
	return event_triggers_install(h, e, new, gone);
}

/* The filter behind " if ", which ends the command there. NULL: none, or the error *err. */
static struct event_filter *
cut_filter(struct ctl_handle *h, const struct event *e, char *text, int *err)
{
	char *word = strstr(text, " if ");
	struct event_filter *f;
	const char *what;
	unsigned int at;

	*err = 0;
	if (!word)
		return NULL;
	*word = '\0';
	word = ctl_strip(word + 4);
	f = event_filter_parse(e, word, &what, &at);
	if (f)
		return f;
	*err = event_filter_refuse(instance_of(h), word, what, at);
	if (*err == -EINVAL)
		ctl_error(h, *err, "%s, at character %u of '%.64s'", what,
			  at + 1, word);
	return NULL;
}

/* The command that text says, and the filter behind it, or NULL: the caller frees it. */
static int parse_event_trigger(struct ctl_handle *h, const struct event *e,
			       char *text, bool remove, struct command *c,
			       struct event_filter **filter)
{
	int err;

	*filter = cut_filter(h, e, text, &err);
	if (err)
		return err;
	err = command_parse(h, ctl_strip(text), remove, c);
	if (!err && c->kind == COMMAND_DUMP)
		err = ctl_error(h, -EINVAL,
				"dump is a command of functions alone; events "
				"accept: %s",
				command_names);
	if (err)
		event_filter_free(*filter);
	return err;
}

int event_trigger_check(struct ctl_handle *h, const struct event *e, char *text)
{
	struct event_filter *filter;
	struct command c;
	int err = parse_event_trigger(h, e, text, false, &c, &filter);

	if (!err)
		event_filter_free(filter);
	return err;
}

int event_trigger_write(struct ctl_handle *h, struct event *e, char *text)
{
	bool remove = *text == '!';
	struct event_filter *filter;
	struct command c;
	int err;

	mutex_assert_held(&trace_mutex);
	err = parse_event_trigger(h, e, text + remove, remove, &c, &filter);
	if (err)
		return err;
	if (!remove)
		return event_triggers_add(h, e, &c, filter);
	event_filter_free(filter);
	return event_triggers_remove(h, e, &c);
}

/* The place in its list of the i-th trigger that is an instance's, or the list's length. */
static unsigned int nth_of(const struct event_triggers *list,
			   const struct trace_instance *in, unsigned long i)
{
	unsigned int at = 0;

	while (list && at < list->nr &&
	       (list->t[at].command.in != instance_number(in) || i--))
		at++;
	return at;
}

int event_triggers_clear(struct ctl_handle *h, struct event *e,
			 const struct trace_instance *in)
{
	unsigned int at;
	int err = 0;

	while (!err && e->triggers &&
	       (at = nth_of(e->triggers, in, 0)) < e->triggers->nr)
		err = event_triggers_remove(h, e, &e->triggers->t[at].command);
	return err;
}

bool event_trigger_show(struct seq *s, const struct event *e,
			const struct trace_instance *in, unsigned long i)
{
	unsigned int at = nth_of(e->triggers, in, i);

	mutex_assert_held(&trace_mutex);
	if (!e->triggers || at >= e->triggers->nr)
		return false;
	command_show(s, &e->triggers->t[at].command);
	if (e->triggers->t[at].filter)
		seq_printf(s, " if %s",
			   event_filter_text(e->triggers->t[at].filter));
	seq_printf(s, "\n");
	return true;
}

static u32 event_triggers_need(void)
{
	return event_triggers_any() ? NEED_C : 0;
}
TRACE_CLIENT(event_triggers, .needs = event_triggers_need,
	     .marked = marker_written);
