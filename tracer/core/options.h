/* SPDX-License-Identifier: MIT */
/*
 * Linux's options: how events are shown and what is recorded beside them. Each is a file in
 * options/; trace_options shows and takes them all. Writers hold trace_mutex.
 */
#ifndef TRACER_OPTIONS_H
#define TRACER_OPTIONS_H

#include <kernel/types.h>
#include <tracer/core/instances.h>

/* Bits of an instance's options. */
enum {
	OPT_PRINT_PARENT, /* the caller, behind <- */
	OPT_SYM_OFFSET,	  /* name+0x4/0x450 */
	OPT_SYM_ADDR,	  /* the address behind the name */
	OPT_CONTEXT_INFO, /* all columns before the event, and the header */
	OPT_IRQ_INFO,	  /* of these: interrupts, preemption */
	OPT_ANNOTATE,	  /* CPU N buffer started */
	OPT_MARKERS,	  /* trace_marker may be written */
	OPT_RECORD_CMD,	  /* tasks' names are kept */
	OPT_OVERWRITE, /* a full buffer loses its oldest entries, else the newest */
	OPT_PAUSE_ON_TRACE,  /* nothing is recorded while trace is open */
	OPT_FUNC_STACK,	     /* function: a stack behind each call */
	OPT_FUNC_NO_REPEATS, /* function: a call that comes again is counted */
	OPT_STACKTRACE,	     /* a stack behind each event */
	OPT_LATENCY_FORMAT,  /* lines as the latency tracers show them */
	OPT_FUNCTION_TRACE,  /* the latency tracers record calls, too */
	OPT_FUNCTION_FORK, /* a task in set_ftrace_pid puts there the tasks that it makes */
	OPT_EVENT_FORK,	    /* the same for set_event_pid */
	OPT_GRAPH_CPU,	    /* columns of function_graph: */
	OPT_GRAPH_OVERHEAD, /* the mark before a long duration */
	OPT_GRAPH_PROC,
	OPT_GRAPH_DURATION,
	OPT_GRAPH_ABSTIME,
	OPT_GRAPH_TAIL,	   /* each closing brace has its function's name */
	OPT_GRAPH_OVERRUN, /* how many calls of the task were too deep */
	/* What is recorded: */
	OPT_GRAPH_IRQS, /* function_graph: calls of interrupts */
	OPT_SLEEP_TIME, /* time in which the task did not run */
	OPT_GRAPH_TIME, /* profiler: time in the functions that were called */
	NR_OPTIONS,
};

/* An instance's option; and the top level's. */
static inline bool instance_option(const struct trace_instance *in,
				   unsigned int option)
{
	return __atomic_load_n(&in->options, __ATOMIC_RELAXED) >> option & 1;
}
static inline bool trace_option(unsigned int option)
{
	return instance_option(&trace_top, option);
}

/* Its options or its tracer have changed: does its buffer give up old entries for new ones? It
 * does while a latency tracer runs, whatever the option says: else a full buffer would lack the
 * latency that is kept. Context: trace_mutex held. */
void instance_settle(struct trace_instance *in);

/* Every instance's options at first: all but some. */
#define TRACE_OPTIONS_OFF                                                      \
	(1u << OPT_SYM_OFFSET | 1u << OPT_SYM_ADDR |                           \
	 1u << OPT_PAUSE_ON_TRACE | 1u << OPT_FUNC_STACK |                     \
	 1u << OPT_FUNC_NO_REPEATS | 1u << OPT_FUNCTION_FORK |                 \
	 1u << OPT_EVENT_FORK | 1u << OPT_STACKTRACE |                         \
	 1u << OPT_LATENCY_FORMAT | 1u << OPT_GRAPH_PROC |                     \
	 1u << OPT_GRAPH_ABSTIME | 1u << OPT_GRAPH_TAIL |                      \
	 1u << OPT_GRAPH_OVERRUN)
#define TRACE_OPTIONS_AT_BOOT (((1u << NR_OPTIONS) - 1) & ~TRACE_OPTIONS_OFF)

/* Is there an option of that name, with or without no? */
bool trace_option_exists(const char *name);
/* The i-th option's name; NULL: there are no more. */
const char *trace_option_name(unsigned int i);
/* As they were at boot. Context: trace_mutex held. */
void trace_options_reset(void);

#endif
