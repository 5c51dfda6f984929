/* SPDX-License-Identifier: MIT */
/* Events as a call graph. */
#ifndef TRACER_OUTPUT_GRAPH_H
#define TRACER_OUTPUT_GRAPH_H

#include <tracer/show/output.h>

/* The same for function_graph (output_graph.c). flags: with the latency format's column. */
void trace_graph_line(struct seq *s, struct trace_graph *g,
		      const struct ring_entry *e, bool flags);

#endif
