/* SPDX-License-Identifier: MIT */
/* Events as text, in Linux's format, merged over CPUs by time. */
#ifndef TRACER_OUTPUT_H
#define TRACER_OUTPUT_H

#include <kernel/ctl/ctl.h>
#include <kernel/sched/task.h>
#include <tracer/core/instances.h>
#include <tracer/ring/ring_read.h>

/* The longest latency of a latency tracer so far. */
struct latency {
	u64 since, until; /* arch_clock(); until 0: there is none */
	u64 ticks;
	unsigned int cpu;
	s32 pid;
	int prio;
	unsigned long began, ended; /* where; 0: of a wakeup */
};

/* The part of one CPU's call graph that has been shown so far. */
struct trace_graph {
	bool begun;
	s32 pid;	   /* the task whose calls came last; once begun */
	unsigned int open; /* the depth at which the next comment stands */
	/* The function whose brace is open at each depth. 0: none was shown. */
	unsigned long ip[TASK_RETURNS];
};

struct trace_iter {
	const struct ring *set;		 /* of these rings */
	const struct trace_instance *in; /* whose options and clock count */
	cpumask_t mask;			 /* on these CPUs */
	bool pauses;			 /* it is one of trace_top.pauses */
	unsigned int nr;
	struct ring_cursor *next;  /* the one whose entry comes next */
	struct trace_graph *graph; /* one a CPU, of graph lines */
	/* The header's numbers, as they were when the iteration began: the entries, and these
	 * together with the overwritten ones. */
	u64 announced, written;
	u64 shown; /* entries that a line has shown */
	/* Entries outside of this time are passed over. */
	u64 from, until;
	/* Of the format of latency tracers: is it in use, which latency, and where in the record
	 * the mark of the line stands that was shown last. */
	bool latency_format;
	struct latency latency;
	size_t mark_at;
	cpumask_t annotate; /* CPUs whose first line is announced, since the
			     * beginning of their buffer was overwritten */
	struct ring_cursor cursors[MAX_CPUS];
};

/*
 * Iterate over a set of rings, of the CPUs of mask. `bounded` is as in
 * ring_cursor_open(). NULL when out of memory.
 * Context of all trace_iter functions: a task that may sleep.
 */
struct trace_iter *trace_iter_open(const struct ring *set, cpumask_t mask,
				   bool bounded);
void trace_iter_close(struct trace_iter *it);
/* Begin anew, with all that is there now, on the CPUs of mask alone. Any context. */
void trace_iter_restart(struct trace_iter *it, cpumask_t mask);

/* The oldest entry that has not been passed. NULL: there is none now. */
const struct ring_entry *trace_iter_peek(struct trace_iter *it);
/* The same for a reader that prints it: a call and its return that make one line are
 * one entry (ring_cursor_join()). */
const struct ring_entry *trace_iter_peek_line(struct trace_iter *it);
/* Pass the entry that peek has shown. trace_iter_consume() also takes it out of the ring. False:
 * another reader was faster, so this one must not print it. */
void trace_iter_next(struct trace_iter *it);
bool trace_iter_consume(struct trace_iter *it);

/* Prepare a new iterator for the format in use. True: it shows the longest latency, and
 * nothing else. */
bool trace_iter_window(struct trace_iter *it);

/* How many entries were lost before the next one, since the last call of this. */
u64 trace_iter_lost(struct trace_iter *it);

/* The header's two numbers (struct trace_iter), for the CPUs of mask. */
void trace_count(const struct ring *set, cpumask_t mask, u64 *entries,
		 u64 *written);

/* The comment at the top of `trace`, and an entry as `trace` and trace_pipe show it: one line, or
 * with function_graph a few. */
void trace_header(struct seq *s, const struct trace_iter *it);
void trace_line(struct seq *s, struct trace_iter *it,
		const struct ring_entry *e);
/* When the entry of the line that was shown last, at `clock`, has been passed: the line is marked
 * if the format in use shows how long it took until the next one. */
void trace_line_mark(struct seq *s, struct trace_iter *it, u64 clock);

/* The name of the function that contains address `at`. If none does, addr as a number. */
void trace_function(struct seq *s, unsigned long addr, unsigned long at);
/* A stack: a line that says so, and a line for each call. */
void trace_stack(struct seq *s, const struct trace_instance *in,
		 const struct ring_entry *e);
/* "sched_wakeup: comm=ping pid=7 ..." */
void trace_event(struct seq *s, const struct ring_entry *e);
/* Likewise a marker: at most `room` bytes of a text, or all bytes of a raw one. */
void trace_marker_text(struct seq *s, const struct ring_entry *e, u32 room);
/* "victim_call <-victim_outer" */
void trace_call(struct seq *s, const struct trace_instance *in,
		const struct ring_entry *e);

/* The file trace_clock: the names that it takes, its text, with the clock in use in brackets, and
 * the choice of another clock, 0 or -EINVAL. */
extern const char trace_clock_names[];
void trace_clock_show(struct seq *s, const struct trace_instance *in);
int trace_clock_select(struct trace_instance *in, const char *name);
/* Linux's mark of a long time: + more than 10 us, ! 100 us, # 1 ms, * 10 ms, @ 100 ms, $ 1 s. */
char trace_mark(u64 ns);
/* Interrupts, rescheduling, context and depth, as five characters and a blank. */
void trace_flags(struct seq *s, u32 context);
/* "12.345 us  ": microseconds, with as many of three digits more as make it seven. */
void trace_duration(struct seq *s, u64 ns);
/* ring_when() in the unit of an instance's clock: nanoseconds, hundredths of a second, or a number.
 * trace_time() shows it as trace_line() does. */
u64 trace_stamp(const struct trace_instance *in, u64 when);
void trace_time(struct seq *s, const struct trace_instance *in, u64 when);

#endif
