/* Events as text, in Linux's format, merged over CPUs by time. */
#ifndef TRACER_OUTPUT_H
#define TRACER_OUTPUT_H

#include <kernel/ctl.h>
#include <tracer/ring_read.h>

struct trace_iter {
	unsigned int nr;
	struct ring_cursor *next; /* the one whose entry comes next */
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
/* Pass it; consume: only if trace_iter_consume() says true it was ours. */
void trace_iter_next(struct trace_iter *it);
bool trace_iter_consume(struct trace_iter *it);

/* Entries that were lost before the next one since this was last asked. */
u64 trace_iter_lost(struct trace_iter *it);

/* The comment at the top of `trace` and `trace_pipe`'s one line an entry. */
void trace_header(struct seq *s, cpumask_t mask);
void trace_line(struct seq *s, const struct ring_entry *e);

/* trace_clock: the name in use, all of them with [it] marked, and the choice of
 * another: 0 or -EINVAL. */
extern const char trace_clock_names[];
void trace_clock_show(struct seq *s);
int trace_clock_select(const char *name);
/* A time as trace_line() shows it. */
void trace_time(struct seq *s, u64 clock);

#endif
