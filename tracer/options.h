/*
 * Linux's options: how events are shown and what is recorded beside them. Each is a file in
 * options/; trace_options shows and takes them all. Writers hold trace_mutex.
 */
#ifndef TRACER_OPTIONS_H
#define TRACER_OPTIONS_H

#include <kernel/types.h>

/* Bits of trace_options. */
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
	OPT_PAUSE_ON_TRACE, /* nothing is recorded while trace is open */
	OPT_FUNC_STACK,	    /* function: a stack behind each call */
	OPT_LATENCY_FORMAT, /* lines as the latency tracers show them */
	OPT_FUNCTION_TRACE, /* the latency tracers record calls, too */
	OPT_GRAPH_CPU,	    /* columns of function_graph: */
	OPT_GRAPH_OVERHEAD, /* the mark before a long duration */
	OPT_GRAPH_PROC,
	OPT_GRAPH_DURATION,
	OPT_GRAPH_ABSTIME,
	OPT_GRAPH_TAIL, /* each closing brace has its function's name */
	NR_OPTIONS,
};
extern u32 trace_options;

static inline bool trace_option(unsigned int option)
{
	return __atomic_load_n(&trace_options, __ATOMIC_RELAXED) >> option & 1;
}

/* Is there an option of that name, with or without no? */
bool trace_option_exists(const char *name);
/* The i-th option's name; NULL: there are no more. */
const char *trace_option_name(unsigned int i);
/* As they were at boot. Context: trace_mutex held. */
void trace_options_reset(void);

#endif
