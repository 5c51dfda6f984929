/* SPDX-License-Identifier: MIT */
/*
 * The calls of a call graph, task by task. A return belongs to the call at which it says that its
 * function began, as in the guest's text: calls before it may have lost theirs.
 */
#ifndef EXTRACT_CALLS_H
#define EXTRACT_CALLS_H

#include "trace.h"

#define GRAPH_DEPTHS 256

struct call {
	u64 ip, clock;	/* clock: of its entry. 0: the entry was lost */
	u64 start, end; /* ns */
	u64 time; /* ns that the guest's text shows: option sleep-time 0 leaves some out */
	u64 order; /* of calls that began at the same time */
	u32 depth;
	bool returned;
	bool lost; /* it has returned, but its return was lost */
};

struct task {
	s32 pid; /* idle tasks share pid 0: those of each CPU have a number below */
	struct call *calls;
	size_t nr_calls;
	u32 depth; /* open calls, those included whose entry was lost */
	size_t open[GRAPH_DEPTHS]; /* the number of each in calls, from 1 on. 0: not known */
};

/* All tasks that task_of() was asked for. */
extern struct task **tasks;
extern size_t nr_tasks;

/* The task of an entry. */
struct task *task_of(const struct ring_entry *e);
/* Its name, as it stands in files. */
const char *task_name(const struct task *task);

/* Nanoseconds that the call took whose RING_GRAPH_RETURN is given. */
u64 call_time(const struct ring_entry *e);
/* Note a call or a return of the call graph. Returns the call, good until the task's next one. */
struct call *task_call(struct trace *t, struct task *task,
		       const struct ring_entry *e);
/* Note a CALL, which takes no time, inside the calls that are open. */
void task_note(struct task *task, const struct ring_entry *e);
/* When all are noted: each task's calls whose return was not lost, an outer call before the calls
 * that it made. */
void tasks_sort(void);
/* Of two calls in that order: has the first one ended when the second one begins? */
bool call_is_over(const struct call *call, const struct call *next);

#endif
