/* SPDX-License-Identifier: MIT */
/* The trace as folded stacks, for flame graphs. */
#include "calls.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct folded {
	char *stack;
	u64 weight;
};
static void *folded;
static FILE *folded_to;

static int compare_folded(const void *a, const void *b)
{
	return strcmp(((const struct folded *)a)->stack,
		      ((const struct folded *)b)->stack);
}

static void add_folded(char *stack, u64 weight)
{
	struct folded *new = malloc(sizeof(*new)), *old;

	if (!new)
		errx(1, "out of memory");
	*new = (struct folded){ stack, 0 };
	old = *(struct folded **)tsearch(new, &folded, compare_folded);
	old->weight += weight;
	if (old != new) {
		free(stack);
		free(new);
	}
}

static void show_folded(const void *node, VISIT visit, int depth)
{
	const struct folded *s = *(struct folded *const *)node;

	(void)depth;
	if (visit == postorder || visit == leaf)
		fprintf(folded_to, "%s %llu\n", s->stack,
			(unsigned long long)s->weight);
}

static FILE *begin_stack(char **stack, size_t *len, const char *name)
{
	FILE *f = open_memstream(stack, len);

	if (!f)
		errx(1, "out of memory");
	fputs(name, f);
	return f;
}

/* The function tracer: how often a function was called from another. */
static void fold_call(const struct ring_entry *e)
{
	char *stack;
	size_t len;
	FILE *f = begin_stack(&stack, &len, task_name(task_of(e)));

	fputc(';', f);
	put_function(e->parent, e->parent - 1, f);
	fputc(';', f);
	put_function(e->ip, e->ip, f);
	fclose(f);
	add_folded(stack, 1 + e->repeats);
}

/* The calls that are open, the outermost first, and the time in calls that each has made. */
struct open {
	const struct call *call;
	u64 inner;
};

static u64 time_of(const struct call *call)
{
	return call->returned ? call->time : 0;
}

/* Nanoseconds of a stack of calls, less those in deeper calls. */
static void fold_stack(const struct task *task, const struct open *open, u32 n)
{
	const struct open *last = &open[n - 1];
	u64 time = time_of(last->call);
	char *stack;
	size_t len;
	FILE *f;
	u32 depth = 0;

	if (!last->call->returned)
		return;
	f = begin_stack(&stack, &len, task_name(task));
	for (u32 i = 0; i < n; i++, depth++) {
		/* The calls between were recorded by no entry that is left. */
		if (open[i].call->depth > depth)
			fputs(";[lost]", f);
		depth = open[i].call->depth;
		fputc(';', f);
		put_function(open[i].call->ip, open[i].call->ip, f);
	}
	fclose(f);
	add_folded(stack, time > last->inner ? time - last->inner : 0);
}

static void fold_task(const struct task *task)
{
	struct open open[GRAPH_DEPTHS + 1];
	u32 n = 0;

	for (size_t i = 0; i < task->nr_calls; i++) {
		const struct call *call = &task->calls[i];

		for (; n && call_is_over(open[n - 1].call, call); n--)
			fold_stack(task, open, n);
		if (n)
			open[n - 1].inner += time_of(call);
		open[n++] = (struct open){ call, 0 };
	}
	for (; n; n--)
		fold_stack(task, open, n);
}

/* A line without weight. */
static void fold_lost(unsigned int cpu)
{
	char *stack;
	size_t len;
	FILE *f;

	if (!ring_lost(cpu))
		return;
	f = begin_stack(&stack, &len, "[lost]");
	fprintf(f, ";CPU:%u [%llu EVENTS DROPPED]", cpu,
		(unsigned long long)ring_lost(cpu));
	fclose(f);
	add_folded(stack, 0);
}

void write_folded(struct trace *t, FILE *f)
{
	const struct ring_entry *e;

	while ((e = trace_next(t)))
		if (is_call(e))
			fold_call(e);
		else if (e->graph == RING_GRAPH_ENTRY ||
			 e->graph == RING_GRAPH_RETURN)
			task_call(t, task_of(e), e);
	tasks_sort();
	for (size_t i = 0; i < nr_tasks; i++)
		fold_task(tasks[i]);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		fold_lost(cpu);
	folded_to = f;
	twalk(folded, show_folded);
}
