/* SPDX-License-Identifier: MIT */
/* Which calls function_graph records: set_graph_function and the files beside it. */
#ifndef TRACER_GRAPH_H
#define TRACER_GRAPH_H

#include <kernel/types.h>

/* Written under trace_mutex. A writer of one of them, or of a filter, calls
 * graph_limits_changed(). */
struct graph_limits {
	bool any;	    /* one of them is set */
	unsigned int depth; /* levels that are recorded. 0: all */
	u64 thresh_us;	    /* tracing_thresh, and in arch_clock()'s ticks: */
	u64 thresh;	    /* only returns from calls that took as long */
};
extern struct graph_limits graph_limits;
void graph_limits_changed(void);

/*
 * A session begins, or ends: depths, and what a task is inside of, count within one alone. No ops
 * may take calls for the session before it has begun, and all CPUs have answered an interrupt
 * since the one before has ended. Context: trace_mutex held.
 */
struct task;
void graph_session_begin(void);
void graph_session_end(void);
/* Does one run? Then the running task t takes part: it forgets what it has from an earlier one.
 * Interrupts off. No site. */
bool graph_session_runs(struct task *t);

/* What function_graph does at a call, and at its return (core/returns.h). Interrupts are off
 * for the first. irqs_off says whether they were off at the call. */
struct task_return;
bool graph_record(struct task_return *r, bool irqs_off);
bool graph_enter(struct task_return *r, unsigned int depth);
void graph_leave(struct task_return *r, unsigned int depth);

/*
 * The CPU changes over from one task to another: while option sleep-time is 0, the time that a
 * task was away is left out of its calls. Interrupts off.
 */
void graph_switched(struct task *prev, struct task *next);

#endif
