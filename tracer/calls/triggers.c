/* Triggers: triggers.h. */
#include <tracer/calls/triggers.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/image/symbols.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/calls/command.h>
#include <tracer/events/events.h>
#include <tracer/filter.h>
#include <tracer/ops.h>
#include <tracer/sites/sites.h>

struct trigger {
	u32 site;   /* its index */
	u32 offset; /* and where it is, from _text */
	struct command c;
};

/* A list never changes, but for the counts and the sites' indices: a write makes another. */
struct triggers {
	unsigned int nr;
	u32 *sites; /* a bitmap */
	struct trigger t[];
};

/* NULL: there are none. Written under trace_mutex; read with interrupts off. */
static struct triggers *triggers;

/* ---- When a function is called ---------------------------------------------- */

/*
 * What the triggers of a site do. One that changes tracing_on does it by one store, because it
 * cannot wait for the other CPUs. So while there are triggers the rings stay open, and each
 * writer looks at tracing_on first.
 */
static void act(unsigned int site, bool after, bool irqs_off)
{
	struct triggers *list = __atomic_load_n(&triggers, __ATOMIC_ACQUIRE);

	if (!list || !site_test(list->sites, site))
		return;
	for (unsigned int i = 0; i < list->nr; i++) {
		struct trigger *t = &list->t[i];

		if (t->site == site &&
		    (t->c.kind >= COMMAND_FIRST_AFTER) == after)
			command_do(&t->c, site_address(site) + arch_site_length,
				   false, irqs_off);
	}
}

void triggers_before(unsigned int site)
{
	act(site, false, true);
}

void triggers_after(unsigned int site, bool irqs_off)
{
	act(site, true, irqs_off);
}

bool triggers_switch(const struct event *e, const struct trace_instance *in)
{
	mutex_assert_held(&trace_mutex);
	for (unsigned int i = 0; triggers && i < triggers->nr; i++)
		if (triggers->t[i].c.event == e &&
		    (!in || triggers->t[i].c.in == instance_number(in)))
			return true;
	return false;
}

bool triggers_switch_apart(void)
{
	mutex_assert_held(&trace_mutex);
	for (unsigned int i = 0; triggers && i < triggers->nr; i++)
		if (triggers->t[i].c.event && triggers->t[i].c.in)
			return true;
	return false;
}

bool triggers_dump(void)
{
	mutex_assert_held(&trace_mutex);
	for (unsigned int i = 0; triggers && i < triggers->nr; i++)
		if (triggers->t[i].c.kind == COMMAND_DUMP)
			return true;
	return false;
}

bool triggers_any(void)
{
	mutex_assert_held(&trace_mutex);
	return triggers;
}

u32 triggers_want(unsigned int w)
{
	mutex_assert_held(&trace_mutex);
	return triggers ? triggers->sites[w] : 0;
}

/* ---- What is written --------------------------------------------------------- */

bool trigger_is_one(const char *word)
{
	return strchr(word, ':') && !filter_word_of_module(word);
}

/* A word, taken apart. */
struct word {
	char *functions;
	bool remove;
	struct command c;
};

static int parse_word(struct ctl_handle *h, char *text, struct word *w)
{
	char *command;

	w->remove = *text == '!';
	w->functions = text + w->remove;
	command = strchr(text, ':');
	*command++ = '\0';
	return command_parse(h, command, w->remove, &w->c);
}

static struct triggers *copy(const struct triggers *old, unsigned int more)
{
	unsigned int nr = old ? old->nr : 0;
	struct triggers *new =
		kzalloc(sizeof(*new) + (nr + more) * sizeof(new->t[0]));

	if (!new)
		return NULL;
	new->sites = site_bitmap_alloc();
	if (!new->sites) {
		kfree(new);
		return NULL;
	}
	new->nr = nr;
	for (unsigned int i = 0; i < nr; i++)
		new->t[i] = old->t[i];
	return new;
}

static void drop(struct triggers *list)
{
	if (list)
		kfree(list->sites);
	kfree(list);
}

static void put(struct triggers *list, unsigned int site, const struct word *w)
{
	unsigned int i = 0;

	while (i < list->nr &&
	       (list->t[i].site != site || !command_same(&list->t[i].c, &w->c)))
		i++;
	list->nr += i == list->nr;
	list->t[i] = (struct trigger){
		.site = site,
		.offset = site_address(site) - (unsigned long)_text,
		.c = w->c,
	};
}

static bool take(struct triggers *list, unsigned int site, const struct word *w)
{
	for (unsigned int i = 0; i < list->nr; i++)
		if (list->t[i].site == site &&
		    command_same(&list->t[i].c, &w->c) &&
		    list->t[i].c.counted == w->c.counted) {
			list->t[i] = list->t[--list->nr];
			return true;
		}
	return false;
}

/* Change *list, which may be replaced, by one word. */
static int change(struct ctl_handle *h, struct triggers **list, char *text)
{
	struct triggers *new = copy(*list, site_count);
	struct word w;
	unsigned int functions = 0, found = 0;
	int err = new ? parse_word(h, text, &w) : -ENOMEM;

	for (unsigned int site = 0; !err && site < site_count; site++) {
		if (!filter_names(w.functions, site))
			continue;
		functions++;
		if (w.remove)
			found += take(new, site, &w);
		else
			put(new, site, &w);
	}
	if (!err && !functions)
		err = ctl_error(h, -EINVAL,
				"'%.64s' matches none of "
				"available_filter_functions",
				w.functions);
	else if (!err && w.remove && !found)
		err = ctl_error(h, -ENODEV,
				"%.64s has no such trigger; cat "
				"set_ftrace_filter shows them",
				w.functions);
	if (err) {
		drop(new);
		return err;
	}
	drop(*list);
	*list = new;
	return 0;
}

static void mark_sites(struct triggers *list)
{
	memset(list->sites, 0, site_words * sizeof(u32));
	for (unsigned int i = 0; i < list->nr; i++)
		list->sites[list->t[i].site / 32] |= 1u << list->t[i].site % 32;
}

/* A call that comes meanwhile may miss its trigger. */
void triggers_sites_moved(void)
{
	mutex_assert_held(&trace_mutex);
	if (!triggers)
		return;
	for (unsigned int i = 0; i < triggers->nr; i++)
		triggers->t[i].site =
			site_find((unsigned long)_text + triggers->t[i].offset);
	mark_sites(triggers);
}

static int install(struct ctl_handle *h, struct triggers *new)
{
	struct triggers *old = triggers;
	int err = 0;

	for (unsigned int i = 0; !err && i < new->nr; i++)
		err = command_prepare(h, &new->t[i].c);
	if (err) {
		drop(new);
		return err;
	}
	mark_sites(new);
	if (!new->nr) {
		drop(new);
		new = NULL;
	}
	__atomic_store_n(&triggers, new, __ATOMIC_RELEASE);
	err = trace_update(h, 0, site_words);
	/* The events that triggers switch have their labels on. */
	if (!err)
		err = events_update(h);
	if (err) {
		__atomic_store_n(&triggers, old, __ATOMIC_RELEASE);
		trace_update(h, 0, site_words);
		events_update(h);
	}
	trace_refresh(); /* after this no CPU reads the old list */
	drop(err ? new : old);
	return err;
}

int triggers_write(struct ctl_handle *h, char *text)
{
	struct triggers *new;
	char *word;
	int err = 0;

	mutex_assert_held(&trace_mutex);
	if (trace_ops_refuse(h))
		return -EBUSY;
	new = copy(triggers, 0);
	if (!new)
		return ctl_error(h, -ENOMEM, "out of memory");
	while (!err && (word = ctl_word(&text)))
		err = change(h, &new, word);
	if (!err)
		return install(h, new);
	drop(new);
	return err == -ENOMEM ? ctl_error(h, err, "out of memory") : err;
}

int triggers_clear(struct ctl_handle *h, const struct trace_instance *in)
{
	struct triggers *rest;
	unsigned int nr = 0;

	mutex_assert_held(&trace_mutex);
	if (!triggers)
		return 0;
	rest = copy(triggers, 0);
	if (!rest)
		return ctl_error(h, -ENOMEM, "out of memory");
	for (unsigned int i = 0; i < rest->nr; i++)
		if (rest->t[i].c.in != instance_number(in))
			rest->t[nr++] = rest->t[i];
	rest->nr = nr;
	return install(h, rest);
}

bool triggers_show(struct seq *s, const struct trace_instance *in,
		   unsigned long i)
{
	const struct trigger *t = triggers ? triggers->t : NULL, *end;

	mutex_assert_held(&trace_mutex);
	end = t ? t + triggers->nr : NULL;
	while (t < end && (t->c.in != instance_number(in) || i--))
		t++;
	if (t == end)
		return false;
	seq_printf(s, "%s:", site_function(t->site));
	command_show(s, &t->c);
	seq_printf(s, "\n");
	return true;
}
