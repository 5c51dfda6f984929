/* SPDX-License-Identifier: MIT */
/*
 * The events' functions, tables and keys, all of them made from kernel/event/list.h, and switching
 * them. The functions run where the event happens, in any context. Two of them run on the patching
 * path (patch_sync, patch_trap). Each function that any of them calls is kept off: its call would
 * be recorded in the place that the event has reserved.
 */
#include <tracer/events/events.h>
#include <tracer/core/triggers.h>
#include <tracer/events/event_filter.h>
#include <tracer/events/event_trigger.h>

#include <kernel/panic.h>
#include <kernel/patch_path.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/event/event.h>
#include <kernel/init.h>
#include <kernel/lib/glob.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <tracer/core/client.h>
#include <tracer/core/options.h>
#include <tracer/core/pids.h>
#include <tracer/ring/ring_event.h>
#include <tracer/show/lines.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/ring/ring_more.h>
#include <tracer/patch/keys.h>
#include <tracer/core/tracer.h>

/* ---- Filling records ------------------------------------------------------------ */

/* The values that stand behind a record's fields, in the ring. */
struct event_more {
	char *bytes;
	u32 used; /* a multiple of 4 */
};
#define MORE_MAX (2 * EVENT_NAME)
static_assert(MORE_MAX <= EVENT_WORD_MAX, "what filters look at");

/* Add n bytes. Returns the value of the field that leads to them. */
static always_inline u32 more_add(struct event_more *d, size_t fields, size_t n)
{
	u32 at = EVENT_COMMON + fields + d->used;

	d->used += ALIGN_UP(n, 4ul);
	return n << 16 | at;
}

/* Copied by hand: a call costs more. */
static inline u32 event_string(struct event_more *d, size_t fields,
			       const char *text)
{
	char *to = d->bytes + d->used;
	size_t n = 0;

	while (n < EVENT_NAME - 1 && text[n]) {
		to[n] = text[n];
		n++;
	}
	to[n] = '\0';
	return more_add(d, fields, n + 1);
}

static inline u32 event_cpus(struct event_more *d, size_t fields,
			     cpumask_t cpus)
{
	*(unsigned long *)(d->bytes + d->used) = cpus;
	return more_add(d, fields, sizeof(unsigned long));
}

/* By words: GCC would copy bytes. `to` is aligned to 8 where the record is so long. */
static always_inline void event_comm(char *to, const struct task *t)
{
	static_assert(TASK_NAME_LEN == EVENT_NAME, "a COMM is a task's name");
	static_assert(offsetof(struct task, name) % 8 == 0, "its alignment");
	__builtin_memcpy(__builtin_assume_aligned(to, 4),
			 __builtin_assume_aligned(t->name, 8), EVENT_NAME);
}

static always_inline const char *event_name(const struct task *t)
{
	return t->name;
}

/* Linux's number of the state that a task is left in. */
static inline long event_task_state(const struct task *t)
{
	static const u8 states[] = {
		[TASK_BLOCKED] = 1,
		[TASK_HELD] = 4,
		[TASK_DEAD] = 0x10,
	};

	if (t->state == TASK_READY)
		return t->preempted << 8;
	return states[t->state];
}

/* Of arch_clock(), in microseconds since boot. */
static inline unsigned long event_time(u64 clock)
{
	return clock_to_ns(clock) / NSEC_PER_USEC;
}

/* ---- The functions ------------------------------------------------------------------ */

/* As in Linux, a switch and a wake-up are events of both tasks. */
static bool is_of_listed_task(const struct event *e,
			      const struct trace_instance *in,
			      const void *record)
{
	return pid_has_events(in, arch_current()->pid) ||
	       (e->other &&
		pid_has_events(in, event_number(e->fields, e->other, record)));
}

/* Let an instance have the record, if it records, and its filter and lists of pids let it. Was
 * it let? */
static bool put_record(const struct event *e, unsigned int nr, unsigned int i,
		       bool irqs_off, const void *record, u32 size)
{
	const struct event_filter *filter = READ_ONCE(e->filters[i]);
	const struct trace_instance *in = &trace_instances[i];

	if (!READ_ONCE(in->on) || !is_of_listed_task(e, in, record) ||
	    (filter && !event_filter_matches(filter, e, record, irqs_off)))
		return false;
	if (i || ring_is_apart(record))
		ring_put_event(&in->buffer[cpu_index()], EVENT_FIRST_ID + nr,
			       irqs_off, record, size);
	else
		ring_event_publish(irqs_off, EVENT_FIRST_ID + nr, size);
	return true;
}

/*
 * There is a filter, or a list of pids, or a trigger, or option stacktrace, or the event is off
 * until a trigger switches it on, or another instance than the top level records it. Interrupts are
 * off, so all of them stay: event_set_filter(), event_triggers_install(), events_switch().
 */
static noinline void event_special(const struct event *e, unsigned int nr,
				   bool irqs_off, const void *record, u32 size)
{
	/* In the event's own function, whose caller is the first of a stack. */
	unsigned long ip = (unsigned long)__builtin_return_address(0);
	u32 on;

	event_triggers_before(e, record, irqs_off);
	on = READ_ONCE(e->on);
	for (unsigned int i = 0; on >> i; i++)
		if (on >> i & 1 &&
		    put_record(e, nr, i, irqs_off, record, size) &&
		    instance_option(&trace_instances[i], OPT_STACKTRACE))
			ring_stack(&trace_instances[i], ip, true, irqs_off);
	event_triggers_after(e, record, ip, irqs_off);
	ring_event_drop(irqs_off);
}

/* event_special() takes its return address for one in the event's function. */
#define NO_TAIL_CALL asm volatile("")

#define MEMBER(kind, field) EVENT_MEMBER_##kind(field)
#define ENTRY(k, field) { .name = #field, .kind = EVENT_##k },

/* Of each event: its number, its record, its tables, its key, and its function. That one is
 * notrace, so that a recorded event does not run a NOP more. */
enum { FIRST_COUNTED = __COUNTER__ + 1 };
#define EVENT(sys, ident, params, args, fill, template)                        \
	enum { EVENT_NR_##ident = __COUNTER__ - FIRST_COUNTED };               \
	struct record_##ident {                                                \
		FIELDS_##ident(MEMBER)                                         \
	};                                                                     \
	static_assert(sizeof(struct record_##ident) % 4 == 0 &&                \
			      sizeof(struct record_##ident) + MORE_MAX <=      \
				      EVENT_MAX,                               \
		      "a record's size");                                      \
	static const struct event_field fields_##ident[] = { FIELDS_##ident(   \
		ENTRY){ 0 } };                                                 \
	STATIC_KEY(event_##ident);                                             \
	static struct event the_##ident REGISTER(events) = {                   \
		.system = #sys,                                                \
		.name = #ident,                                                \
		.path = #sys "/" #ident,                                       \
		.fields = fields_##ident,                                      \
		.text = template,                                              \
		.key = &key_event_##ident,                                     \
	};                                                                     \
	notrace void event_##ident params                                      \
	{                                                                      \
		bool irqs_off, recorded;                                       \
		struct record_##ident *e = ring_event_begin(                   \
			&irqs_off, sizeof(*e) + MORE_MAX, &recorded);          \
		struct event_more more = { (char *)(e + 1), 0 }, *d = &more;   \
                                                                               \
		if (!recorded)                                                 \
			return;                                                \
		fill;                                                          \
		if (__builtin_expect(__atomic_load_n(&the_##ident.special,     \
						     __ATOMIC_RELAXED),        \
				     0)) {                                     \
			event_special(&the_##ident, EVENT_NR_##ident,          \
				      irqs_off, e, sizeof(*e) + d->used);      \
			NO_TAIL_CALL;                                          \
		} else {                                                       \
			ring_event_end(irqs_off,                               \
				       EVENT_FIRST_ID + EVENT_NR_##ident,      \
				       sizeof(*e) + d->used);                  \
		}                                                              \
	}                                                                      \
	PATCH_ROOT(event_##ident);
#include <kernel/event/list.h>
#undef EVENT

/* ---- Switching ---------------------------------------------------------------------- */

const struct event *event_by_id(unsigned int id)
{
	const struct event *e = __start_events + (id - EVENT_FIRST_ID);

	return id >= EVENT_FIRST_ID && e < __stop_events ? e : NULL;
}

bool events_are_on(void)
{
	struct event *e;

	for_each_event (e)
		if (e->key->on)
			return true;
	return false;
}

static int apply_keys(struct ctl_handle *h)
{
	struct patch_batch b;
	int err = static_keys_apply(&b);

	return err ? trace_patch_error(h, &b, err) : 0;
}

struct event_set events_off(void)
{
	struct event_set set = EVENTS_UNTOUCHED;
	struct event *e;

	for_each_event (e)
		event_set_bit(&set, e, false);
	return set;
}

void event_set_bit(struct event_set *set, const struct event *e, bool on)
{
	unsigned int i = e - __start_events;
	u32 bit = 1u << i % 32;

	BUG_ON(i / 32 >= ARRAY_SIZE(set->bits));
	set->touched[i / 32] |= bit;
	set->bits[i / 32] =
		on ? set->bits[i / 32] | bit : set->bits[i / 32] & ~bit;
}

/* Does anything but the event's own switch need its jump label? */
bool event_is_held(const struct event *e, const struct trace_instance *in)
{
	return event_triggers_of(e, in) || triggers_switch(e, in) ||
	       event_triggers_switch(e, in);
}

static bool stacks_are_wanted(void)
{
	for (unsigned int i = 0; i < INSTANCES; i++)
		if (instance_option(&trace_instances[i], OPT_STACKTRACE))
			return true;
	return false;
}

bool events_apart(void)
{
	struct event *e;

	mutex_assert_held(&trace_mutex);
	for_each_event (e)
		if (READ_ONCE(e->on) & ~1u)
			return true;
	return event_triggers_apart() || triggers_switch_apart();
}

/*
 * All events are special while any has a trigger, since that may switch tracing_on, and while
 * another instance than the top level records any, or has a trigger that needs its record, since
 * records do not begin in the ring then.
 */
static void set_special(struct event *e)
{
	WRITE_ONCE(e->special,
		   !(READ_ONCE(e->on) & 1) || e->filters[0] ||
			   event_is_held(e, NULL) || stacks_are_wanted() ||
			   event_triggers_any() || events_apart() ||
			   ring_mode & (RING_TRIGGERS | RING_APART) ||
			   instance_counts(&trace_top) ||
			   event_pids_are_listed(&trace_top));
}

/* Those of the set that change, which has the bits that they had then. */
static void set_event_keys(const struct trace_instance *in,
			   struct event_set *set)
{
	u32 mine = 1u << instance_number(in), before;
	struct event *e;

	for_each_event (e) {
		unsigned int i = e - __start_events;
		u32 bit = 1u << i % 32;

		if (!(set->touched[i / 32] & bit))
			continue;
		if (set->bits[i / 32] & bit)
			before = __atomic_fetch_or(&e->on, mine,
						   __ATOMIC_RELAXED);
		else
			before = __atomic_fetch_and(&e->on, ~mine,
						    __ATOMIC_RELAXED);
		event_set_bit(set, e, before & mine);
	}
	/* Before the label is on, and after it is off. */
	for_each_event (e) {
		set_special(e);
		e->key->on = READ_ONCE(e->on) || event_is_held(e, NULL);
	}
}

int events_switch(struct ctl_handle *h, const struct trace_instance *in,
		  const struct event_set *set)
{
	struct event_set change = *set;
	struct event *e;
	int err;

	mutex_assert_held(&trace_mutex);
	set_event_keys(in, &change);
	/* The scheduler's hook is there before the first event, until after the last. */
	if (events_are_on())
		trace_needs_changed();
	err = apply_keys(h);
	if (err)
		set_event_keys(in, &change);
	trace_needs_changed();
	for_each_event (e)
		set_special(e);
	return err;
}

/* Options, triggers and lists of pids say which events are held or looked at. */
static int events_update(struct ctl_handle *h)
{
	return events_switch(h, &trace_top, &EVENTS_UNTOUCHED);
}

void event_set_filter(struct event *e, const struct trace_instance *in,
		      struct event_filter *f)
{
	struct event_filter **filter = &e->filters[instance_number(in)];
	struct event_filter *old = *filter;

	mutex_assert_held(&trace_mutex);
	/* Release: its contents first. */
	__atomic_store_n(filter, f, __ATOMIC_RELEASE);
	set_special(e);
	if (!old)
		return;
	trace_refresh(); /* after this no CPU looks at the old one */
	event_filter_free(old);
}

/* All events of an instance off, without filters and triggers. */
static int events_reset(struct ctl_handle *h, const struct trace_instance *in)
{
	struct event_set none = events_off();
	struct event *e;
	int err = 0;

	/* Triggers first, because they switch events. */
	err = event_triggers_clear(h, &event_marker, in);
	for_each_event (e)
		if (!err)
			err = event_triggers_clear(h, e, in);
	if (!err)
		err = events_switch(h, in, &none);
	for_each_event (e)
		if (!err)
			event_set_filter(e, in, NULL);
	return err;
}

/* "sched:sched_*": the patterns of a system and a name. NULL: anything. */
struct choice {
	const char *system, *name, *either;
};

static bool is_chosen(const struct event *e, const struct choice *c)
{
	if (c->either)
		return glob_match(c->either, e->system) ||
		       glob_match(c->either, e->name);
	return (!c->system || glob_match(c->system, e->system)) &&
	       (!c->name || glob_match(c->name, e->name));
}

int event_set_change(struct ctl_handle *h, struct event_set *set,
		     const char *word)
{
	char text[64], *colon;
	struct choice c = { 0 };
	struct event *e;
	bool on = *word != '!', some = false;

	if (string_copy(text, word + !on, sizeof(text)) >= sizeof(text))
		return ctl_error(h, -EINVAL, "'%.32s...' is no event", word);
	colon = strchr(text, ':');
	if (!colon) {
		c.either = text;
	} else {
		*colon++ = '\0';
		c.system = text[0] ? text : NULL;
		c.name = colon[0] ? colon : NULL;
	}
	for_each_event (e)
		if (is_chosen(e, &c)) {
			event_set_bit(set, e, on);
			some = true;
		}
	if (!some)
		return ctl_error(h, -EINVAL,
				 "no event '%.40s'; available_events lists "
				 "them, as SYSTEM:NAME",
				 word);
	return 0;
}

static void find_others(void)
{
	struct event *e;

	for_each_event (e) {
		if (!strcmp(e->name, "sched_switch"))
			e->other = event_field_find(e->fields, "next_pid", 8);
		if (!strcmp(e->name, "sched_wakeup"))
			e->other = event_field_find(e->fields, "pid", 3);
	}
}
INIT_HOOK(INIT_TASK, find_others);

static bool show_event(struct seq *s, const struct ring_entry *e)
{
	const struct event *event = event_by_id(e->event);

	if (!event)
		return false;
	seq_printf(s, "%s: ", event->name);
	event_show(s, event->fields, event->text, e->record);
	return true;
}
TRACE_LINES(events, .event = show_event);

static int restart_events(struct ctl_handle *h, const struct trace_instance *in,
			  bool reset)
{
	(void)reset;
	return events_reset(h, in);
}

static u32 events_need(void)
{
	return (events_are_on() ? NEED_TASKS : 0) |
	       (events_apart() ? NEED_APART : 0);
}
TRACE_CLIENT(events, .needs = events_need, .settings_changed = events_update,
	     .instance_restarts = restart_events,
	     .instance_ends = events_reset);
