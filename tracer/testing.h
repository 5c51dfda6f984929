/* SPDX-License-Identifier: MIT */
/* Helpers that the tracer's tests share. */
#ifndef TRACER_TESTING_H
#define TRACER_TESTING_H

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/test/ktest.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/test/victim.h>
#include <tracer/show/output.h>
#include <tracer/patch/patch.h>
#include <tracer/ops/ops.h>
#include <tracer/core/tracer.h>
#include <kernel/test/again.h>

AGAIN(struct trace_iter *, trace_iter_open, NULL,
      (const struct ring *set, cpumask_t mask, bool bounded),
      (set, mask, bounded))
#define trace_iter_open trace_iter_open_again

/* Bring the tracer into the state after boot: tracer nop, no filters, recording on all
 * CPUs, the buffer empty. */
void trace_test_reset(void);

/* For a test that uses a client of the tracer (core/client.h): `make WITHOUT=` may have left its
 * room out. tools/check knows the names. */
#define KNEED_CLIENT(t, name)                                                  \
	do {                                                                   \
		if (!trace_test_has(name))                                     \
			KSKIP(t, "left out: " name);                           \
	} while (0)
bool trace_test_has(const char *client);

/* Write a control file of the tracer. The explaining line stays in
 * trace_test_error. */
int trace_test_put(const char *file, const char *text);
int trace_test_add(const char *file, const char *text); /* as >> */
extern char trace_test_error[160];

/* Read a control file in pieces of `chunk` bytes. Its length. text ends with a NUL. */
ssize_t trace_test_read(const char *file, char *text, size_t size,
			size_t chunk);
ssize_t trace_test_read_path(const char *path, char *text, size_t size,
			     size_t chunk);

/* Does a control file have this text, read in pieces of any size? If not, it is printed. */
bool trace_test_says(const char *file, const char *text);

/* Wait until a task is held that runs where task_hold() says, for at most a minute: the task's CPU
 * is interrupted again and again, for ticks come seldom. */
bool trace_test_wait_held(struct task *task);

/* Put other bytes into a live instruction, which no CPU runs meanwhile. */
void trace_test_overwrite(struct live l, u64 bytes);

/* Trace victim_call() and nothing else, into an empty buffer. */
int trace_test_victim(void);

/* arch_site_length, for tests whose objects are those of every front end (NO_LAYOUT). */
extern const unsigned int trace_test_site_length;

/* The site of a function that is known by its address. */
int trace_test_site(unsigned long (*fn)(unsigned long x));

/*
 * A test that runs with every strategy: KTESTs NAME.stop, NAME.breakpoint,
 * NAME.word and NAME.bypass, skipped where this CPU refuses one.
 */
#define PATCH_TEST(ident, test_name)                                           \
	static void ident(struct ktest_run *t);                                \
	KTEST(ident##_stop, test_name ".stop")                                 \
	{                                                                      \
		trace_test_strategy(t, "stop", ident);                         \
	}                                                                      \
	KTEST(ident##_breakpoint, test_name ".breakpoint")                     \
	{                                                                      \
		trace_test_strategy(t, "breakpoint", ident);                   \
	}                                                                      \
	KTEST(ident##_word, test_name ".word")                                 \
	{                                                                      \
		trace_test_strategy(t, "word", ident);                         \
	}                                                                      \
	KTEST(ident##_bypass, test_name ".bypass")                             \
	{                                                                      \
		trace_test_strategy(t, "bypass", ident);                       \
	}                                                                      \
	static void ident(struct ktest_run *t)
void trace_test_strategy(struct ktest_run *t, const char *name,
			 void (*test)(struct ktest_run *t));

/* Let live calls do `ops`. NULL: give that back. Context: trace_mutex held. */
void trace_test_ops(struct trace_ops *ops);

/* Switch every site on, or off: as patch_apply(). Context: trace_mutex held. */
int trace_test_switch_all(struct patch_batch *b, bool on);

/* How many sites' live instructions are off in memory. */
unsigned int trace_test_count_off(void);

/* Give each CPU's ring so many KiB. */
void trace_test_size(unsigned long kb);
/* Entries written since the last clear, all ones if the books do not add up. */
u64 trace_test_written(void);
/* Entries of the latency that is kept, for each of which `trace` has a line. */
unsigned int trace_test_kept_lines(void);
/* Entries that a look through the whole buffer finds, and consumes or not. */
u64 trace_test_walk(bool consume);
/* The same with the i-th eight CPUs, while all CPUs work. Each entry of n rings is compared with n
 * others, so with 32 CPUs a look through all rings would take a second of the guest's time. */
void trace_test_walk_eight(unsigned int i, bool consume);

/* The sum of all CPUs' counts, in a set of rings or in `rings`. False if those of one CPU do
 * not add up (ring.h). */
bool trace_test_books_of(const struct ring *set, struct ring_stats *sum);
bool trace_test_books(struct ring_stats *sum);

/*
 * An independent count of traced calls while all sites are switched: calls of
 * victim_call(), which is on all the time, of victim_other(), which is never on, and
 * of all other functions.
 */
struct trace_witness {
	struct trace_ops ops;
	int steady, never; /* sites */
	u32 steady_calls, never_calls, other_calls;
	u32 steady_made;    /* calls of victim_call(): its callers' own count */
	const char *before; /* strategy */
	bool others_on;	    /* all sites but these two */
};
/* Select a strategy, and begin to count. trace_mutex is held until trace_witness_end().
 * False: that is not possible, and nothing has changed. */
bool trace_witness_begin(struct trace_witness *w, const char *strategy);
/* All sites but the two on or off: as patch_apply(). */
int trace_witness_toggle(struct trace_witness *w, bool on);
/* Switch all sites off, put everything back, and expect that the counts agree. */
void trace_witness_end(struct trace_witness *w, struct ktest_run *t);

/* Take the free memory away, but for so many pages, and give it back. The memory that is left for
 * the kernel to fill is small, so a test does not take long. */
#define TRACE_TEST_FEW_PAGES (1000ul * nr_cpus) /* more than the rings have */
void trace_test_memory_take(unsigned long keep);
void trace_test_memory_give(void);

/* A task on each online CPU that runs fn over and over (its address in `arg` of
 * struct trace_worker), or `calls` times, and counts. */
struct trace_worker {
	struct task *task;
	unsigned int calls;  /* to make. 0: until stopped */
	unsigned long done;  /* made so far, the task writes */
	unsigned long wrong; /* of these with a wrong result */
	bool finished;
};
/* For a test's own use, as no task's stack has much room for so many. */
extern struct trace_worker trace_workers[MAX_CPUS];
/* False: a task could not be made. */
bool trace_workers_start(struct trace_worker *w, unsigned int calls);
/* Stop and join all of them. Returns how many calls they made. */
unsigned long trace_workers_join(struct trace_worker *w);

/* The least number of interrupts between CPUs in 20 runs of act(), which other tasks add to. */
u64 trace_test_ipis(void (*act)(void));

#endif
