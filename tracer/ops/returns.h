/* SPDX-License-Identifier: MIT */
/*
 * Function returns: ops whose entry is trace_entry_return take a function's return address when it
 * is called, have it return to trace_return, and hear of it then. A taken address is kept on the
 * task, so that a task may be switched away, held or moved at any point, and so that returns find
 * their way long after the tracer that took them has been switched off.
 *
 *	enter(r, depth)	may fill in r->clock. False: let this one be. depth: how
 *			many the task has taken already.
 *	leave(r, depth)	the function has returned, with the same r and depth.
 *
 * Both are called in any context, an NMI's included. No function that they call has a site: it
 * would call them again, for ever.
 */
#ifndef TRACER_RETURNS_H
#define TRACER_RETURNS_H

#include <arch/arch_trace.h>
#include <kernel/image/symbols.h>
#include <kernel/sched/task.h>

/*
 * Calls that were let be since boot because the task had TASK_RETURNS already, or because the value
 * in the place of a return address was none.
 */
extern u32 returns_lost, returns_refused;

/*
 * Is it a return address? In a nested function GCC for x86-64 pushes the static chain
 * before the site: then there is something else in its place.
 */
static always_inline bool returns_plausible(unsigned long a)
{
	return a >= (unsigned long)_text && a < (unsigned long)_etext;
}

/* r->clock of a call that is taken only to know its end. */
#define RETURN_HIDDEN (~0ull)

/*
 * Leave `ticks` of arch_clock() out of the time of the task's `nr` outermost calls, those that
 * began at `since` or later. Interrupts off. The task is the current one, or none runs it.
 */
void returns_leave_out(struct task *t, u32 nr, u64 ticks, u64 since);

/*
 * A session begins, or ends: depths, and calls that tasks are inside of, count in one alone. No ops
 * may take calls for the session before it has begun, and all CPUs have answered an interrupt
 * since the one before has ended. Context: trace_mutex held.
 */
void graph_session_begin(void);
void graph_session_end(void);
/* Does one run? Then the running task t takes part: it forgets its counts from an earlier one.
 * Interrupts off. No site. */
bool graph_session_runs(struct task *t);

/* arch_clock() when the session began, which is written while none runs. */
extern u64 graph_session_began;

#endif
