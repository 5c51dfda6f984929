/* SPDX-License-Identifier: MIT */
/* A page of the trace buffer, entry by entry: ring_decode.h. */
#include <tracer/ring/ring_decode.h>

#include <kernel/image/symbols.h>
#include <kernel/sched/task.h>
#include <tracer/base/stored.h>

void ring_decode_page(struct ring_cursor *c)
{
	c->at = c->after = c->entries = 0;
	c->base = c->copy->base;
	c->number = 0;
	c->pid = c->copy->pid;
	/* They count from the last clear: which was behind that position, if there are fewer. */
	if (!c->fresh)
		c->lost += c->copy->before >= c->position ?
				   c->copy->before - c->position :
				   c->copy->before;
	c->position = c->copy->before;
	c->fresh = false;
}

/* Two words, the low one first. */
static u64 stored_pair(const u32 *p)
{
	return (u64)stored_u32(p + 1) << 32 | stored_u32(p);
}

static void decode_call(struct ring_entry *entry, u32 ip, u32 parent)
{
	entry->ip = STORED_TEXT + ip;
	if (parent - RING_ENTRY(0) < TASK_RETURNS) {
		entry->graph = RING_GRAPH_ENTRY;
		entry->depth = parent - RING_ENTRY(0);
	} else {
		entry->parent = STORED_TEXT + parent;
	}
}

static void decode_return(struct ring_entry *entry, u32 w2,
			  const struct ring_event *took)
{
	u32 more = stored_u32(&took->parent);

	entry->graph = RING_GRAPH_RETURN;
	entry->ip = STORED_TEXT + (w2 >> 8);
	entry->ticks = stored_pair(&took->delta);
	entry->depth = more & 0xff;
	entry->missed = more >> 8;
}

static void decode_short_return(struct ring_entry *entry, u32 ip, u32 w2)
{
	entry->graph = RING_GRAPH_RETURN;
	entry->context &= ~(RING_RETURNED << 8);
	entry->ip = STORED_TEXT + ip;
	entry->ticks = RING_RETURN_TICKS(w2);
	entry->depth = RING_RETURN_DEPTH(w2);
}

static void decode_repeats(struct ring_entry *entry,
			   const struct ring_repeats *r)
{
	entry->ip = STORED_TEXT + stored_u32(&r->ip);
	entry->parent = STORED_TEXT + stored_u32(&r->parent);
	entry->repeats = stored_u32(&r->count);
	entry->last = stored_pair(r->last);
}

notrace bool ring_decode_slot(struct ring_cursor *c)
{
	const struct ring_event *e = &c->copy->slots[c->at++];
	u32 delta = stored_u32(&e->delta), w1 = stored_u32(&e->ip);
	u32 w2 = stored_u32(&e->parent), ip = w1 >> 8;

	if (ip == RING_TIME) {
		c->base = (u64)w2 << 32 | delta;
		return false;
	}
	if (ip == RING_TASK) {
		c->pid = w2;
		return false;
	}
	if (ip == RING_COUNT) {
		c->number = (u64)w2 << 32 | delta;
		return false;
	}
	c->entry = (struct ring_entry){
		.clock = c->base + delta,
		.number = c->number,
		.cpu = c->cpu,
		.pid = c->pid,
		.context = (w1 & 0xff) | (w2 & 0xff) << 8,
	};
	if (ip == RING_REPEATS) {
		decode_repeats(&c->entry, (const struct ring_repeats *)(e + 1));
		c->at += RING_MORE_SLOTS(w2 >> 8);
	} else if (ip == RING_MARK || ip == RING_RAW || ip == RING_STACK ||
		   RING_IS_EVENT(ip)) {
		if (ip == RING_MARK || ip == RING_RAW) {
			c->entry.text = (const char *)(e + 1);
			c->entry.raw = ip == RING_RAW;
		} else if (ip == RING_STACK) {
			c->entry.stack = (const u32 *)(e + 1);
		} else {
			c->entry.event = ip - RING_TYPE(0);
			c->entry.record = ring_event_record(e);
		}
		c->entry.len = w2 >> 8;
		c->at += RING_MORE_SLOTS(c->entry.len);
	} else if (ip == RING_RETURN) {
		decode_return(&c->entry, w2, e + 1);
		c->at++;
	} else if (w2 & RING_RETURNED) {
		decode_short_return(&c->entry, ip, w2);
	} else {
		decode_call(&c->entry, ip, w2 >> 8);
	}
	c->entries++;
	c->position++;
	return true;
}

/*
 * The mark of a task that comes back to its CPU, perhaps from another CPU. There it may have
 * returned from its call, and have called the same function again.
 */
static bool is_arrival(const struct ring_event *e, s32 pid)
{
	u32 w1 = stored_u32(&e->ip);

	return w1 >> 8 == RING_TASK && (s32)stored_u32(&e->parent) == pid &&
	       !(w1 & RING_STAYED);
}

/* moved: the task may have run on another CPU in between. Then the call's beginning tells. */
static bool is_return_of(const struct ring_entry *r, const struct ring_entry *e,
			 bool moved)
{
	return r->graph == RING_GRAPH_RETURN && r->ip == e->ip &&
	       r->pid == e->pid && r->depth == e->depth &&
	       (!moved || r->clock - r->ticks == e->clock);
}

void ring_cursor_join(struct ring_cursor *c)
{
	struct ring_cursor before = *c;
	bool found = false, moved = false;

	if (!c->after || c->entry.graph != RING_GRAPH_ENTRY)
		return;
	while (!found && c->at < c->copied) {
		moved |= is_arrival(&c->copy->slots[c->at], before.entry.pid);
		found = ring_decode_slot(c);
	}
	if (!found || !is_return_of(&c->entry, &before.entry, moved)) {
		*c = before;
		return;
	}
	before.entry.graph = RING_GRAPH_LEAF;
	before.entry.ticks = c->entry.ticks;
	c->entry = before.entry;
	c->first = c->after;
	c->after = c->at;
}

void ring_cursor_next(struct ring_cursor *c)
{
	c->after = 0;
}
