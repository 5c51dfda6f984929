/* SPDX-License-Identifier: MIT */
/* The readers' half of the trace buffer. ring.h has the protocol. */
#include <tracer/ring/ring_read.h>
#include <tracer/ring/ring_decode.h>
#include <tracer/ring/ring_control.h>
#include <tracer/base/instance.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/sched/task.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/page.h>
#include <kernel/panic.h>

/*
 * A reader holds no lock against the writer, which may take any page back at any moment. So it
 * copies first, and then looks whether the page is still the one that it began with. Only slots
 * that passed this second look are decoded: a decoder never sees one that is half written.
 */

/* Oldest and newest page that a reader may look for at this moment. */
static void live_pages(const struct ring *r, u32 *tail, u32 *head)
{
	/* Acquire: pairs with begin_ring_page()'s release of head. */
	*head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
	*tail = READ_ONCE(r->tail);
	if (*head - *tail > r->nr)
		*tail = *head;
}

/* A clear leaves the pages' states as they were. */
static bool is_live(const struct ring *r, u32 seq)
{
	u32 tail, head;

	live_pages(r, &tail, &head);
	return seq - tail <= head - tail;
}

/* Slots of page p that are written. */
static notrace u32 slots_of(const struct ring *r, const struct ring_page *p)
{
	/* Acquire: pairs with the writer's release of ring.cur, which comes
	 * after a slot, and after `used` when it leaves the page. */
	const char *cur =
		r->at ? __atomic_load_n(&r->at->cur, __ATOMIC_ACQUIRE) : NULL;

	if (cur >= (char *)p->slots && cur <= (char *)(p->slots + RING_SLOTS))
		return ring_slots_used(p, cur);
	return READ_ONCE(p->used);
}

/* The same for page number seq. False: it is gone. */
static bool written_slots(const struct ring *r, const struct ring_page *p,
			  u32 seq, u32 *state, u32 *slots)
{
	/* Acquire: pairs with begin_ring_page()'s release of state. */
	*state = __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);
	if (RING_STATE_GEN(*state) != RING_GEN(seq))
		return false;
	*slots = slots_of(r, p);
	return *slots <= RING_SLOTS;
}

/*
 * Copy the slots that have been written by now. False: the page is gone, and slots of the copy
 * beyond c->copied may hold anything.
 */
static bool copy_slots(struct ring_cursor *c, struct ring_page *p, u32 *state)
{
	u32 slots;

	if (!written_slots(c->ring, p, c->seq, state, &slots))
		return false;
	if (c->bounded && c->seq == c->end_seq)
		slots = min(slots, c->end_slots);
	if (!c->copied)
		memcpy(c->copy, p, offsetof(struct ring_page, slots));
	if (slots > c->copied)
		memcpy(c->copy->slots + c->copied, p->slots + c->copied,
		       (slots - c->copied) * sizeof(p->slots[0]));
	/* The copy before the second look: pairs with take_back()'s fence. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (RING_STATE_GEN(READ_ONCE(p->state)) != RING_GEN(c->seq) ||
	    !is_live(c->ring, c->seq))
		return false;
	c->copied = max(slots, c->copied);
	return true;
}

/* A reader of the file `trace` stops where the ring ended when the file was opened. Else a busy
 * machine would write faster than the reader reads, and it would never end. */
static bool past_end(const struct ring_cursor *c)
{
	return c->bounded && (s32)(c->seq - c->end_seq) > 0;
}

/* More slots in the copy, from this page or a later one. False: none now. */
static bool refill_cursor(struct ring_cursor *c, u32 *state)
{
	const struct ring *r = c->ring;
	u32 tail, head, had = c->copied;

	while (!past_end(c)) {
		live_pages(r, &tail, &head);
		if (c->seq - tail > head - tail) {
			c->seq = tail;
			c->copied = had = 0;
			continue;
		}
		if (copy_slots(c, r->pages[c->seq % r->nr], state)) {
			if (!had && c->copied)
				ring_decode_page(c);
			if (c->copied > had)
				return true;
		}
		/* All read, or taken back just now. Where head is further on,
		 * the writer left the page before we looked at it. */
		if (c->seq == head)
			return false;
		c->seq++;
		c->copied = had = 0;
	}
	return false;
}

/* No ring's pages are exchanged, or freed, from here on. In a panic the other CPUs have stopped,
 * and do not unlock it. */
static void lock_pages(void)
{
	if (!panic_here())
		mutex_lock(&ring_readers);
}

static void unlock_pages(void)
{
	if (!panic_here())
		mutex_unlock(&ring_readers);
}

static void lock_pages_of(const struct ring_cursor *c)
{
	if (!c->locked)
		lock_pages();
}

static void unlock_pages_of(const struct ring_cursor *c)
{
	if (!c->locked)
		unlock_pages();
}

void ring_cursor_begin(struct ring_cursor *c)
{
	lock_pages_of(c);
	c->locked = true;
}

void ring_cursor_end(struct ring_cursor *c)
{
	c->locked = false;
	unlock_pages_of(c);
}

/* No site: its calls would be entries, which it would read next. Entries that trace_pipe has
 * consumed are passed over here, as the page's state tells.
 *
 * A ring that has been read through once holds no entry from before the call. So the cursor goes
 * no further: two readers that wait for each other's pages would leave a mark each time, and read
 * nothing but these marks for ever. */
notrace bool ring_cursor_peek(struct ring_cursor *c)
{
	u32 state = 0, consumed = 0, refills = 0;
	bool more = true;

	if (c->after)
		return true;
	do {
		/* Consumed slots are walked too, for the pid and the time. */
		while (c->copied && c->at < c->copied)
			if (ring_decode_slot(c) && c->at > consumed) {
				c->after = c->at;
				return true;
			}
		lock_pages_of(c);
		more = c->ring->pages && refills++ <= c->ring->nr &&
		       refill_cursor(c, &state);
		unlock_pages_of(c);
		consumed = RING_STATE_SLOTS(state);
	} while (more);
	return false;
}

/* The second of two entries that were joined is to come again. */
static void part_entries(struct ring_cursor *c)
{
	c->at = c->first;
	c->entries--;
	c->position--;
}

/*
 * The state holds how many slots have been consumed, and by a compare-and-swap it moves forward
 * alone. So of two readers one gets an entry, and none gets an entry that the writer took back.
 */
notrace bool ring_cursor_take(struct ring_cursor *c)
{
	const struct ring *r = c->ring;
	u32 new = RING_STATE(RING_GEN(c->seq), c->after, c->entries);
	bool ours = false, leaf = c->entry.graph == RING_GRAPH_LEAF;
	u32 gone = RING_STATE(RING_NOBODY, 0, 0), *state, old;
	u32 first = leaf ? c->first : c->after;

	lock_pages_of(c);
	/* Since peek the ring may have been cleared, or a snapshot's memory given back. */
	state = r->pages && is_live(r, c->seq) ?
			&r->pages[c->seq % r->nr]->state :
			&gone;
	old = READ_ONCE(*state);
	while (RING_STATE_GEN(old) == RING_GEN(c->seq) &&
	       RING_STATE_SLOTS(old) < first && !ours)
		/* Against take_back()'s exchange: one of the two gets it. */
		ours = __atomic_compare_exchange_n(state, &old, new, false,
						   __ATOMIC_ACQ_REL,
						   __ATOMIC_RELAXED);
	if (RING_STATE_GEN(old) != RING_GEN(c->seq))
		c->lost++;
	unlock_pages_of(c);
	if (leaf && !ours)
		part_entries(c);
	c->after = 0;
	return ours;
}

u32 ring_cursor_pages(struct ring_cursor *c)
{
	u32 tail, head;

	live_pages(c->ring, &tail, &head);
	return c->seq - tail > head - tail ? head - tail : head - c->seq;
}

/* ---- Opening and the books ------------------------------------------------- */

/* On the ring's own CPU, with interrupts off: the writer stands still, and its numbers agree with
 * each other. */
static void note_ring_end(unsigned int cpu, void *arg)
{
	struct ring_cursor *c = arg;
	const struct ring *r = c->ring;
	const struct ring_page *oldest;

	c->end_seq = r->head;
	(void)cpu;
	c->end_slots = slots_of(r, r->pages[r->head % r->nr]);
	c->seq = r->tail;
	/* To a cursor without an end, entries overwritten from here on are lost. To the first such
	 * cursor since the ring was cleared, entries overwritten before are lost, too. */
	if (!c->bounded) {
		oldest = r->pages[r->tail % r->nr];
		if (r->read || RING_STATE_ENTRIES(READ_ONCE(oldest->state)))
			c->position = oldest->before;
		c->fresh = false;
	}
}

void ring_cursor_restart(struct ring_cursor *c)
{
	*c = (struct ring_cursor){
		.ring = c->ring,
		.cpu = c->cpu,
		.fresh = true,
		.copy = c->copy,
	};
}

int ring_cursor_open(struct ring_cursor *c, const struct ring *set,
		     unsigned int cpu, bool bounded)
{
	struct ring_page *copy = page_alloc(0);

	if (!copy)
		return -ENOMEM;
	*c = (struct ring_cursor){ &set[cpu], .cpu = cpu, .copy = copy };
	ring_cursor_restart(c);
	c->bounded = bounded;
	lock_pages();
	if (c->ring->pages)
		ring_call(1u << cpu, note_ring_end, c);
	unlock_pages();
	return 0;
}

void ring_cursor_close(struct ring_cursor *c)
{
	if (c->copy)
		page_free(c->copy, 0);
	c->copy = NULL;
}

/* The number of a page's first entry, before which there are marks alone. 0: there is none. */
static u64 first_number(const struct ring_page *p, u32 used)
{
	const struct ring_event *e = p->slots;

	while (e < p->slots + used &&
	       (e->ip >> 8 == RING_TASK || e->ip >> 8 == RING_TIME))
		e++;
	return e < p->slots + used && e->ip >> 8 == RING_COUNT ?
		       (u64)e->parent << 32 | e->delta :
		       0;
}

struct collection {
	const struct ring *set;
	struct ring_stats *stats;
	bool begun, done;
	u32 low, high; /* pages from low to before high are in stats */
};

/* No site: a call here would be an entry in the ring whose entries are being counted. */
static notrace void collect_page(struct ring_stats *s, const struct ring *r,
				 u32 seq)
{
	const struct ring_page *p = r->pages[seq % r->nr];
	u32 used = slots_of(r, p);
	u32 state = READ_ONCE(p->state);
	u32 read = RING_STATE_ENTRIES(state);

	s->bytes += (used - RING_STATE_SLOTS(state)) * RING_EVENT_SIZE;
	s->read += read;
	s->held += used - p->inner - read;
	s->written = p->before + used - p->inner + r->dropped;
}

/*
 * As above: `written` and its four parts are of one moment, else the books would not close. The
 * writer takes back the oldest page first, so that is looked at last, in the same piece as the
 * newest. Readers are locked out. If the writer has taken back a page that was counted, all begins
 * anew.
 */
static void collect_stats(unsigned int cpu, void *arg)
{
	struct collection *c = arg;
	const struct ring *r = &c->set[cpu];
	const struct ring_page *oldest = r->pages[r->tail % r->nr];
	struct ring_stats *s = c->stats;
	u32 left = RING_PAGES_AT_ONCE;

	if (!c->begun || (s32)(r->tail - c->low) > 0) {
		*s = (struct ring_stats){ 0 };
		c->low = c->high = r->head;
		c->begun = true;
	}
	for (; left && c->high != r->head; left--)
		collect_page(s, r, c->high++);
	for (; left && c->low != r->tail; left--)
		collect_page(s, r, --c->low);
	c->done = c->high == r->head && c->low == r->tail;
	if (!c->done)
		return;
	collect_page(s, r, r->head);
	s->read += r->read;
	s->overwritten = r->overwritten;
	s->dropped = r->dropped;
	s->oldest = instance_counts(r->in) ?
			    first_number(oldest, slots_of(r, oldest)) :
			    oldest->base;
}

void ring_stats(const struct ring *set, unsigned int cpu, struct ring_stats *s)
{
	struct collection c = { .set = set, .stats = s };

	*s = (struct ring_stats){ 0 };
	lock_pages();
	while (set[cpu].pages && !c.done)
		ring_call(1u << cpu, collect_stats, &c);
	unlock_pages();
}
