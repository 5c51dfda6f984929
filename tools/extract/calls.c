/* SPDX-License-Identifier: MIT */
/* The calls of tasks: calls.h. */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

struct task **tasks;
size_t nr_tasks;

static s32 number_of(const struct ring_entry *e)
{
	return e->pid ? e->pid : -1 - (s32)e->cpu;
}

struct task *task_of(const struct ring_entry *e)
{
	s32 pid = number_of(e);

	for (size_t i = 0; i < nr_tasks; i++)
		if (tasks[i]->pid == pid)
			return tasks[i];
	tasks = array_grow(tasks, nr_tasks, sizeof(tasks[0]));
	tasks[nr_tasks] = calloc(1, sizeof(struct task));
	if (!tasks[nr_tasks])
		errx(1, "out of memory");
	tasks[nr_tasks]->pid = pid;
	return tasks[nr_tasks++];
}

const char *task_name(const struct task *task)
{
	static char idle[24];

	if (task->pid >= 0)
		return comm_of(task->pid);
	snprintf(idle, sizeof(idle), "idle/%d", -1 - task->pid);
	return idle;
}

static struct call *add_call(struct task *task, const struct call *call)
{
	task->calls =
		array_grow(task->calls, task->nr_calls, sizeof(*task->calls));
	task->calls[task->nr_calls] = *call;
	return &task->calls[task->nr_calls++];
}

/* Calls as deep as `depth` and deeper are over. */
static void close_calls(struct task *task, u32 depth)
{
	for (u32 i = depth; i < task->depth; i++) {
		if (task->open[i])
			task->calls[task->open[i] - 1].lost = true;
		task->open[i] = 0;
	}
	task->depth = depth;
}

/*
 * Is the return that of the call? It says to the tick when its call began, unless the guest left
 * sleep out of its time. Then it is, where nothing was lost since.
 */
static bool is_return_of(const struct trace *t, const struct ring_entry *e,
			 const struct call *call)
{
	if (call->ip != e->ip || !call->clock)
		return false;
	return call->clock == e->clock - e->ticks ||
	       (!trace_option(OPT_SLEEP_TIME) && call->clock >= t->whole_from);
}

/* The difference of two times that are cut to nanoseconds: so the times of calls nest. */
u64 call_time(const struct ring_entry *e)
{
	return clock_to_ns(e->clock) - clock_to_ns(e->clock - e->ticks);
}

struct call *task_call(struct trace *t, struct task *task,
		       const struct ring_entry *e)
{
	struct call new = { .ip = e->ip, .depth = e->depth, .order = e->depth },
		    *call;
	u64 time = call_time(e);
	size_t *open = &task->open[e->depth];

	if (e->graph == RING_GRAPH_ENTRY) {
		close_calls(task, e->depth);
		new.clock = e->clock;
		new.start = clock_to_ns(e->clock);
		new.order = GRAPH_DEPTHS + task->nr_calls;
		call = add_call(task, &new);
		*open = task->nr_calls;
		task->depth = e->depth + 1;
		return call;
	}
	if (e->depth < task->depth && *open &&
	    is_return_of(t, e, &task->calls[*open - 1])) {
		call = &task->calls[*open - 1];
		*open = 0;
	} else {
		new.start = clock_to_ns(e->clock) - time;
		call = add_call(task, &new);
	}
	close_calls(task, e->depth);
	call->end = clock_to_ns(e->clock);
	call->time = time;
	call->returned = true;
	return call;
}

void task_note(struct task *task, const struct ring_entry *e)
{
	add_call(task, &(struct call){ .ip = e->ip,
				       .start = clock_to_ns(e->clock),
				       .end = clock_to_ns(e->clock),
				       .depth = task->depth,
				       .order = GRAPH_DEPTHS + task->nr_calls,
				       .returned = true });
}

static int compare_calls(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

void tasks_sort(void)
{
	for (size_t i = 0; i < nr_tasks; i++) {
		struct task *task = tasks[i];
		size_t n = 0;

		for (size_t k = 0; k < task->nr_calls; k++)
			if (!task->calls[k].lost)
				task->calls[n++] = task->calls[k];
		task->nr_calls = n;
		qsort(task->calls, n, sizeof(*task->calls), compare_calls);
	}
}

bool call_is_over(const struct call *call, const struct call *next)
{
	return call->depth >= next->depth ||
	       (call->returned && (next->start > call->end ||
				   next->end > call->end || !next->returned));
}
