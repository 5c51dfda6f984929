/* SPDX-License-Identifier: MIT */
/* Triggers: triggers.h. */
#include <tracer/core/triggers.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/image/symbols.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/core/client.h>
#include <tracer/core/command.h>
#include <tracer/base/event.h>
#include <tracer/core/filter.h>
#include <tracer/ops/ops.h>
#include <tracer/sites/sites.h>

struct trigger {
	u32 site;   /* its index */
	u32 offset; /* and where it is, from _text */
	struct command c;
};

/* A list never changes, but for the sites' indices: a write makes another. */
struct triggers {
	unsigned int nr;
	u32 *sites; /* a bitmap */
	u32 *first; /* of each site: the place of its first trigger, if it has one */
	u32 *switches; /* of each event: the instances whose triggers switch it, a bit each */
	bool apart; /* a trigger of another instance than the top level switches an event */
	bool dumps; /* one has the command dump */
	/*
	 * In the order of sites. Of a site, those that act before the call is recorded come first.
	 * t[nr] has no site.
	 */
	struct trigger t[];
};
#define NO_SITE (~0u)

/* NULL: there are none. Written under trace_mutex, read with interrupts off. */
static struct triggers *triggers;

static bool is_after(const struct trigger *t)
{
	return t->c.kind >= COMMAND_FIRST_AFTER;
}

/* ---- When a function is called ---------------------------------------------- */

/*
 * A trigger that changes tracing_on does it by one store, because it cannot wait for the
 * other CPUs. So while there are triggers the rings stay open, and each writer looks at
 * tracing_on first.
 */
const struct trigger *triggers_before(unsigned int site)
{
	const struct triggers *list =
		__atomic_load_n(&triggers, __ATOMIC_ACQUIRE);
	const struct trigger *t;

	if (!list || !site_test(list->sites, site))
		return NULL;
	for (t = &list->t[list->first[site]]; t->site == site; t++) {
		if (is_after(t))
			return t;
		command_do(&t->c, 0, false, true);
	}
	return NULL;
}

void triggers_after(const struct trigger *t, bool irqs_off)
{
	u32 site = t->site;
	unsigned long ip = site_address(site) + arch_site_length;

	for (; t->site == site; t++)
		command_do(&t->c, ip, false, irqs_off);
}

/* ---- Queries ----------------------------------------------------------- */

bool triggers_switch(const struct event *e, const struct trace_instance *in)
{
	mutex_assert_held(&trace_mutex);
	return triggers && triggers->switches[e - __start_events] &
				   (in ? 1u << instance_number(in) : ~0u);
}

bool triggers_switch_apart(void)
{
	mutex_assert_held(&trace_mutex);
	return triggers && triggers->apart;
}

static u32 triggers_need(void)
{
	return (triggers ? NEED_CALLS : 0) |
	       (triggers && triggers->dumps ? NEED_DUMPER : 0);
}

bool triggers_any(void)
{
	mutex_assert_held(&trace_mutex);
	return triggers;
}

static u32 triggers_want(unsigned int w)
{
	return triggers ? triggers->sites[w] : 0;
}

/* ---- Writing --------------------------------------------------------- */

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

static void triggers_drop(struct triggers *list)
{
	if (!list)
		return;
	for (unsigned int i = 0; i < list->nr; i++)
		command_drop(&list->t[i].c);
	kfree(list->sites);
	kfree(list->first);
	kfree(list->switches);
	kfree(list);
}

/* An empty list with room for nr triggers, or NULL. */
static struct triggers *list_new(unsigned int nr)
{
	struct triggers *list =
		kmalloc_zeroed(sizeof(*list) + (nr + 1) * sizeof(list->t[0]));

	if (!list)
		return NULL;
	list->sites = site_bitmap_alloc();
	list->first = kmalloc_zeroed(site_capacity() * sizeof(u32));
	list->switches = kmalloc_zeroed((__stop_events - __start_events + 1) *
					sizeof(u32));
	list->t[0].site = NO_SITE;
	if (list->sites && list->first && list->switches)
		return list;
	triggers_drop(list);
	return NULL;
}

/* Put a trigger in its place among those of its site, which is the last that has any. Inline, as is
 * all code that runs for each trigger of a list: command.h. */
static always_inline void triggers_put(struct triggers *list,
				       const struct trigger *t)
{
	unsigned int i = list->nr++;

	list->t[list->nr].site = NO_SITE;
	for (; i && list->t[i - 1].site == t->site && !is_after(t) &&
	       is_after(&list->t[i - 1]);
	     i--)
		list->t[i] = list->t[i - 1];
	list->t[i] = *t;
}

static int put_new(struct triggers *list, unsigned int site,
		   const struct word *w)
{
	struct trigger t = {
		.site = site,
		.offset = site_address(site) - (unsigned long)_text,
		.c = w->c,
	};
	int err = command_count_make(&t.c);

	if (!err)
		triggers_put(list, &t);
	return err;
}

static always_inline void put_shared(struct triggers *list,
				     const struct trigger *t)
{
	command_share(&t->c);
	triggers_put(list, t);
}

/* Does the word replace the trigger of a site that it names, or take it back? */
static bool word_ends(const struct word *w, const struct trigger *t)
{
	return command_same(&t->c, &w->c) &&
	       (!w->remove || t->c.counted == w->c.counted);
}

/* Make in `new` the list that `old` (NULL: an empty list) becomes after a word that names the sites
 * of a bitmap. *taken: how many triggers of old are not in it. 0 or -ENOMEM. */
static int triggers_merge(struct triggers *new, const struct triggers *old,
			  const struct word *w, const u32 *named,
			  unsigned int *taken)
{
	const struct trigger *t = old ? old->t : NULL;
	int err = 0;

	*taken = 0;
	for (unsigned int site = 0; !err && site < site_count; site++) {
		bool is_named = site_test(named, site);

		for (; t && t->site == site; t++)
			if (is_named && word_ends(w, t))
				++*taken;
			else
				put_shared(new, t);
		if (is_named && !w->remove)
			err = put_new(new, site, w);
	}
	return err;
}

static unsigned int find_named(u32 *named, const char *functions)
{
	unsigned int n = 0;

	for (unsigned int site = 0; site < site_count; site++)
		if (filter_names(functions, site)) {
			named[site / 32] |= 1u << site % 32;
			n++;
		}
	return n;
}

/* *list, which may be replaced, and the kinds of commands that it gets, a bit each. */
struct change {
	struct triggers *list;
	u32 kinds;
};

static int change_named(struct ctl_handle *h, struct change *c,
			const struct word *w, u32 *named)
{
	unsigned int functions = find_named(named, w->functions), taken;
	struct triggers *new;
	int err;

	if (!functions)
		return ctl_error(h, -EINVAL,
				 "'%.64s' matches none of "
				 "available_filter_functions",
				 w->functions);
	new = list_new((c->list ? c->list->nr : 0) +
		       (w->remove ? 0 : functions));
	err = new ? triggers_merge(new, c->list, w, named, &taken) : -ENOMEM;
	if (!err && w->remove && !taken)
		err = ctl_error(h, -ENODEV,
				"%.64s has no such trigger; cat "
				"set_ftrace_filter shows them",
				w->functions);
	if (err) {
		triggers_drop(new);
		return err;
	}
	triggers_drop(c->list);
	c->list = new;
	if (!w->remove)
		c->kinds |= 1u << w->c.kind;
	return 0;
}

/* Change a list by one word. */
static int change_list(struct ctl_handle *h, struct change *c, char *text)
{
	struct word w;
	int err = parse_word(h, text, &w);
	u32 *named = err ? NULL : site_bitmap_alloc();

	if (!err)
		err = named ? change_named(h, c, &w, named) : -ENOMEM;
	kfree(named);
	return err;
}

/* All of a list's that is in no other. A command of an instance. In NULL: of any. */
static struct triggers *copy_but(const struct triggers *old,
				 const struct trace_instance *in)
{
	struct triggers *new = list_new(old ? old->nr : 0);

	for (unsigned int i = 0; new &&old &&i < old->nr; i++)
		if (!in || old->t[i].c.in != instance_number(in))
			put_shared(new, &old->t[i]);
	return new;
}

/* Fill the tables of a list whose triggers are complete. */
static void index_list(struct triggers *list)
{
	memset(list->sites, 0, site_words * sizeof(u32));
	for (unsigned int i = list->nr; i--;) {
		const struct trigger *t = &list->t[i];

		list->first[t->site] = i;
		list->sites[t->site / 32] |= 1u << t->site % 32;
		if (t->c.event)
			list->switches[t->c.event - __start_events] |=
				1u << t->c.in;
		list->apart |= t->c.event && t->c.in;
		list->dumps |= t->c.kind == COMMAND_DUMP;
	}
}

/* A call that comes meanwhile may miss its trigger. */
static void move_sites(void)
{
	mutex_assert_held(&trace_mutex);
	if (!triggers)
		return;
	for (unsigned int i = 0; i < triggers->nr; i++)
		triggers->t[i].site =
			site_find((unsigned long)_text + triggers->t[i].offset);
	index_list(triggers);
}

static int triggers_install(struct ctl_handle *h, struct triggers *new)
{
	struct triggers *old = triggers;
	int err;

	index_list(new);
	if (!new->nr) {
		triggers_drop(new);
		new = NULL;
	}
	__atomic_store_n(&triggers, new, __ATOMIC_RELEASE);
	err = trace_update(h, 0, site_words);
	/* The events that triggers switch have their labels on. */
	if (!err)
		err = clients_settings_changed(h);
	if (err) {
		__atomic_store_n(&triggers, old, __ATOMIC_RELEASE);
		trace_update(h, 0, site_words);
		clients_settings_changed(h);
	}
	trace_refresh(); /* after this no CPU reads the old list */
	triggers_drop(err ? new : old);
	return err;
}

int triggers_write(struct ctl_handle *h, char *text)
{
	struct change c = { 0 };
	char *word;
	int err = 0;

	mutex_assert_held(&trace_mutex);
	if (trace_ops_refuse(h))
		return -EBUSY;
	c.list = copy_but(triggers, NULL);
	if (!c.list)
		return ctl_error(h, -ENOMEM, "out of memory");
	while (!err && (word = ctl_word(&text)))
		err = change_list(h, &c, word);
	if (err == -ENOMEM)
		ctl_error(h, err, "out of memory");
	for (unsigned int kind = 0; !err && !h->dry && c.kinds >> kind; kind++)
		if (c.kinds >> kind & 1)
			err = command_prepare(h, kind);
	if (!err && !h->dry)
		return triggers_install(h, c.list);
	triggers_drop(c.list);
	return err;
}

int triggers_clear(struct ctl_handle *h, const struct trace_instance *in)
{
	struct triggers *rest;

	mutex_assert_held(&trace_mutex);
	if (!triggers)
		return 0;
	rest = copy_but(triggers, in);
	return rest ? triggers_install(h, rest) :
		      ctl_error(h, -ENOMEM, "out of memory");
}

bool triggers_show(struct seq *s, const struct trace_instance *in,
		   unsigned long *i)
{
	const struct trigger *t;

	mutex_assert_held(&trace_mutex);
	while (triggers && *i < triggers->nr) {
		t = &triggers->t[(*i)++];
		if (t->c.in != instance_number(in))
			continue;
		seq_printf(s, "%s:", site_function(t->site));
		command_show(s, &t->c);
		seq_printf(s, "\n");
		return true;
	}
	return false;
}

TRACE_CLIENT(triggers, .needs = triggers_need, .wants = triggers_want,
	     .instance_leaves = triggers_clear, .sites_moved = move_sites);
