/* SPDX-License-Identifier: MIT */
/*
 * The trace in a guest's memory: an instance's rings, entry by entry, merged by time, and
 * what is needed to show them. tracer/ring/ring.h describes the rings.
 */
#ifndef EXTRACT_TRACE_H
#define EXTRACT_TRACE_H

#include "guest.h"

#include <stdio.h>

#include "machine.h"

#include <arch/cpu_head.h>
#include <tracer/events/formats.h>
#include <tracer/ring/ring_format.h>

#define MAX_TRACE_CPUS 64
#define GRAPH_DEPTHS 256
#define MAX_OPTIONS 32
#define PAGE_BYTES 4096

enum kind {
	CALL,	      /* a function's call, with `repeats`, so many */
	GRAPH_ENTRY,  /* of function_graph: a function's call, */
	GRAPH_RETURN, /* its return, */
	GRAPH_LEAF,   /* or both */
	MARKER,	      /* text */
	RAW,	      /* a u32 and any bytes */
	STACK,	      /* u32 offsets from _text */
	EVENT,	      /* a record */
	UNKNOWN,      /* an event that the kernel's list does not have */
};

struct trace_entry {
	enum kind kind;
	u64 clock, ns; /* the guest's arch_clock(), and nanoseconds */
	u64 number;    /* if its clock counts entries, else 0 */
	unsigned int cpu;
	s32 pid;
	u32 context;	/* as in arch/ring_event.h */
	u64 ip, parent; /* of functions: addresses */
	u32 depth, missed;
	u64 ticks; /* of arch_clock(), until it returned */
	u32 repeats;
	u64 last; /* of the last repeat: arch_clock(), or a number */
	u32 id;	  /* of an event */
	const uint8_t *bytes; /* text, stack or record, */
	u32 len;	      /* and how many */
	/* Entries that were lost before this one on its CPU: since the one before it. And of the
	 * first one, all that were overwritten, of which the guest's text has no line. */
	u64 lost, overwritten;
};

struct event {
	u32 id;
	const char *system, *name;
	const char *text; /* the template in kernel/event/list.h */
	const struct event_field *fields;
	bool checked; /* the text is one of these fields */
};

/* One CPU's ring, and how far it has been read. */
struct cursor {
	u64 ring, pages; /* addresses */
	unsigned int cpu;
	u32 nr, head, tail;
	u32 seq, next; /* page number that was copied, that comes next */
	u64 writer;    /* the address of its next slot. 0: it has none */
	u64 overwritten, dropped, entries; /* entries: not consumed, in all */
	uint8_t page[PAGE_BYTES];
	u32 used, consumed, at; /* slots of the page */
	u64 base, position, number;
	s32 pid;
	bool fresh, has; /* no page has been copied, `entry` is the next one */
	bool begun;	 /* an entry has been taken */
	u64 lost, lost_pages;
	u64 gaps; /* all that were lost between pages */
	struct trace_entry entry;
};

struct trace {
	struct guest *g;
	u64 instance; /* its address */
	const char *tracer;
	bool graph, latency; /* what kind of a tracer it is */
	u64 options;
	bool sleep_time; /* the option: it counts as time of calls */
	unsigned int clock, nr_cpus;
	char clock_name[16];
	struct event *events; /* the first of them: Linux's entries of tracers */
	unsigned int nr_events, nr_own;
	u64 whole_from; /* from this time on, no CPU has lost an entry */
	unsigned int nr_cursors; /* a CPU each, by number */
	struct cursor cursors[MAX_TRACE_CPUS];
	/* Where things lie, and how the clock counts. */
	u64 slots_at, mult, shift, clock_base, comms, comm_size, comm_name;
	const char *option_names[MAX_OPTIONS];
};

/* Find an instance. NULL: the top level. An error ends the program. */
void trace_open(struct trace *t, struct guest *g, const char *instance);
/* The next entry by time. NULL: there are no more. And the next of one CPU. */
const struct trace_entry *trace_next(struct trace *t);
const struct trace_entry *cursor_next(struct trace *t, struct cursor *c);
/* The same as trace_next(), and an entry that its return follows comes as one GRAPH_LEAF. */
const struct trace_entry *trace_next_line(struct trace *t);
/* Entries of a CPU that are missing, as far as it has been read, without dropped ones. */
u64 cursor_lost(const struct cursor *c);
/* Say on stderr which entries are missing: pages without whole entries, and entries of each CPU. */
void trace_say_lost(const struct trace *t);

/* As the kernel's clock_to_ns() and clock_delta_to_ns(). */
u64 trace_ns(const struct trace *t, u64 clock);
u64 trace_delta_ns(const struct trace *t, u64 ticks);

/* The time of an entry by the instance's clock: arch_clock(), or a number. */
static inline u64 trace_when(const struct trace_entry *e)
{
	return e->number ? e->number : e->clock;
}
/* And as that clock has it: nanoseconds, hundredths of a second, or a number. */
u64 trace_stamp(const struct trace *t, u64 when);
/* Is it in nanoseconds? */
bool trace_is_in_ns(const struct trace *t);

/* A task's name, as the kernel's trace shows it. */
const char *trace_comm(const struct trace *t, s32 pid);
/* The i-th name that the kernel has kept, and its task. NULL: there are no more. */
const char *trace_saved(const struct trace *t, unsigned int i, s32 *pid);
/* Is an option of Linux's name set? */
bool trace_option(const struct trace *t, const char *name);

/* Have the tracer's readers read this guest's memory (machine.c). */
void machine_open(const struct guest *g);

const struct event *find_event(const struct trace *t, u32 id);
/* Write an entry of kind RAW as text. */
void text_of_raw(const struct trace *t, const struct trace_entry *e, FILE *f);
/* Write the record of an event as text, and the event's format file. */
void record_text(const struct trace *t, const struct event *e,
		 const uint8_t *record, u32 len, FILE *f);
void event_format(const struct trace *t, const struct event *e, FILE *f);
/* Of the tables: read them (formats.c). */
void formats_read(struct trace *t);
/* Each text that a record may point to: fn(address, text). */
void for_each_word(const struct trace *t,
		   void (*fn)(u64 addr, const char *text, FILE *f), FILE *f);

/* The name of a function that has the address, or else the address. */
void put_function(const struct trace *t, u64 addr, u64 at, FILE *f);

/* The formats. Each writes the whole trace. */
void write_text(struct trace *t, FILE *f);
void write_trace_dat(struct trace *t, FILE *f);
void write_chrome(struct trace *t, FILE *f);
void write_folded(struct trace *t, FILE *f);
void write_uftrace(struct trace *t, const char *folder);

#endif
