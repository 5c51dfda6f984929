/* SPDX-License-Identifier: MIT */
/*
 * Triggers: actions when a function is called, whichever tracer runs. They are written to
 * set_ftrace_filter as FUNCTION:COMMAND[:COUNT], and taken back with ! before that.
 */
#ifndef TRACER_TRIGGERS_H
#define TRACER_TRIGGERS_H

#include <kernel/ctl/ctl.h>
#include <tracer/core/instances.h>
#include <tracer/core/tracer.h>

struct event;
struct trigger;

/* Is this word of set_ftrace_filter a trigger? */
bool trigger_is_one(const char *word);

/*
 * All triggers of text, which are separated by blanks. text is cut up. 0. -EINVAL: a command, a
 * count or a function that there is not. -ENODEV: nothing to take back. -EBUSY. -ENOMEM, or
 * patch_apply()'s error. After an error nothing has changed. Context: trace_mutex held.
 */
int triggers_write(struct ctl_handle *h, char *text);

/* Take all triggers of an instance back. 0, -ENOMEM or patch_apply()'s error. Context: trace_mutex
 * held. */
int triggers_clear(struct ctl_handle *h, const struct trace_instance *in);

/* Put the line of an instance's next trigger into s. *i: a place in the list, at or behind which it
 * is, then the place behind it. False: there are no more. Context: trace_mutex held. */
bool triggers_show(struct seq *s, const struct trace_instance *in,
		   unsigned long *i);

/* Are there any, and the sites of word w that must be on. Context:
 * trace_mutex held. */
bool triggers_any(void);

/* Does any of them switch event e, and for another instance than the top level? Context:
 * trace_mutex held. */
bool triggers_switch(const struct event *e, const struct trace_instance *in);
bool triggers_switch_apart(void);

/*
 * A call of the site, before it is recorded. Returns the first of its triggers that come after
 * that, or NULL. Interrupts are off from here until triggers_after() has dealt with those. A site
 * that has no trigger costs a look into a table, however many others have.
 */
const struct trigger *triggers_before(unsigned int site);
void triggers_after(const struct trigger *t, bool irqs_off);

#endif
