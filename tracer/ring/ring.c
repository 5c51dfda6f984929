/* SPDX-License-Identifier: MIT */
/* The writer's half of the trace buffer: everything but the common case, which
 * is trace_entry_ring in the port's trampoline.S. */
#include <tracer/ring/ring_internal.h>
#include <tracer/ring/ring_event.h>
#include <tracer/ring/ring_more.h>

#include <arch/arch_trace.h>
#include <tracer/base/instance.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/patch_path.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/sched/task.h>

#define OF_TOP                                                                 \
	{                                                                      \
		[0 ... MAX_CPUS - 1] = {.in = &trace_top }                     \
	}
struct ring rings[MAX_CPUS] = OF_TOP, ring_spares[MAX_CPUS] = OF_TOP;
/* One word, so that a writer on any CPU sees the whole mode of one moment. */
u32 ring_mode;

/* Where records are made with RING_APART. The second is for an NMI, or inside the tracer. */
static u64 apart_records[MAX_CPUS][2][EVENT_MAX / sizeof(u64)];

/* The page that the writer is in. Its last slot ends before the page does. */
static inline struct ring_page *current_page(const struct ring *r)
{
	static_assert(sizeof(struct ring_page) < PAGE_SIZE, "so it lies in it");
	return (struct ring_page *)ALIGN_DOWN((uintptr_t)r->at->cur, PAGE_SIZE);
}

/*
 * Open the writer's page p to the trampolines: they may use nothing unless the CPU records and is
 * not inside the tracer. ring.cur keeps its place all the while.
 */
static inline void open_page_at(const struct ring *r, struct ring_page *p)
{
	char *end = r->passed_over ? (char *)RING_PASS :
				     (char *)(p->slots + RING_SLOTS);

	if (!r->recording || r->busy || r->full || ring_mode & RING_BY_C)
		end = NULL;
	r->at->end = end;
	r->at->calls = ring_mode & RING_CALLS ? end : (char *)RING_PASS;
	r->at->graph = ring_mode & RING_GRAPH && !r->passed_over ? end : NULL;
}

static inline void open_page(const struct ring *r)
{
	open_page_at(r, current_page(r));
}

void ring_reopen(const struct ring *r)
{
	open_page(r);
}

/*
 * From here on no reader gets an entry of page p. The exchange decides against a reader that takes
 * an entry at this moment: an entry is counted as read, or as overwritten, never as both.
 */
void ring_take_page_back(struct ring *r, struct ring_page *p)
{
	u32 old = __atomic_exchange_n(&p->state, RING_STATE(RING_NOBODY, 0, 0),
				      __ATOMIC_ACQ_REL);
	u32 entries = p->used - p->inner;

	/* New slots after the new state: pairs with the fence in
	 * ring_read.c's copy_slots(). */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	/* A clear leaves the pages as they are, whose number a user chooses. */
	if (RING_STATE_GEN(old) == RING_NOBODY || (s32)(p->seq - r->first) < 0)
		return;
	r->read += RING_STATE_ENTRIES(old);
	r->overwritten += entries - RING_STATE_ENTRIES(old);
}

/* Make page number seq the one being written, its times counting from now. */
static void begin_ring_page(struct ring *r, u32 seq, u64 before, u64 now)
{
	struct ring_page *p = r->pages[seq % r->nr];
	struct ring_place *at = r->at;

	ring_take_page_back(r, p);
	r->full = false;
	at->base = now;
	p->base = now;
	p->before = before;
	p->used = 0;
	p->inner = 0;
	p->pid = r->pid;
	p->seq = seq;
	if (seq - r->tail >= r->nr)
		WRITE_ONCE(r->tail, seq - r->nr + 1);
	/* The header before the state, both before ring.cur and head: pairs
	 * with the acquires in ring_read.c. */
	__atomic_store_n(&p->state, RING_STATE(RING_GEN(seq), 0, 0),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&at->cur, (char *)p->slots, __ATOMIC_RELEASE);
	__atomic_store_n(&r->head, seq, __ATOMIC_RELEASE);
	open_page_at(r, p);
}

/* While the writer is in a page, its place says how many slots are used. */
static void close_page(struct ring *r)
{
	struct ring_page *p = current_page(r);

	p->used = ring_slots_used(p, r->at->cur);
}

static void take_back_all(struct ring *r)
{
	u32 i;

	for (i = 0; i < r->nr; i++)
		ring_take_page_back(r, r->pages[i]);
}

/* A page counts what was written before it, so that a reader that missed pages knows how many
 * entries they held. */
static void next_page(struct ring *r, u64 now)
{
	struct ring_page *p = current_page(r);
	u64 before;

	close_page(r);
	before = p->before + p->used - p->inner;
	if (r->head == ~0u) {
		/* Page numbers run over after 2^32 pages: start again. */
		take_back_all(r);
		r->head = r->tail = r->first = 0;
		begin_ring_page(r, 0, before, now);
	} else {
		begin_ring_page(r, r->head + 1, before, now);
	}
}

static inline void publish_slots(const struct ring *r, u32 slots)
{
	struct ring_place *at = r->at;

	/* Pairs with the acquire of ring.cur in ring_read.c. */
	__atomic_store_n(&at->cur, at->cur + slots * RING_EVENT_SIZE,
			 __ATOMIC_RELEASE);
}

/* Does the oldest page, which would be written next, hold entries that no reader has consumed
 * and that option overwrite does not give up? */
static bool must_keep(const struct ring *r)
{
	const struct ring_page *p;
	u32 state;

	if (READ_ONCE(r->in->overwrites) || r->head + 1 - r->tail < r->nr)
		return false;
	p = r->pages[(r->head + 1) % r->nr];
	state = READ_ONCE(p->state);
	return RING_STATE_GEN(state) != RING_NOBODY &&
	       RING_STATE_ENTRIES(state) < (u32)(p->used - p->inner);
}

/*
 * Room for n slots in one page, and a clock base that 32 bits reach from. NULL: the ring is full,
 * and must keep its entries. From then on every entry goes through here until a reader has freed a
 * page, so that none finds room after another that has not.
 */
static struct ring_event *reserve_slots(struct ring *r, u32 n, u64 now,
					u32 *delta)
{
	struct ring_page *p = current_page(r);
	struct ring_place *at = r->at;
	struct ring_event *e;

	/* A mark that the caller has just made may have begun the page later than `now`. */
	if ((s64)(now - at->base) < 0)
		now = at->base;
	if (at->cur + (n + 1) * RING_EVENT_SIZE >
		    (char *)(p->slots + RING_SLOTS) ||
	    r->full) {
		if (must_keep(r)) {
			r->full = true;
			open_page(r);
			return NULL;
		}
		next_page(r, now);
	} else if ((now - at->base) >> 32) {
		e = (struct ring_event *)at->cur;
		e->delta = now;
		e->ip = RING_TIME << 8;
		e->parent = now >> 32;
		p->inner++;
		publish_slots(r, 1);
		at->base = now;
	}
	*delta = now - at->base;
	return (struct ring_event *)at->cur;
}

/*
 * Entries do not name their task: 12 bytes have no room for it. So the ring says whenever another
 * task begins to run, and a page's header says it again, because the mark may be overwritten.
 * stayed: RING_STAYED if the task ran here last.
 */
static void mark_task(struct ring *r, s32 pid, u32 stayed)
{
	struct ring_event *e;
	u32 delta;

	e = reserve_slots(r, 1, arch_clock(), &delta);
	r->pid = pid;
	r->unmarked = false;
	if (!e)
		return; /* the next page's header says it */
	e->delta = delta;
	e->ip = RING_TASK << 8 | stayed;
	e->parent = pid;
	current_page(r)->inner++;
	publish_slots(r, 1);
}

/* Where a trigger has ended the recording, marks would in the end take the place of all entries:
 * C code, which alone writes then, marks the task when the recording goes on. */
static void mark_task_in_time(struct ring *r, s32 pid, u32 stayed)
{
	if (!READ_ONCE(r->in->on) && READ_ONCE(ring_mode) & RING_BY_C)
		r->unmarked = true;
	else
		mark_task(r, pid, stayed);
}

/* A task that is passed over may write a marker, so it is marked then. The task behind it is
 * marked always: a reader must see that it had left. */
void ring_task(struct task *prev, struct task *next, bool traced)
{
	unsigned int here = cpu_index();
	struct ring *r = &rings[here];

	if (r->recording && traced && (next->pid != r->pid || r->passed_over))
		mark_task_in_time(r, next->pid,
				  next->left_cpu == here ? RING_STAYED : 0);
	prev->left_cpu = here;
	r->passed_over = !traced;
	open_page(r);
}

/* Say which number the entry has that comes next, and for which there is room. Its first slot. */
static struct ring_event *put_number(struct ring *r, struct ring_event *e)
{
	u64 number = ring_count(1);

	e->delta = number;
	e->ip = RING_COUNT << 8;
	e->parent = number >> 32;
	current_page(r)->inner++;
	publish_slots(r, 1);
	return e + 1;
}

/* An entry's first slot. `more` are there for the caller to fill and publish. NULL: there is no
 * room, and the entry has been counted as dropped. */
static struct ring_event *begin_entry(struct ring *r, u32 ip, u32 parent,
				      u32 context, u32 more, u64 now)
{
	bool counts = instance_counts(r->in);
	u32 delta;
	struct ring_event *e = reserve_slots(r, counts + 1 + more, now, &delta);

	if (!e) {
		r->dropped++;
		return NULL;
	}
	if (counts)
		e = put_number(r, e);
	e->delta = delta;
	e->ip = ip << 8 | (context & 0xff);
	e->parent = parent << 8 | (context >> 8 & 0xff);
	current_page(r)->inner += more;
	return e;
}

/* Two switches: `recording` is this CPU's, which hears of a change by an interrupt. `on` is the
 * instance's, which a trigger clears for all CPUs at once. */
bool ring_is_on(const struct ring *r)
{
	return r->recording && READ_ONCE(r->in->on);
}

bool ring_takes_calls(const struct ring *r)
{
	return ring_is_on(r) && !r->passed_over;
}

/*
 * A trampoline comes here when its own page is closed to it (ring.end is NULL, or reached). Mostly
 * the page is full. The reasons why this CPU does not record are all looked at again, for the
 * trampoline has read one word alone.
 */
bool ring_write_at(u32 ip, u32 parent, u32 context,
		   const struct ring_event *more, u64 *clock)
{
	struct cpu_head *head = &arch_this_cpu()->head;
	struct ring *r = &rings[head->index];
	u32 gate = READ_ONCE(ring_mode) & RING_GATE;
	bool open = __builtin_expect(gate == RING_OPEN, 1);
	struct ring_event *e;

	if (!open && (!gate || !ring_takes_calls(r)))
		return false;
	/* An NMI may have come while the ring was being written. */
	if (r->busy || (context & PREEMPT_NMI)) {
		r->dropped++;
		return false;
	}
	if (open && !r->recording)
		return false;
	if (r->unmarked)
		mark_task(r, head->current->pid, 0);
	e = begin_entry(r, ip, parent, context, !!more,
			*clock == RING_NOW ? arch_clock() : *clock);
	if (!e)
		return false;
	*clock = r->at->base + e->delta;
	if (more)
		e[1] = *more;
	publish_slots(r, more ? 2 : 1);
	return true;
}

void trace_ring_slow(unsigned long ip, unsigned long parent, u32 context)
{
	ring_write(ip - (unsigned long)_text, parent - (unsigned long)_text,
		   context, NULL);
}

/* Does a ring record an entry now that no trampoline writes? The task that runs is marked then. */
static bool open_apart(struct ring *r)
{
	const struct cpu_head *head = &arch_this_cpu()->head;

	if (!ring_is_on(r))
		return false;
	if (rings[head->index].busy || (head->preempt_count & PREEMPT_NMI)) {
		r->dropped++;
		return false;
	}
	if (head->current->pid != r->pid)
		mark_task(r, head->current->pid, 0);
	return true;
}

/* An instance's ring has no trampoline of its own: C code writes each of its calls. */
bool ring_put_call(struct ring *r, unsigned long ip, unsigned long parent,
		   u32 context)
{
	if (!open_apart(r) || !begin_entry(r, ip - (unsigned long)_text,
					   parent - (unsigned long)_text,
					   context, 0, arch_clock()))
		return false;
	publish_slots(r, 1);
	return true;
}

int ring_put_bytes(struct ring *r, u32 type, u32 context, const void *text,
		   size_t len)
{
	u32 more = RING_MORE_SLOTS(len);
	struct ring_event *e;

	if (current_task()->pid != r->pid)
		mark_task(r, current_task()->pid, 0);
	e = begin_entry(r, type, len, context, more, arch_clock());
	if (!e)
		return -ENOSPC;
	memcpy(e + 1, text, len);
	publish_slots(r, 1 + more);
	return 0;
}

/* Where the record has no ring yet: its triggers' filters and the instances look at it first, and
 * then it is copied to each ring that wants it. */
static noinline void *begin_apart(const struct ring *r,
				  const struct cpu_head *head)
{
	return apart_records[head->index]
			    [r->busy || (head->preempt_count & PREEMPT_NMI)];
}

void *ring_event_slow(bool irqs_off, u32 size)
{
	struct cpu_head *head = &arch_this_cpu()->head;
	struct ring *r = &rings[head->index];
	struct ring_event *e;
	/* Pairs with the release in ring_set_mode(): every event is special before RING_APART. */
	u32 delta, mode = __atomic_load_n(&ring_mode, __ATOMIC_ACQUIRE);

	if (__builtin_expect(mode & RING_APART, 0))
		return begin_apart(r, head);
	if (!r->recording)
		goto none;
	/* While 0 is being written to tracing_on, a CPU that has not heard of it records on: its
	 * ring.end is not NULL. Else the events would be missing that find their page full. */
	if (!READ_ONCE(trace_top.on) && !head->ring.end) {
		/* For a trigger's filter alone. A place in the ring could cost the oldest
		 * page. */
		if (mode & RING_TRIGGERS)
			return begin_apart(r, head);
		goto none;
	}
	if (r->busy || (head->preempt_count & PREEMPT_NMI)) {
		r->dropped++;
		goto none;
	}
	/* A task that is passed over may have events. */
	if (head->current->pid != r->pid)
		mark_task(r, head->current->pid, 0);
	e = reserve_slots(r, 1 + RING_MORE_SLOTS(size + 4), arch_clock(),
			  &delta);
	if (!e) {
		r->dropped++;
		goto none;
	}
	e->delta = delta;
	return ring_event_record(e);
none:
	ring_event_drop(irqs_off);
	return NULL;
}
PATCH_ROOT(ring_event_slow);

bool ring_is_apart(const void *record)
{
	return (uintptr_t)record - (uintptr_t)apart_records <
	       sizeof(apart_records);
}

void ring_put_event(struct ring *r, unsigned int id, bool irqs_off,
		    const void *record, u32 size)
{
	u32 len = size + 4, more = RING_MORE_SLOTS(len), *to;
	const u32 *from = record;
	struct ring_event *e;

	if (!open_apart(r))
		return;
	e = begin_entry(r, RING_EVENT(id), len, ring_context(irqs_off), more,
			arch_clock());
	if (!e)
		return;
	to = ring_event_record(e);
	/* By words: memcpy() copies bytes. */
	for (u32 i = 0; i < size / sizeof(u32); i++)
		WRITE_ONCE(to[i], from[i]);
	publish_slots(r, 1 + more);
}

void ring_restart(struct ring *r)
{
	r->read = r->overwritten = r->dropped = 0;
	r->began = arch_clock();
	r->first = r->head == ~0u ? 0 : r->head + 1;
	WRITE_ONCE(r->tail, r->first);
	begin_ring_page(r, r->tail, 0, r->began);
}

/* For a snapshot: the writer begins anew in the spare's pages, and nothing is copied. */
void ring_exchange(struct ring *r, struct ring *spare)
{
	struct ring_page **pages = spare->pages;

	close_page(r);
	*spare = *r;
	spare->at = NULL;
	r->pages = pages;
	ring_restart(r);
}

void ring_forget(struct ring *spare)
{
	struct ring_page *p = spare->pages[spare->head % spare->nr];

	take_back_all(spare);
	spare->read = spare->overwritten = spare->dropped = 0;
	spare->tail = spare->head;
	p->before = 0;
	p->used = p->inner = 0;
}

/* On the ring's own CPU. The trampolines see nothing but the page, which is opened last. */
void ring_switch(struct ring *r, s32 pid, bool on, bool traced)
{
	if (on && pid != r->pid)
		mark_task_in_time(r, pid, 0);
	r->recording = on;
	r->passed_over = on && !traced;
	open_page(r);
}
