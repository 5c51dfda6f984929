/* SPDX-License-Identifier: MIT */
/* The trace on the console, for the command `dump` of a function's trigger. */
#ifndef TRACER_OUTPUT_DUMP_H
#define TRACER_OUTPUT_DUMP_H

struct trace_instance;

/* Make the task that dumps, unless there is one. It ends when no trigger has that command. 0 or
 * -ENOMEM. Context: a task, trace_mutex held. */
int dump_prepare(void);

/* Have the task put the instance's trace on the console, the oldest entry first. Its owner has
 * ended the recording. Any context. No site. */
void dump_ask(const struct trace_instance *in);

#endif
