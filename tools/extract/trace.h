/* SPDX-License-Identifier: MIT */
/*
 * The trace in a guest's memory: an instance's rings, entry by entry, merged by time, and
 * what is needed to show them. tracer/ring/ring.h describes the rings.
 */
#ifndef EXTRACT_TRACE_H
#define EXTRACT_TRACE_H

#include "machine.h"

#include <arch/cpu_head.h>
#include <kernel/time.h>
#include <stdio.h>
#include <tracer/core/comm.h>
#include <tracer/core/options.h>
#include <tracer/core/tracer.h>
#include <tracer/events/formats.h>
#include <tracer/show/output.h>

#include "guest.h"

struct event {
	u32 id;
	const char *system, *name;
	const char *text; /* the template in kernel/event/list.h */
	const struct event_field *fields;
	bool checked; /* the text is one of these fields */
};

struct trace {
	struct guest *g;
	const struct trace_instance *in;
	char clock_name[16];
	struct event *events; /* the first of them: Linux's entries of tracers */
	unsigned int nr_events, nr_own;
	struct trace_iter *it;
	bool taken;	/* trace_next() has returned an entry, */
	u64 lost;	/* before which so many were lost, */
	u64 whole_from; /* and from this time on, no CPU has lost an entry */
};

/* Find an instance. NULL: the top level. An error ends the program. */
void trace_open(struct trace *t, struct guest *g, const char *instance);
/* The next entry by time. NULL: there are no more. */
const struct ring_entry *trace_next(struct trace *t);

/* Have the tracer's readers read this guest's memory (machine.c). */
void machine_open(const struct guest *g);
/* The i-th name that the kernel has kept, and its task. NULL: there are no more. */
const char *comm_saved(unsigned int i, s32 *pid);
/* A task's name, as the kernel's trace shows it. Good until the next one. */
const char *comm_of(s32 pid);

/* A CPU's ring at an address of the guest's becomes rings[cpu] (ring.c). A ring that makes no sense
 * is said on stderr, and has no entries. */
void ring_open(const struct guest *g, unsigned int cpu, u64 ring);
/* Entries of a CPU that are missing, as far as it has been read, without dropped ones. */
u64 ring_lost(unsigned int cpu);
/* Say on stderr which entries are missing: pages without whole entries, and entries of each CPU. */
void rings_say_lost(void);

/* Of the events' tables: read them. And an event of them, NULL: there is none (formats.c). */
void formats_read(struct trace *t);
const struct event *find_event(u32 id);
/* Write the record of an event as text, and the event's format file. */
void record_text(const struct event *event, const struct ring_entry *e,
		 struct seq *s);
void event_format(const struct event *e, FILE *f);
/* Each text that a record may point to: fn(address, text). */
void for_each_word(const struct trace *t,
		   void (*fn)(u64 addr, const char *text, FILE *f), FILE *f);

/* The name of a function that has the address, or else the address. */
void put_function(u64 addr, u64 at, FILE *f);

/* A call of the function tracer? */
static inline bool is_call(const struct ring_entry *e)
{
	return !e->graph && !e->event && !e->text && !e->stack;
}

/* The formats. Each writes the whole trace. */
void write_text(struct trace *t, FILE *f);
void write_trace_dat(struct trace *t, FILE *f);
void write_chrome(struct trace *t, FILE *f);
void write_folded(struct trace *t, FILE *f);
void write_uftrace(struct trace *t, const char *folder);

#endif
