/* SPDX-License-Identifier: MIT */
/* One CPU's ring in a guest's memory: ring.h. tracer/ring/ring.h describes it. */
#include "ring.h"

#include <string.h>

/* Of an entry, as far as the kernel makes them, and so that each fits into a page of trace.dat. */
#define MOST_SLOTS 200
#define REPEATS_BYTES 20 /* struct ring_repeats */

/* ---- Numbers of a page ----------------------------------------------------------- */

static u32 word(const struct trace *t, const uint8_t *p)
{
	return image_number(&t->g->im, p, 4);
}

static u64 field_of(const struct trace *t, u64 at, const char *name)
{
	return guest_get(t->g, at, "ring", name);
}

/* A member of the page that has been copied. */
static u64 in_page(const struct trace *t, const struct cursor *c,
		   const char *name)
{
	struct member m = guest_member(t->g, "ring_page", name);

	return image_number(&t->g->im, c->page + m.at, m.size);
}

static const uint8_t *slot(const struct trace *t, const struct cursor *c, u32 i)
{
	return c->page + t->slots_at + (size_t)i * RING_EVENT_SIZE;
}

/* ---- Pages ----------------------------------------------------------------------- */

static bool page_is(const struct trace *t, const struct cursor *c, u64 addr)
{
	u64 state = guest_get(t->g, addr, "ring_page", "state");

	return RING_STATE_GEN((u32)state) == RING_GEN(c->seq);
}

/* Pages of a snapshot that was cleared belong to no ring. The last one says that it is empty. */
static bool is_empty(const struct trace *t, u64 addr)
{
	u64 state = guest_get(t->g, addr, "ring_page", "state");

	return RING_STATE_GEN((u32)state) == RING_NOBODY &&
	       !guest_get(t->g, addr, "ring_page", "used");
}

/* How many slots of the page at addr are written. */
static u32 slots_used(const struct trace *t, const struct cursor *c, u64 addr)
{
	u64 first = addr + guest_member(t->g, "ring_page", "slots").at;

	if (c->writer >= first &&
	    c->writer <= first + RING_SLOTS * RING_EVENT_SIZE)
		return (c->writer - first) / RING_EVENT_SIZE;
	return guest_get(t->g, addr, "ring_page", "used");
}

/*
 * Copy page number seq. false: it does not hold that page. The guest may be running:
 * what says whether the page is still the same is looked at after the copy, too.
 */
static bool copy_page(const struct trace *t, struct cursor *c)
{
	u64 addr = guest_pointer(
		t->g, c->pages + (u64)(c->seq % c->nr) * t->g->im.pointer_size);
	const uint8_t *p = guest_at(t->g, addr, PAGE_BYTES);

	c->used = c->consumed = 0;
	if (p && c->seq == c->head && is_empty(t, addr))
		return true;
	if (!p || !page_is(t, c, addr))
		return false;
	c->used = slots_used(t, c, addr);
	if (c->used > RING_SLOTS)
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	memcpy(c->page, p, PAGE_BYTES);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!page_is(t, c, addr))
		return false;
	c->consumed = RING_STATE_SLOTS((u32)in_page(t, c, "state"));
	return c->consumed <= c->used;
}

static void begin_page(const struct trace *t, struct cursor *c)
{
	u64 before;

	c->at = 0;
	if (!c->used)
		return;
	before = in_page(t, c, "before");
	c->base = in_page(t, c, "base");
	c->number = 0;
	c->pid = in_page(t, c, "pid");
	if (!c->fresh && before > c->position) {
		c->lost += before - c->position;
		c->gaps += before - c->position;
	}
	c->position = before;
	c->fresh = false;
}

/* ---- Entries --------------------------------------------------------------------- */

static u32 more_slots(enum kind kind, u32 ip, u32 len)
{
	if (ip == RING_RETURN)
		return 1;
	if (kind == MARKER || kind == RAW || kind == STACK || kind == EVENT ||
	    ip == RING_REPEATS)
		return RING_MORE_SLOTS(len);
	return 0;
}

static enum kind kind_of(u32 ip, u32 w2)
{
	u32 parent = w2 >> 8;

	if (ip == RING_MARK)
		return MARKER;
	if (ip == RING_RAW)
		return RAW;
	if (ip == RING_STACK)
		return STACK;
	if (ip == RING_RETURN)
		return GRAPH_RETURN;
	if (RING_IS_EVENT(ip))
		return EVENT;
	if (ip == RING_REPEATS)
		return CALL;
	if (w2 & RING_RETURNED)
		return GRAPH_RETURN;
	return parent >= RING_ENTRY(0) ? GRAPH_ENTRY : CALL;
}

/*
 * Decode the slot at c->at, and go behind it. 1: an entry. 0: not one. -1: the rest of the
 * page makes no sense.
 */
static int decode(const struct trace *t, struct cursor *c)
{
	const uint8_t *p = slot(t, c, c->at), *more = p + RING_EVENT_SIZE;
	u32 delta = word(t, p), w1 = word(t, p + 4), w2 = word(t, p + 8);
	u32 ip = w1 >> 8, parent = w2 >> 8; /* parent, or a length */
	u64 text = t->g->im.text;
	struct trace_entry *e = &c->entry;
	u64 lost = e->lost;
	u32 skip;

	if (ip == RING_TIME || ip == RING_TASK || ip == RING_COUNT) {
		if (ip == RING_TIME)
			c->base = (u64)w2 << 32 | delta;
		else if (ip == RING_COUNT)
			c->number = (u64)w2 << 32 | delta;
		else
			c->pid = w2;
		c->at++;
		return 0;
	}
	*e = (struct trace_entry){
		.kind = kind_of(ip, w2),
		.clock = c->base + delta,
		.number = c->number,
		.cpu = c->cpu,
		.pid = c->pid,
		.context = (w1 & 0xff) | (w2 & 0xff) << 8,
		.lost = lost,
	};
	skip = more_slots(e->kind, ip, parent);
	if (c->at + 1 + skip > c->used || skip > MOST_SLOTS ||
	    (ip == RING_REPEATS && parent < REPEATS_BYTES) ||
	    (ip == RING_RAW && parent < 4))
		return -1;
	c->at += 1 + skip;
	c->position++;
	e->ns = trace_ns(t, e->clock);
	if (ip == RING_REPEATS) {
		e->ip = text + word(t, more);
		e->parent = text + word(t, more + 4);
		e->repeats = word(t, more + 8);
		e->last = (u64)word(t, more + 16) << 32 | word(t, more + 12);
	} else if (e->kind == GRAPH_RETURN && ip != RING_RETURN) {
		e->context &= ~(RING_RETURNED << 8);
		e->ip = text + ip;
		e->ticks = RING_RETURN_TICKS(w2);
		e->depth = RING_RETURN_DEPTH(w2);
	} else if (e->kind == GRAPH_RETURN) {
		e->ip = text + parent;
		e->ticks = (u64)word(t, more + 4) << 32 | word(t, more);
		e->depth = word(t, more + 8) & 0xff;
		e->missed = word(t, more + 8) >> 8;
	} else if (e->kind == GRAPH_ENTRY) {
		e->ip = text + ip;
		e->depth = parent - RING_ENTRY(0);
	} else if (e->kind == CALL) {
		e->ip = text + ip;
		e->parent = text + parent;
	} else {
		e->bytes = more;
		e->len = parent;
	}
	if (e->kind == EVENT) {
		/* The record is aligned to 8, as its page is. */
		u32 pad = (more - c->page) & 4;

		e->id = ip - (u32)RING_TYPE(0);
		e->bytes += pad;
		e->len -= e->len < 4 ? e->len : 4;
		if (!find_event(t, e->id))
			e->kind = UNKNOWN;
	}
	return 1;
}

/* The rest of the page is passed over. */
static void spoilt(struct cursor *c, const char *why)
{
	fprintf(stderr, "extract: CPU %u, page %u: %s; skipped\n", c->cpu,
		c->seq, why);
	c->lost_pages++;
	c->at = c->used = 0;
}

bool cursor_peek(const struct trace *t, struct cursor *c)
{
	int found;

	while (!c->has) {
		while (c->at < c->used && !c->has) {
			found = decode(t, c);
			if (found < 0)
				spoilt(c, "an entry is not whole");
			c->has = found > 0 && c->at > c->consumed;
		}
		if (c->has)
			break;
		c->at = c->used = 0;
		if (!c->pages || c->next - c->tail > c->head - c->tail)
			return false;
		c->seq = c->next++;
		if (copy_page(t, c))
			begin_page(t, c);
		else
			spoilt(c, "it is being written, or is no page of the "
				  "ring");
	}
	c->entry.lost = c->lost;
	c->entry.overwritten = c->begun ? 0 : c->overwritten;
	return true;
}

const struct trace_entry *cursor_take(struct cursor *c)
{
	c->has = false;
	c->begun = true;
	c->lost = 0;
	return &c->entry;
}

const struct trace_entry *cursor_next(struct trace *t, struct cursor *c)
{
	return cursor_peek(t, c) ? cursor_take(c) : NULL;
}

/* The task may have run on another CPU in between: as in tracer/ring/ring_read.c. */
static bool is_arrival(const struct trace *t, const uint8_t *p, s32 pid)
{
	u32 w1 = word(t, p + 4);

	return w1 >> 8 == RING_TASK && (s32)word(t, p + 8) == pid &&
	       !(w1 & RING_STAYED);
}

void cursor_join(const struct trace *t, struct cursor *c)
{
	struct trace_entry entry = c->entry;
	u64 base = c->base, position = c->position, number = c->number;
	u32 at = c->at;
	s32 pid = c->pid;
	bool moved = false;
	int found = 0;

	while (!found && c->at < c->used) {
		moved |= is_arrival(t, slot(t, c, c->at), entry.pid);
		found = decode(t, c);
	}
	if (found > 0 && c->entry.kind == GRAPH_RETURN &&
	    c->entry.ip == entry.ip && c->entry.pid == entry.pid &&
	    c->entry.depth == entry.depth &&
	    (!moved || c->entry.clock - c->entry.ticks == entry.clock)) {
		entry.kind = GRAPH_LEAF;
		entry.ticks = c->entry.ticks;
	} else {
		c->at = at;
		c->base = base;
		c->number = number;
		c->position = position;
		c->pid = pid;
	}
	c->entry = entry;
}

/* ---- Opening --------------------------------------------------------------------- */

/* How many entries of a ring are not consumed: as ring_stats() of the kernel counts. */
static u64 count(const struct trace *t, const struct cursor *c)
{
	u64 n = 0, addr, state;

	for (u32 seq = c->tail; c->pages && seq - c->tail <= c->head - c->tail;
	     seq++) {
		addr = guest_pointer(t->g,
				     c->pages + (u64)(seq % c->nr) *
							t->g->im.pointer_size);
		state = guest_get(t->g, addr, "ring_page", "state");
		n += slots_used(t, c, addr) -
		     guest_get(t->g, addr, "ring_page", "inner") -
		     RING_STATE_ENTRIES((u32)state);
	}
	return n;
}

void cursor_open(const struct trace *t, struct cursor *c, u64 ring)
{
	u64 at = field_of(t, ring, "at");

	c->ring = ring;
	c->fresh = true;
	c->pages = field_of(t, ring, "pages");
	c->nr = field_of(t, ring, "nr");
	c->head = field_of(t, ring, "head");
	c->next = c->tail = field_of(t, ring, "tail");
	c->overwritten = field_of(t, ring, "overwritten");
	c->dropped = field_of(t, ring, "dropped");
	c->writer = at ? guest_get(t->g, at, "ring_place", "cur") : 0;
	if (c->nr < 2 || c->nr > t->g->size / PAGE_BYTES ||
	    c->head - c->tail >= c->nr) {
		if (c->pages)
			fprintf(stderr,
				"extract: CPU %u: its ring makes no "
				"sense; skipped\n",
				c->cpu);
		c->pages = 0;
	}
	c->entries = count(t, c);
}
