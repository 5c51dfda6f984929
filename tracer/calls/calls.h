/*
 * Calls that C code must see before they are recorded, or instead: while there are triggers,
 * or while the stack tracer or the profiler runs. Else the trampolines record calls by themselves.
 */
#ifndef TRACER_CALLS_H
#define TRACER_CALLS_H

#include <kernel/types.h>
#include <tracer/tracer.h>

/* The ops that trampolines must use with this tracer; NULL: its own. And the sites of word w
 * that must be on for that. Context: trace_mutex held. */
struct trace_ops *calls_ops(const struct tracer *tracer);
u32 calls_want(unsigned int w);

/* How many are told of a call of the site: the top level's tracer, other instances, triggers, the
 * stack tracer, the profiler. Context: trace_mutex held. */
unsigned int calls_users(unsigned int site);

#endif
