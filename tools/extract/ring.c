/* SPDX-License-Identifier: MIT */
/*
 * The rings of a guest, page by page, for the tracer's readers (tracer/ring/ring_read.h). Each
 * number of a page is looked at once, where the page is copied: the readers trust their input.
 */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

struct ring rings[MAX_CPUS];

/* Of each ring, what the host alone needs. */
static struct place {
	const struct guest *g;
	u64 pages;  /* the address of the pages' addresses. 0: there are none */
	u64 writer; /* the address of its next slot. 0: it has no writer */
	u64 gaps,
		lost_pages; /* of the last cursor: entries, and pages, passed over */
	u32 complained; /* about all pages before this one */
} places[MAX_CPUS];

/* ---- Pages ----------------------------------------------------------------------- */

static u64 page_address(const struct place *p, const struct ring *r, u32 seq)
{
	return guest_pointer(p->g, p->pages + (u64)(seq % r->nr) * STORED_LONG);
}

static u32 state_of(const struct place *p, u64 addr)
{
	return guest_number(p->g, addr + offsetof(struct ring_page, state), 4);
}

/* How many slots of the page at addr are written. */
static u32 slots_used(const struct place *p, u64 addr)
{
	u64 first = addr + offsetof(struct ring_page, slots);

	if (p->writer >= first &&
	    p->writer <= first + RING_SLOTS * RING_EVENT_SIZE)
		return (p->writer - first) / RING_EVENT_SIZE;
	return guest_number(p->g, addr + offsetof(struct ring_page, used), 2);
}

/* Pages of a snapshot that was cleared belong to no ring. The last one says that it is empty. */
static bool is_empty(const struct place *p, u64 addr)
{
	return RING_STATE_GEN(state_of(p, addr)) == RING_NOBODY &&
	       !slots_used(p, addr);
}

/* Is the entry whole whose first slot is e, of `room` slots that are left, and has it the form that
 * the kernel gives it? */
static bool is_sound(const struct ring_event *e, u32 room)
{
	u32 ip = stored_u32(&e->ip) >> 8, w2 = stored_u32(&e->parent);
	u32 len = w2 >> 8, least = 0;

	if (ip == RING_TIME || ip == RING_TASK || ip == RING_COUNT)
		return true;
	if (ring_more_slots(ip, len) >= room)
		return false;
	if (ip == RING_RETURN)
		return (stored_u32(&e[1].parent) & 0xff) < TASK_RETURNS;
	if (ip == RING_REPEATS)
		least = sizeof(struct ring_repeats);
	else if (ip == RING_EVENT(RING_SWITCH) || ip == RING_EVENT(RING_WAKEUP))
		least = 4 + sizeof(struct ring_switch);
	else if (ip == RING_RAW || RING_IS_EVENT(ip))
		least = 4;
	else if (ip != RING_MARK && ip != RING_STACK)
		return !(w2 & RING_RETURNED) ||
		       RING_RETURN_DEPTH(w2) < TASK_RETURNS;
	return len >= least && len <= RING_MARK_MAX;
}

static u32 sound_slots(const struct ring_page *page, u32 used)
{
	const struct ring_event *e;
	u32 at = 0;

	while (at < used && is_sound(&page->slots[at], used - at)) {
		e = &page->slots[at];
		at += 1 + ring_more_slots(stored_u32(&e->ip) >> 8,
					  stored_u32(&e->parent) >> 8);
	}
	return at;
}

/* The numbers of a page's header, as the host has them. */
static void read_page_header(const struct place *p, struct ring_page *page)
{
#define NATIVE(member)                                                         \
	page->member = image_number(&p->g->im, (const uint8_t *)&page->member, \
				    sizeof(page->member))
	NATIVE(base);
	NATIVE(before);
	NATIVE(state);
	NATIVE(pid);
}

/*
 * Copy page number seq. Else the reason why not. The guest may be running: what says whether the
 * page is still the same is looked at after the copy, too.
 */
static const char *copy_page(const struct place *p, struct ring_cursor *c,
			     u32 seq)
{
	static const char gone[] =
		"it is being written, or is no page of the ring";
	u64 addr = page_address(p, c->ring, seq);
	const uint8_t *page = guest_at(p->g, addr, PAGE_SIZE);
	u32 used;

	if (page && seq == c->ring->head && is_empty(p, addr))
		return NULL;
	if (!page || RING_STATE_GEN(state_of(p, addr)) != RING_GEN(seq))
		return gone;
	used = slots_used(p, addr);
	if (used > RING_SLOTS)
		return gone;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	memcpy(c->copy, page, PAGE_SIZE);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	read_page_header(p, c->copy);
	if (RING_STATE_GEN(state_of(p, addr)) != RING_GEN(seq) ||
	    RING_STATE_SLOTS(c->copy->state) > used)
		return gone;
	c->copied = sound_slots(c->copy, used);
	return c->copied < used ? "an entry is not whole" : NULL;
}

/* Make the next page that of the cursor. False: there are no more. */
static bool next_page(struct ring_cursor *c)
{
	struct place *p = &places[c->cpu];
	const struct ring *r = c->ring;
	u64 lost = c->lost;
	u32 seq = c->seq;
	const char *wrong;

	c->at = c->copied = 0;
	if (!p->pages || seq - r->tail > r->head - r->tail)
		return false;
	c->seq++;
	wrong = copy_page(p, c, seq);
	if (wrong) {
		if ((s32)(seq - p->complained) >= 0)
			fprintf(stderr,
				"extract: CPU %u, page %u: %s; skipped\n",
				c->cpu, seq, wrong);
		p->complained = seq + 1;
		p->lost_pages++;
	}
	if (c->copied)
		ring_decode_page(c);
	p->gaps += c->lost - lost;
	return true;
}

/* ---- Cursors: tracer/ring/ring_read.h -------------------------------------------- */

int ring_cursor_open(struct ring_cursor *c, const struct ring *set,
		     unsigned int cpu, bool bounded)
{
	struct place *p = &places[cpu];

	*c = (struct ring_cursor){ .ring = &set[cpu], .cpu = cpu };
	c->copy = aligned_alloc(16, PAGE_SIZE);
	if (!c->copy)
		errx(1, "out of memory");
	ring_cursor_restart(c);
	if (!bounded)
		c->lost = c->ring->overwritten;
	p->gaps = p->lost_pages = 0;
	return 0;
}

void ring_cursor_restart(struct ring_cursor *c)
{
	*c = (struct ring_cursor){
		.ring = c->ring,
		.cpu = c->cpu,
		.seq = c->ring->tail, /* the page that comes next */
		.fresh = true,
		.copy = c->copy,
	};
}

void ring_cursor_close(struct ring_cursor *c)
{
	free(c->copy);
}

void ring_cursor_begin(struct ring_cursor *c)
{
	(void)c;
}

void ring_cursor_end(struct ring_cursor *c)
{
	(void)c;
}

bool ring_cursor_peek(struct ring_cursor *c)
{
	while (!c->after)
		if (c->at >= c->copied) {
			if (!next_page(c))
				return false;
		} else if (ring_decode_slot(c) &&
			   c->at > RING_STATE_SLOTS(c->copy->state)) {
			c->after = c->at;
		}
	return true;
}

bool ring_cursor_take(struct ring_cursor *c)
{
	c->after = 0;
	return true;
}

void ring_stats(const struct ring *set, unsigned int cpu, struct ring_stats *s)
{
	const struct place *p = &places[cpu];
	const struct ring *r = &set[cpu];
	u64 addr;

	*s = (struct ring_stats){ .overwritten = r->overwritten };
	for (u32 seq = r->tail; p->pages && seq - r->tail <= r->head - r->tail;
	     seq++) {
		addr = page_address(p, r, seq);
		s->held +=
			slots_used(p, addr) -
			guest_number(p->g,
				     addr + offsetof(struct ring_page, inner),
				     2) -
			RING_STATE_ENTRIES(state_of(p, addr));
	}
}

/* ---- Opening --------------------------------------------------------------------- */

void ring_open(const struct guest *g, unsigned int cpu, u64 ring)
{
	struct place *p = &places[cpu];
	struct ring *r = &rings[cpu];
	u64 at;

#define MEMBER(name) guest_get(g, ring, "ring", #name)
	*r = (struct ring){ .nr = MEMBER(nr),
			    .head = MEMBER(head),
			    .tail = MEMBER(tail),
			    .began = MEMBER(began),
			    .overwritten = MEMBER(overwritten),
			    .dropped = MEMBER(dropped) };
	at = MEMBER(at);
	*p = (struct place){ .g = g, .pages = MEMBER(pages) };
	p->writer = at ? guest_get(g, at, "ring_place", "cur") : 0;
	p->complained = r->tail;
	if (p->pages && (r->nr < 2 || r->nr > g->size / PAGE_SIZE ||
			 r->head - r->tail >= r->nr)) {
		fprintf(stderr,
			"extract: CPU %u: its ring makes no sense; skipped\n",
			cpu);
		p->pages = 0;
	}
}

u64 ring_lost(unsigned int cpu)
{
	return rings[cpu].overwritten + places[cpu].gaps;
}

void rings_say_lost(void)
{
	u64 pages = 0;

	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++) {
		pages += places[cpu].lost_pages;
		if (ring_lost(cpu) || rings[cpu].dropped)
			fprintf(stderr,
				"extract: CPU %u: %llu entries were "
				"overwritten, %llu skipped, %llu dropped\n",
				cpu, (unsigned long long)rings[cpu].overwritten,
				(unsigned long long)places[cpu].gaps,
				(unsigned long long)rings[cpu].dropped);
	}
	if (pages)
		fprintf(stderr, "extract: %llu pages were skipped\n",
			(unsigned long long)pages);
}
