/* SPDX-License-Identifier: MIT */
/* Commands of triggers: command.h. */
#include <tracer/core/command.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/base/event.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/ring/ring_more.h>
#include <tracer/core/tracer.h>

const char command_names[] =
	"traceon traceoff stacktrace snapshot enable_event:SYSTEM:EVENT "
	"disable_event:SYSTEM:EVENT";

static const char *const names[COMMANDS] = {
	[COMMAND_TRACEON] = "traceon",
	[COMMAND_TRACEOFF] = "traceoff",
	[COMMAND_STACKTRACE] = "stacktrace",
	[COMMAND_SNAPSHOT] = "snapshot",
	[COMMAND_ENABLE_EVENT] = "enable_event",
	[COMMAND_DISABLE_EVENT] = "disable_event",
	[COMMAND_DUMP] = "dump",
};

/* The part of *text up to the next colon, or all of it. *text goes behind that. NULL: there is
 * none. */
static char *next_part(char **text)
{
	char *part = *text, *colon = part ? strchr(part, ':') : NULL;

	if (colon)
		*colon++ = '\0';
	*text = colon;
	return part;
}

static int parse_event(struct ctl_handle *h, char **text, struct command *c)
{
	char *system = next_part(text), *name = next_part(text);
	struct event *e;

	for_each_event (e)
		if (name && !strcmp(e->system, system) &&
		    !strcmp(e->name, name))
			c->event = e;
	if (!c->event)
		return ctl_error(h, -EINVAL,
				 "%s:%.24s:%.24s: no such event; "
				 "available_events lists them",
				 names[c->kind], system ?: "", name ?: "");
	return 0;
}

/* Find the state that decides whether the command has anything to do. The dump looks at the switch
 * of the recording, which it turns off, so it acts once. */
static void find_state(struct command *c)
{
	static const u32 none;

	c->state = &none;
	c->idle_if_set = true;
	if (c->event) {
		c->state = &c->event->on;
		c->mask = 1u << c->in;
		c->idle_if_set = c->kind == COMMAND_ENABLE_EVENT;
	} else if (c->kind != COMMAND_STACKTRACE &&
		   c->kind != COMMAND_SNAPSHOT) {
		c->state = &trace_instances[c->in].on;
		c->mask = 1;
		c->idle_if_set = c->kind == COMMAND_TRACEON;
	}
}

int command_parse(struct ctl_handle *h, char *text, bool remove,
		  struct command *c)
{
	char *name = next_part(&text), *count;
	u64 turns = 0;
	int err;

	*c = (struct command){ .in = h->folder };
	while (c->kind < COMMANDS && strcmp(names[c->kind], name))
		c->kind++;
	if (c->kind == COMMANDS)
		return ctl_error(h, -EINVAL,
				 "'%.32s' is no command; accepted: %s; of "
				 "functions: dump",
				 name, command_names);
	if (c->kind == COMMAND_ENABLE_EVENT ||
	    c->kind == COMMAND_DISABLE_EVENT) {
		err = parse_event(h, &text, c);
		if (err)
			return err;
	}
	count = next_part(&text);
	c->counted = count;
	/* A word that takes a trigger back may have the count that files show, or any other. */
	if (text || (count && !remove &&
		     (parse_u64(count, &turns) || turns >> 31 || !turns)))
		return ctl_error(h, -EINVAL,
				 "'%.32s' is no count of at least 1", count);
	c->turns = turns;
	find_state(c);
	return 0;
}

int command_count_make(struct command *c)
{
	mutex_assert_held(&trace_mutex);
	c->count = c->counted ? kmalloc(sizeof(*c->count)) : NULL;
	if (c->count)
		*c->count = (struct command_count){ c->turns, 1 };
	return c->counted && !c->count ? -ENOMEM : 0;
}

/* The room that acts for commands of a kind, or NULL: this file does. */
static const struct trace_command *find_actor(unsigned int kind)
{
	const struct trace_command *c;

	for_each_registered (c, trace_commands)
		if (c->kind == kind)
			return c;
	return NULL;
}

int command_prepare(struct ctl_handle *h, unsigned int kind)
{
	const struct trace_command *c = find_actor(kind);

	mutex_assert_held(&trace_mutex);
	return c ? c->prepare(h) : 0;
}

void command_show(struct seq *s, const struct command *c)
{
	seq_printf(s, "%s:", names[c->kind]);
	if (c->event)
		seq_printf(s, "%s:%s:", c->event->system, c->event->name);
	if (c->count)
		seq_printf(s, "count=%u", READ_ONCE(c->count->left));
	else
		seq_printf(s, "unlimited");
}

/* One of its turns, if it has any left. */
static bool take_command_turn(const struct command *c)
{
	u32 left = c->count ? READ_ONCE(c->count->left) : 0;

	while (left)
		if (__atomic_compare_exchange_n(
			    &c->count->left, &left, left - 1, false,
			    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	return !c->count;
}

void command_act(const struct command *c, unsigned long ip, bool behind,
		 bool irqs_off)
{
	struct trace_instance *in = &trace_instances[c->in];

	if (!take_command_turn(c))
		return;
	switch (c->kind) {
	case COMMAND_TRACEON:
	case COMMAND_TRACEOFF:
		WRITE_ONCE(in->on, c->kind == COMMAND_TRACEON);
		break;
	case COMMAND_ENABLE_EVENT:
		__atomic_fetch_or(&c->event->on, 1u << c->in, __ATOMIC_RELAXED);
		break;
	case COMMAND_DISABLE_EVENT:
		__atomic_fetch_and(&c->event->on, ~(1u << c->in),
				   __ATOMIC_RELAXED);
		break;
	case COMMAND_STACKTRACE:
		ring_stack(in, ip, behind, irqs_off);
		break;
	default:
		find_actor(c->kind)->act(in);
	}
}
