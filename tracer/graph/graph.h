/* SPDX-License-Identifier: MIT */
/* Which calls function_graph records: set_graph_function and the files beside it. */
#ifndef TRACER_GRAPH_H
#define TRACER_GRAPH_H

#include <kernel/types.h>

/* Written under trace_mutex. */
struct graph_limits {
	bool any;	    /* one of them is set */
	unsigned int depth; /* levels that are recorded. 0: all */
};
extern struct graph_limits graph_limits;

/* The work of function_graph at a call, and at its return (ops/returns.h). */
struct task_return;
bool graph_enter(struct task_return *r, unsigned int depth);
void graph_leave(struct task_return *r, unsigned int depth);

#endif
