/* SPDX-License-Identifier: MIT */
/*
 * The parts of the tracer that every room uses: its mutex, its control files, and its instances.
 *
 * Each instance has a buffer, a tracer, filters, events, options and a clock of its own. The top
 * level is the first one, and is always there.
 */
#ifndef TRACER_INSTANCE_H
#define TRACER_INSTANCE_H

#include <kernel/ctl/ctl.h>
#include <kernel/lock/mutex.h>
#include <kernel/types.h>

#define TRACING "/sys/kernel/tracing/"

/* The first of the tracer's locks. The tracer's state changes under it alone. */
extern struct mutex trace_mutex;

/* A control file whose show(), read() and write() run with trace_mutex held. */
#define TRACE_FILE(ident, ...)                                                 \
	CTL_FILE(ident, .lock = &trace_mutex, __VA_ARGS__)

/* The top level, and 31 that users make: a bit for each in a word. */
#define INSTANCES 32

struct tracer;
struct ring;

/* The contents of set_ftrace_filter and similar files: tracer/core/filter.h. */
struct site_filter {
	const char *name;  /* the control file's */
	const char *empty; /* the file's text when nothing is in it */
	u32 **bits;	   /* made at the first write if there are none */
	/* Whose calls it is for: which sites are on depends on it. NULL: it is for another. */
	struct trace_instance *in;
	bool for_stack; /* the stack tracer's: sites follow it while that runs */
	unsigned int count; /* sites in it, and lines of `modules` */
	/* FUNC:mod:MODULE, a line each, or NULL. nopl has no modules, so these name no site. */
	char *modules;
	unsigned int lo, hi; /* words outside [lo, hi) are 0 */
};

struct trace_instance {
	char name[32]; /* "": the top level, or there is none */
	unsigned int
		users; /* files of it that are open, under instances.c's lock */

	/* Written under trace_mutex. */
	const struct tracer *tracer;
	u32 on; /* tracing_on: 0 or 1, a word because commands look at it */
	cpumask_t cpumask;   /* tracing_cpumask, of CPUs present */
	unsigned int pipes;  /* readers of trace_pipe: the tracer stays */
	unsigned int pauses; /* readers of trace: nothing is recorded */
	bool overwrites; /* old entries make way: option overwrite, or a latency tracer */
	u32 options;	    /* a bit for each of options.h */
	unsigned int clock; /* the number of its clock: show/output.c */
	unsigned int buffer_percent; /* full so far, a ring wakes its reader */
	struct ring *
		buffer; /* a ring for each CPU. NULL: the instance is not there */
	/* As many, which have no writer: the pages that a snapshot has taken out of the buffer
	 * (show/snapshot.h). Without pages, there is no memory for a snapshot. */
	struct ring *spares;
	struct site_filter filter, left_out;
};
#define BUFFER_PERCENT_AT_BOOT 50
extern struct trace_instance trace_instances[INSTANCES];
#define trace_top trace_instances[0]

/* The instance that a control file belongs to. */
static inline struct trace_instance *instance_of(const struct ctl_handle *h)
{
	return &trace_instances[h->folder];
}
static inline unsigned int instance_number(const struct trace_instance *in)
{
	return in - trace_instances;
}

/* Its clock is no time: it gives each entry a number. */
#define CLOCK_COUNTER 2
static inline bool instance_counts(const struct trace_instance *in)
{
	return READ_ONCE(in->clock) == CLOCK_COUNTER;
}

#endif
