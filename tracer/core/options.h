/* SPDX-License-Identifier: MIT */
/*
 * Linux's options: how events are shown and which more is recorded beside them. Each is a file in
 * options/, and trace_options shows and takes them all. Writers hold trace_mutex.
 */
#ifndef TRACER_OPTIONS_H
#define TRACER_OPTIONS_H

#include <kernel/types.h>
#include <tracer/core/instances.h>

/*
 * All of them, in the order in which trace_options shows them: O(bit, Linux's name, at boot,
 * which instances have it).
 */
/* clang-format off */
#define TRACE_OPTIONS(O)                                                                       \
	O(PRINT_PARENT, "print-parent", ON, EACH) /* the caller, behind <- */                  \
	O(SYM_OFFSET, "sym-offset", OFF, EACH) /* name+0x4/0x450 */                            \
	O(SYM_ADDR, "sym-addr", OFF, EACH) /* the address behind the name */                   \
	/* all columns before the event, and the header */                                     \
	O(CONTEXT_INFO, "context-info", ON, EACH)                                              \
	O(IRQ_INFO, "irq-info", ON, EACH) /* of these: interrupts, preemption */               \
	O(ANNOTATE, "annotate", ON, EACH) /* CPU N buffer started */                           \
	O(MARKERS, "markers", ON, EACH) /* trace_marker may be written */                      \
	O(RECORD_CMD, "record-cmd", ON, TOP) /* tasks' names are kept */                       \
	/* a full buffer loses its oldest entries, else the newest */                          \
	O(OVERWRITE, "overwrite", ON, EACH)                                                    \
	/* nothing is recorded while trace is open */                                          \
	O(PAUSE_ON_TRACE, "pause-on-trace", OFF, EACH)                                         \
	O(FUNC_STACK, "func_stack_trace", OFF, TOP) /* function: a stack behind each call */   \
	/* function: a call that comes again is counted */                                     \
	O(FUNC_NO_REPEATS, "func-no-repeats", OFF, TOP)                                        \
	O(STACKTRACE, "stacktrace", OFF, EACH) /* a stack behind each event */                 \
	/* lines as the latency tracers show them */                                           \
	O(LATENCY_FORMAT, "latency-format", OFF, EACH)                                         \
	/* the latency tracers record calls, too */                                            \
	O(FUNCTION_TRACE, "function-trace", ON, TOP)                                           \
	/* a task in set_ftrace_pid puts there the tasks that it makes */                      \
	O(FUNCTION_FORK, "function-fork", OFF, EACH)                                           \
	O(EVENT_FORK, "event-fork", OFF, EACH) /* the same for set_event_pid */                \
	O(GRAPH_CPU, "funcgraph-cpu", ON, TOP) /* columns of function_graph: */                \
	O(GRAPH_OVERHEAD, "funcgraph-overhead", ON, TOP) /* the mark before a long duration */ \
	O(GRAPH_PROC, "funcgraph-proc", OFF, TOP)                                              \
	O(GRAPH_DURATION, "funcgraph-duration", ON, TOP)                                       \
	O(GRAPH_ABSTIME, "funcgraph-abstime", OFF, TOP)                                        \
	/* each closing brace has its function's name */                                       \
	O(GRAPH_TAIL, "funcgraph-tail", OFF, TOP)                                              \
	/* how many calls of the task were too deep */                                         \
	O(GRAPH_OVERRUN, "funcgraph-overrun", OFF, TOP)                                        \
	/* Contents of a recording: */                                                         \
	O(GRAPH_IRQS, "funcgraph-irqs", ON, TOP) /* function_graph: calls of interrupts */     \
	O(SLEEP_TIME, "sleep-time", ON, TOP) /* time in which the task did not run */          \
	/* profiler: time in the functions that were called */                                 \
	O(GRAPH_TIME, "graph-time", ON, TOP)
/* clang-format on */

/* Bits of an instance's options. */
#define OPTION_BIT(bit, ...) OPT_##bit,
enum { TRACE_OPTIONS(OPTION_BIT) NR_OPTIONS };

/* An instance's option, and the top level's. */
static inline bool instance_option(const struct trace_instance *in,
				   unsigned int option)
{
	return __atomic_load_n(&in->options, __ATOMIC_RELAXED) >> option & 1;
}
static inline bool trace_option(unsigned int option)
{
	return instance_option(&trace_top, option);
}

/* Its options or its tracer have changed: does its buffer give up old entries for new ones? While a
 * latency tracer runs it does, even with the option off: else a full buffer would lack the latency
 * that is kept. Context: trace_mutex held. */
void instance_settle(struct trace_instance *in);

/* Every instance's options at first. */
extern const u32 trace_options_at_boot;

/* Is there an option of that name, with or without no? */
bool trace_option_exists(const char *name);
/* The i-th option's name. NULL: there are no more. */
const char *trace_option_name(unsigned int i);
/* As they were at boot. Context: trace_mutex held. */
void trace_options_reset(void);

#endif
