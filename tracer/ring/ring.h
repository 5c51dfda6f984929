/* SPDX-License-Identifier: MIT */
/*
 * The trace buffer: a ring of pages for each CPU.
 *
 * A ring has one writer, which is its own CPU with interrupts off. Mostly that is the
 * entry trampoline, which stores 12 bytes at cpu_head.ring.cur and moves ring.cur on.
 * It calls C code (ring.c) when the page is full, when the clock's 32 bits run over,
 * or when the CPU is not to record. Readers are tasks on any CPU (ring_read.c). They
 * never make the writer wait: when the ring is full, the writer takes the oldest page
 * back.
 *
 *	what		written by		read by
 *	slots, ring.cur	writer, ring.cur last	reader: ring.cur, then slots
 *			(release)		(acquire)
 *	page.state	writer exchanges it	reader: before and after a copy
 *			before it reuses a	(acquire). A consuming reader moves
 *			page			it on by compare-and-swap
 *	ring.head	writer, after the page's reader, before the page's header
 *			header (release)	(acquire)
 *
 * Most slots are function events. The other kinds (arch/ring_event.h) are: a task that began to
 * run, a new base of the clock, a marker (its text is in the slots behind it), a function's return
 * (its duration may be in the slot behind it), and an event's record. The first two are no entries,
 * and the others are one entry each.
 *
 * Always: written = read + overwritten + dropped + held.
 */
#ifndef TRACER_RING_H
#define TRACER_RING_H

#include <arch/cpu_head.h>
#include <arch/ring_event.h>
#include <kernel/lock/lock.h>
#include <kernel/types.h>
#include <kernel/lock/mutex.h>
#include <tracer/ring/ring_format.h>

/* A call that came again, only counted: offsets from _text, and the last time by the ring's clock,
 * low word first. */
struct ring_repeats {
	u32 ip, parent, count, last[2];
};

/* A CPU goes over from a task to the next, or the task that runs wakes the next, which will run on
 * next_cpu. As in Linux. A state is a place in RING_STATES. */
struct ring_switch {
	u32 prev_pid, next_pid, next_cpu;
	u8 prev_prio, prev_state, next_prio, next_state;
};

/* Pages of a ring that are looked at, or moved, with interrupts off, 15 to 40 instructions each.
 * In between, interrupts come. */
#define RING_PAGES_AT_ONCE 256u

#define RING_MIN_PAGES 2
#define RING_DEFAULT_KB 256
#define RING_MARK_MAX 1024 /* bytes of a marker, as in Linux */
/* Bytes of a RING_RAW marker: as text it takes three times as many. */
#define RING_RAW_MAX 260
#define RING_STACK_MAX 20 /* addresses of a stack */

struct ring_page {
	u64 base;   /* arch_clock() that the first slot's time counts from */
	u64 before; /* entries written before this page, since the last clear */
	u32 state;  /* RING_STATE(); atomic */
	u16 used;   /* slots, once the writer has left the page */
	u16 inner;  /* of these: slots that are no entries */
	s32 pid;    /* of the task that ran when the page began */
	u32 seq;
	struct ring_event slots[RING_SLOTS];
};
static_assert(sizeof(struct ring_page) <= PAGE_SIZE, "a page");
static_assert(offsetof(struct ring_page, slots) == 32, "host tools read it");

static_assert(RING_SLOTS < 0x200, "9 bits hold a count of slots");

struct task;
struct trace_instance;
struct ring {
	/* tests/test_trace.py reads the first four. */
	struct ring_page **pages; /* page number seq is pages[seq % nr] */
	u32 nr;
	u32 head; /* page being written */
	u32 tail; /* oldest page since the last clear or overwrite */
	struct trace_instance *in; /* that it belongs to */
	/* Where its writer is: the CPU's own place for `rings`, else `own`. NULL: it has no
	 * writer. */
	struct ring_place *at, own;
	bool recording;
	bool busy;	  /* this CPU is inside the tracer's C code */
	bool passed_over; /* the running task's calls are not recorded */
	bool full; /* an entry has not found room: option overwrite is 0 */
	/* Another task runs than `pid`: it came while a trigger had tracing_on at 0. */
	bool unmarked;
	s32 pid;   /* as a reader would see it now */
	u64 began; /* arch_clock() of the last clear */
	u32 first; /* page that was begun then. The entries of earlier ones are no longer counted */
	/* Of pages that were taken back, and events that never got a slot: */
	u64 overwritten, read, dropped;
};
extern struct ring rings[MAX_CPUS];
/* The top level's trace_instance.spares. */
extern struct ring ring_spares[MAX_CPUS];

/* How the rings of the top level are written. Core computes it from the settings and the clients
 * (tracer.c). Under trace_mutex. */
enum {
	/*
	 * C code records calls and returns where a ring records: all, or those that triggers and
	 * lists of pids let pass. With neither bit it records none. One store begins and ends
	 * it on all CPUs at once: a task that goes over to another CPU, which has not heard of
	 * ring_record(), must not leave out a call in between. So it is open only while all have.
	 */
	RING_OPEN = 1,
	RING_ASKS = 2,
	RING_GATE = RING_OPEN | RING_ASKS,
	/* C code sees every call, as a trigger may change tracing_on: nothing but C writes. */
	RING_BY_C = 4,
	/* trace_entry_ring may write: the tracer that runs, or a borrower of trace_ops, records by
	 * it. A task that was preempted there under an earlier tracer records nothing. */
	RING_CALLS = 8,
	/* function_graph's trampolines may write: it alone records calls, and has no limits. */
	RING_GRAPH = 16,
	/* An event has a trigger: events are looked at, even while tracing_on is 0. */
	RING_TRIGGERS = 32,
	/* Another instance than the top level records events, or entries have numbers: records do
	 * not begin in a ring. */
	RING_APART = 64,
};
extern u32 ring_mode;

/* Held by a reader while it looks at pages, and by a task that frees pages. A task that
 * takes trace_mutex too takes trace_mutex first. */
extern struct mutex ring_readers;

/* ---- Writing: any context but NMI --------------------------------------- */

/* The rare part of ring_event_begin() (ring_event.h). Interrupts are off. irqs_off: they were off
 * before. Returns room for a record, or NULL, and then interrupts are as before. No site. */
void *ring_event_slow(bool irqs_off, u32 size);

/* The scheduler's hook calls it: `next` runs now instead of `prev`, and its calls are recorded
 * or not. Interrupts off. */
void ring_task(struct task *prev, struct task *next, bool traced);

/* Where the record of an event stands whose first slot is e: aligned to 8. */
static inline void *ring_event_record(const struct ring_event *e)
{
	return (void *)ALIGN_UP((uintptr_t)(e + 1), 8ul);
}

/* Slots written in page p, from a ring.cur that points into it or at its end. */
static inline u32 ring_slots_used(const struct ring_page *p, const char *cur)
{
	return (cur - (const char *)p->slots) / RING_EVENT_SIZE;
}

#endif
