/* SPDX-License-Identifier: MIT */
/* The latency format: that of the latency tracers, and of others with option latency-format. */
#ifndef EXTRACT_LATENCY_H
#define EXTRACT_LATENCY_H

#include "trace.h"

struct latency_view {
	bool format;	  /* lines are in this format */
	bool longest;	  /* the trace is that of the longest latency: */
	u64 at;		  /* the address of what the guest knows of it, */
	u64 since, until; /* and from when to when, of arch_clock() */
	u64 zero;	  /* lines' times count from here */
};

/* Whether and how the guest's trace is shown in this format. */
void latency_open(const struct trace *t, struct latency_view *v);
/* The header, behind its first two lines. */
void latency_header(const struct trace *t, const struct latency_view *v,
		    u64 entries, u64 written, FILE *f);
/* Nanoseconds between two values of arch_clock(). 0 if `to` is not the later one. */
u64 latency_between(const struct trace *t, u64 from, u64 to);

#endif
