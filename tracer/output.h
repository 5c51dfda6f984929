/* Events as text, in Linux's format, merged over CPUs by time. */
#ifndef TRACER_OUTPUT_H
#define TRACER_OUTPUT_H

#include <kernel/ctl/ctl.h>
#include <kernel/sched/task.h>
#include <tracer/ring/ring_read.h>

/* What of one CPU's call graph has been shown so far. */
struct trace_graph {
	bool begun;
	s32 pid;	   /* whose calls came last; once begun */
	unsigned int open; /* the next comment stands as deep as a call there */
	/* Whose brace is open at each depth; 0: nobody's that was shown. */
	unsigned long ip[TASK_RETURNS];
};

struct trace_iter {
	unsigned int nr;
	struct ring_cursor *next;  /* the one whose entry comes next */
	struct trace_graph *graph; /* one a CPU, of graph lines */
	/* What the header says: entries there were when the iteration began, and
	 * with those that had been overwritten by then. */
	u64 announced, written;
	u64 shown; /* entries that a line was about */
	struct ring_cursor cursors[MAX_CPUS];
};

/*
 * Iterate over the CPUs of mask; bounded as in ring_cursor_open(). NULL when out
 * of memory. May sleep; so may the others.
 */
struct trace_iter *trace_iter_open(cpumask_t mask, bool bounded);
void trace_iter_close(struct trace_iter *it);

/* The oldest entry that has not been passed; NULL: none (now). */
const struct ring_entry *trace_iter_peek(struct trace_iter *it);
/* The same for a reader that prints it: a call and its return that make one line are
 * one entry (ring_cursor_join()). */
const struct ring_entry *trace_iter_peek_line(struct trace_iter *it);
/* Pass it; consume: only if trace_iter_consume() says true it was ours. */
void trace_iter_next(struct trace_iter *it);
bool trace_iter_consume(struct trace_iter *it);

/* Entries that were lost before the next one since this was last asked. */
u64 trace_iter_lost(struct trace_iter *it);

/* Count what the header says, of the CPUs of mask. */
void trace_count(cpumask_t mask, u64 *entries, u64 *written);

/* The comment at the top of `trace`, and what it and trace_pipe show of an entry
 * of it: a line, or with function_graph a few. */
void trace_header(struct seq *s, const struct trace_iter *it);
void trace_line(struct seq *s, struct trace_iter *it,
		const struct ring_entry *e);

/* The function that contains address `at`; in none: addr as a number. */
void trace_function(struct seq *s, unsigned long addr, unsigned long at);
/* "victim_call <-victim_outer" */
void trace_call(struct seq *s, const struct ring_entry *e);

/* trace_clock: the name in use, all of them with [it] marked, and the choice of
 * another: 0 or -EINVAL. */
extern const char trace_clock_names[];
void trace_clock_show(struct seq *s);
int trace_clock_select(const char *name);
/* A time as trace_line() shows it. */
void trace_time(struct seq *s, u64 clock);

#endif
