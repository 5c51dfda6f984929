/* SPDX-License-Identifier: MIT */
/*
 * Commands of triggers: the actions when a function is called, or when an event happens.
 * COMMAND[:COUNT], where COMMAND is traceon, traceoff, stacktrace, snapshot,
 * enable_event:SYSTEM:EVENT or disable_event:SYSTEM:EVENT. Of functions, dump too.
 */
#ifndef TRACER_COMMAND_H
#define TRACER_COMMAND_H

#include <kernel/ctl/ctl.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/types.h>

struct event;
struct trace_instance;

enum command_kind {
	COMMAND_TRACEON,
	COMMAND_ENABLE_EVENT,
	COMMAND_DISABLE_EVENT,
	/* Those below come after the call or the event that they are for is recorded. */
	COMMAND_STACKTRACE,
	COMMAND_SNAPSHOT,
	COMMAND_TRACEOFF,
	COMMAND_DUMP,
	COMMANDS,
};
#define COMMAND_FIRST_AFTER COMMAND_STACKTRACE
extern const char
	command_names[]; /* those that events have, too, separated by blanks */

/* The turns of a command that has a count. Each list that has the command shares it, so a list that
 * replaces another goes on where that one is. */
struct command_count {
	u32 left;  /* atomic */
	u32 lists; /* that have it, under trace_mutex */
};

struct command {
	u8 kind; /* enum command_kind */
	u8 in;	 /* the number of the instance that it is for */
	bool counted;
	/* The command has nothing to do while a bit of `mask` is set in *state, or while none is: a
	 * command that would change nothing costs no turn, as in Linux. */
	bool idle_if_set;
	u32 mask;
	u32 turns; /* as written */
	const u32 *state;
	struct event *event;	     /* of the two with EVENT, else NULL */
	struct command_count *count; /* NULL: it may act always */
};

/*
 * Commands for which a room above acts: COMMAND_SNAPSHOT and COMMAND_DUMP. Each registers itself.
 *	prepare(h)	gets its memory or task before it acts for the instance of h. 0, or -ENOMEM,
 *			explained in h. Context: a task, trace_mutex held
 *	act(in)		acts. Interrupts off, no site, and a PATCH_INDIRECT(command_act, ...)
 */
struct trace_command {
	enum command_kind kind;
	int (*prepare)(struct ctl_handle *h);
	void (*act)(struct trace_instance *in);
};
#define TRACE_COMMAND(ident, ...)                                              \
	static const struct trace_command trace_command_##ident REGISTER(      \
		trace_commands) = { __VA_ARGS__ }
REGISTRY(struct trace_command, trace_commands);

/*
 * Parse text, which is cut up, for the instance of h. 0. -EINVAL: a command, an event or a count
 * that there is not, explained in h. Where `remove`, a count means nothing, and any is
 * taken. The command has no command_count yet.
 */
int command_parse(struct ctl_handle *h, char *text, bool remove,
		  struct command *c);

/* Give a command that is counted a count of its own, which one list has. 0 or -ENOMEM. Context: a
 * task, trace_mutex held. */
int command_count_make(struct command *c);

/*
 * Another list has the command, or has it no longer. Context: as above. A list is copied at each
 * write, and a function called there would run its own triggers for each of the list's: so these,
 * and command_same(), are inline.
 */
static always_inline void command_share(const struct command *c)
{
	if (c->count)
		c->count->lists++;
}

static always_inline void command_drop(const struct command *c)
{
	if (c->count && !--c->count->lists)
		kfree(c->count);
}

/* Get the resources that commands of a kind need to act for the instance of h: a snapshot's memory,
 * a task that dumps. 0. -ENOMEM, explained in h. Context: a task, trace_mutex held. */
int command_prepare(struct ctl_handle *h, unsigned int kind);

/* Do two commands do the same for the same instance? Their counts may differ. */
static always_inline bool command_same(const struct command *a,
				       const struct command *b)
{
	return a->kind == b->kind && a->in == b->in && a->event == b->event;
}

/* "traceoff:unlimited" or "traceoff:count=2" */
void command_show(struct seq *s, const struct command *c);

/* Of a command that is not idle: act, if it has a turn left. No site. */
void command_act(const struct command *c, unsigned long ip, bool behind,
		 bool irqs_off);

/*
 * Act, if there is anything to do. ip: the address that a stack begins with, or behind
 * which it begins. Interrupts off. irqs_off: they were before. No site.
 */
static always_inline void command_do(const struct command *c, unsigned long ip,
				     bool behind, bool irqs_off)
{
	if (!(READ_ONCE(*c->state) & c->mask) == c->idle_if_set)
		command_act(c, ip, behind, irqs_off);
}

#endif
