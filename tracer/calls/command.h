/*
 * Commands of triggers: what is done when a function is called, or when an event happens.
 * COMMAND[:COUNT], where COMMAND is traceon, traceoff, stacktrace, snapshot,
 * enable_event:SYSTEM:EVENT or disable_event:SYSTEM:EVENT; of functions, dump too.
 */
#ifndef TRACER_COMMAND_H
#define TRACER_COMMAND_H

#include <kernel/ctl/ctl.h>
#include <kernel/types.h>

struct event;

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
	command_names[]; /* those that events have, too; separated by blanks */

struct command {
	u8 kind; /* enum command_kind */
	u8 in;	 /* the number of the instance that it is for */
	bool counted;
	u32 left;	     /* atomic: how often it may still act */
	struct event *event; /* of the two with EVENT, else NULL */
};

/*
 * Parse text, which is cut up, for the instance of h. 0; -EINVAL: a command, an event or a count
 * that there is not, explained in h. Where `remove`, a count means nothing, and any is
 * taken.
 */
int command_parse(struct ctl_handle *h, char *text, bool remove,
		  struct command *c);

/* Get what the command needs before it can act: a snapshot's memory, a task that dumps. 0;
 * -ENOMEM, explained in h. Context: a task, trace_mutex held. */
int command_prepare(struct ctl_handle *h, const struct command *c);

/* Do two commands do the same for the same instance, whatever their counts? */
bool command_same(const struct command *a, const struct command *b);

/* "traceoff:unlimited" or "traceoff:count=2" */
void command_show(struct seq *s, const struct command *c);

/*
 * Act, if the command has a turn left. ip: the address that a stack begins with, or behind
 * which it begins. Interrupts off; irqs_off: they were before. No site.
 */
void command_do(struct command *c, unsigned long ip, bool behind,
		bool irqs_off);

#endif
