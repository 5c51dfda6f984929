/* Commands of triggers: command.h. */
#include <tracer/calls/command.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <tracer/events/events.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/ring/ring_more.h>
#include <tracer/output/dump.h>
#include <tracer/output/snapshot.h>
#include <tracer/tracer.h>

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

/* The part of *text up to the next colon, or all of it; *text goes behind that. NULL: there is
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
	/* What takes a trigger back may have its count as files show it, or any other. */
	if (text || (count && !remove &&
		     (parse_u64(count, &turns) || turns >> 31 || !turns)))
		return ctl_error(h, -EINVAL,
				 "'%.32s' is no count of at least 1", count);
	c->left = turns;
	return 0;
}

int command_prepare(struct ctl_handle *h, const struct command *c)
{
	if (c->kind == COMMAND_SNAPSHOT)
		return snapshot_make(h, &trace_instances[c->in]);
	if (c->kind == COMMAND_DUMP && dump_prepare())
		return ctl_error(h, -ENOMEM, "out of memory");
	return 0;
}

bool command_same(const struct command *a, const struct command *b)
{
	return a->kind == b->kind && a->in == b->in && a->event == b->event;
}

void command_show(struct seq *s, const struct command *c)
{
	seq_printf(s, "%s:", names[c->kind]);
	if (c->event)
		seq_printf(s, "%s:%s:", c->event->system, c->event->name);
	if (c->counted)
		seq_printf(s, "count=%u", READ_ONCE(c->left));
	else
		seq_printf(s, "unlimited");
}

/* As in Linux, what is as the command would make it costs no turn. */
static bool has_effect(const struct command *c, const struct trace_instance *in)
{
	bool on = c->event ? event_is_on(c->event, in) : READ_ONCE(in->on);

	switch (c->kind) {
	case COMMAND_TRACEON:
	case COMMAND_ENABLE_EVENT:
		return !on;
	case COMMAND_TRACEOFF:
	case COMMAND_DISABLE_EVENT:
	case COMMAND_DUMP: /* it ends the recording, so once is enough */
		return on;
	default:
		return true;
	}
}

/* One of its turns, if it has any left. */
static bool take_turn(struct command *c)
{
	u32 left = READ_ONCE(c->left);

	while (c->counted && left)
		if (__atomic_compare_exchange_n(&c->left, &left, left - 1,
						false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return true;
	return !c->counted;
}

void command_do(struct command *c, unsigned long ip, bool behind, bool irqs_off)
{
	struct trace_instance *in = &trace_instances[c->in];

	if (!has_effect(c, in) || !take_turn(c))
		return;
	switch (c->kind) {
	case COMMAND_TRACEON:
	case COMMAND_TRACEOFF:
		WRITE_ONCE(in->on, c->kind == COMMAND_TRACEON);
		break;
	case COMMAND_DUMP:
		WRITE_ONCE(in->on, false);
		dump_ask(in);
		break;
	case COMMAND_ENABLE_EVENT:
		__atomic_fetch_or(&c->event->on, 1u << c->in, __ATOMIC_RELAXED);
		break;
	case COMMAND_DISABLE_EVENT:
		__atomic_fetch_and(&c->event->on, ~(1u << c->in),
				   __ATOMIC_RELAXED);
		break;
	case COMMAND_SNAPSHOT:
		/* A latency tracer has its longest latency there. */
		if (!READ_ONCE(in->tracer)->latency)
			snapshot_trigger(in, ~0u);
		break;
	default:
		ring_stack(in, ip, behind, irqs_off);
	}
}
