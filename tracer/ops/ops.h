/* SPDX-License-Identifier: MIT */
/*
 * trace_ops (arch/arch_trace.h), by which live calls do their work, and its one owner. The tracer
 * that is selected uses it. Tests, the lab and measurements borrow it meanwhile, and give it back.
 * Nothing else stores to trace_ops.
 */
#ifndef TRACER_OPS_H
#define TRACER_OPS_H

#include <arch/arch_trace.h>
#include <kernel/sched/task.h>

/* The ops of live calls when nothing is recorded: return at once. */
extern struct trace_ops trace_ops_off;

/*
 * For the selected tracer: make live calls do this from now on. Nothing changes
 * while the pointer is borrowed. ops must live for ever. Context: trace_mutex held.
 */
void trace_ops_set(struct trace_ops *ops);

/*
 * Borrow the pointer: live calls do `ops` from now on. 0. -EBUSY: a tracer records
 * with it. A borrower may call it again, with other ops. While it is borrowed, no
 * tracer that needs it can be selected. Context: trace_mutex held.
 */
int trace_ops_borrow(struct trace_ops *ops);

/* Is the pointer borrowed? Context: trace_mutex held. */
bool trace_ops_borrowed(void);
struct ctl_handle;
/* -EBUSY with its explanation while they are borrowed, else 0. Context: trace_mutex held. */
int trace_ops_refuse(struct ctl_handle *h);

/*
 * Give it back: live calls do nothing. Tasks may still stand in a trampoline with the borrowed ops:
 * before the borrower frees them, or data that they point to, it calls trace_quiesce(). Context:
 * trace_mutex held.
 */
void trace_ops_give_back(void);

/*
 * Wait until every task has been seen outside all trampolines, and without a taken
 * return that `ops` has yet to hear of. A task that is preempted inside a trampoline
 * has loaded the pointer and will call through it when it goes on, however much
 * later (H16, H26). So ops may be freed only after trace_ops points elsewhere and
 * this has returned. A task that is held or blocked in such a place is waited for
 * without limit. A task that has ended is outside, and so is a CPU that is not online.
 * The caller itself must not have a return taken by ops.
 * Context: a task that may sleep, interrupts on.
 */
void trace_quiesce(const struct trace_ops *ops);

/* A task that was seen inside, and waited for in vain. */
struct trace_left {
	int pid;
	char name[TASK_NAME_LEN];
};

/*
 * Wait likewise, until every task has been seen with no pc of its stack inside(). 0. -EBUSY: ns
 * have passed, and *left is a task inside. inside() runs with interrupts off, so it is short.
 */
int trace_quiesce_code(bool (*inside)(unsigned long pc), u64 ns,
		       struct trace_left *left);

#endif
