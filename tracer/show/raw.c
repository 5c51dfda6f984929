/* SPDX-License-Identifier: MIT */
/* Entries as Linux's ring buffer has them: raw.h. */
#include <tracer/show/raw.h>

#include <kernel/image/symbols.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/time.h>
#include <tracer/base/stored.h>
#include <tracer/ring/ring_read.h>
#include <tracer/show/files_marker.h>
#include <tracer/show/output.h>

/* Numbers of Linux's own entries: events/files.c describes their fields. */
enum {
	RAW_FUNCTION = 1,
	RAW_STACK = 4,
	RAW_PRINT = 5,
	RAW_RETURN = 10,
	RAW_CALL = 11,
	RAW_DATA_ENTRY = 18,
	RAW_REPEATS = 19
};

/* Of the common fields, which each entry begins with. */
#define COMMON 8
/* The longest: a marker, with its ip, a newline and a NUL. */
#define PAYLOAD_MAX (COMMON + sizeof(u64) + RING_MARK_MAX + 8)

struct payload {
	u32 len;
	union {
		char bytes[PAYLOAD_MAX];
		u32 words[PAYLOAD_MAX / 4];
	} __attribute__((aligned(8)));
};

static void payload_add(struct payload *p, const void *bytes, size_t n)
{
	memcpy(p->bytes + p->len, bytes, n);
	p->len += n;
}

static always_inline void payload_put(struct payload *p, u64 v,
				      unsigned int size)
{
	store_number(p->bytes + p->len, v, size);
	p->len += size;
}

/* The next number is aligned to n, which is 4 or 8. */
static always_inline void payload_align(struct payload *p, unsigned int n)
{
	while (p->len % n)
		payload_put(p, 0, 4);
}

static void payload_begin(struct payload *p, const struct ring_entry *e,
			  u16 type)
{
	p->len = 0;
	payload_put(p, type, 2);
	p->bytes[p->len++] = event_common_flags(e->context);
	p->bytes[p->len++] = e->context & PREEMPT_DEPTH_MASK;
	payload_put(p, e->pid, 4);
}

/*
 * Programs name an address by the function that it lies in. Behind a call that does not return, the
 * next function may begin. Then the caller's name is that of the address before. The answer is
 * kept: an offset from _text, and whether a function begins there, in one word.
 */
static notrace unsigned long nameable_address(unsigned long ret)
{
	static u32 known[256];
	u32 offset = ret - STORED_TEXT;
	u32 *place = &known[offset / 4 % ARRAY_SIZE(known)];
	u32 found = READ_ONCE(*place);
	struct symbol s;

	if (found >> 1 != offset) {
		found = offset << 1 | (symbol_at(ret, &s) && s.start == ret);
		WRITE_ONCE(*place, found);
	}
	return ret - (found & 1);
}

static void put_raw_call(struct payload *p, const struct ring_entry *e)
{
	payload_begin(p, e, RAW_FUNCTION);
	payload_put(p, e->ip, STORED_LONG);
	payload_put(p, nameable_address(e->parent), STORED_LONG);
}

/* Linux has the time since the last of them, by the instance's clock, in two parts. */
static void put_raw_repeats(struct payload *p, const struct trace_instance *in,
			    const struct ring_entry *e)
{
	u64 since = trace_stamp(in, ring_when(e)) - trace_stamp(in, e->last);

	payload_begin(p, e, RAW_REPEATS);
	payload_put(p, e->ip, STORED_LONG);
	payload_put(p, nameable_address(e->parent), STORED_LONG);
	payload_put(p, e->repeats, 2);
	payload_put(p, since >> 32, 2);
	payload_put(p, since, 4);
}

static void put_raw_entry(struct payload *p, const struct ring_entry *e)
{
	payload_begin(p, e, RAW_CALL);
	payload_put(p, e->ip, STORED_LONG);
	payload_put(p, e->depth, 4);
}

static void put_raw_return(struct payload *p, const struct ring_entry *e)
{
	payload_begin(p, e, RAW_RETURN);
	payload_put(p, e->ip, STORED_LONG);
	payload_put(p, e->depth, 4);
	payload_put(p, e->missed, 4);
	payload_align(p, 8);
	payload_put(p, clock_to_ns(e->clock - e->ticks), 8);
	payload_put(p, clock_to_ns(e->clock), 8);
}

/* Linux ends a marker with a newline, and the text with a NUL. */
static void put_marker(struct payload *p, const struct ring_entry *e)
{
	unsigned long ip = (unsigned long)tracing_mark_write;

	if (e->raw) {
		payload_begin(p, e, RAW_DATA_ENTRY);
		payload_add(p, e->text, e->len);
		return;
	}
	payload_begin(p, e, RAW_PRINT);
	payload_put(p, ip, STORED_LONG);
	payload_add(p, e->text, e->len);
	payload_add(p, "\n", 2);
}

#define STACK_CALLERS 8 /* of Linux's format */

static void put_stack(struct payload *p, const struct ring_entry *e)
{
	unsigned int n = min(e->len / 4, STACK_CALLERS + 0u);

	payload_begin(p, e, RAW_STACK);
	payload_put(p, n, 4);
	payload_align(p, STORED_LONG);
	for (unsigned int i = 0; i < STACK_CALLERS; i++)
		payload_put(p,
			    i < n ? nameable_address(STORED_TEXT +
						     stored_u32(&e->stack[i])) :
				    0,
			    STORED_LONG);
}

/* The ring has 4 bytes more, for its alignment. */
static void put_event(struct payload *p, const struct ring_entry *e)
{
	payload_begin(p, e, e->event);
	payload_add(p, e->record, e->len - 4);
}

static void encode_payload(struct payload *p, const struct trace_instance *in,
			   const struct ring_entry *e)
{
	if (e->event)
		put_event(p, e);
	else if (e->text)
		put_marker(p, e);
	else if (e->stack)
		put_stack(p, e);
	else if (e->repeats)
		put_raw_repeats(p, in, e);
	else if (e->graph == RING_GRAPH_ENTRY)
		put_raw_entry(p, e);
	else if (e->graph == RING_GRAPH_RETURN)
		put_raw_return(p, e);
	else
		put_raw_call(p, e);
	while (p->len % 4)
		p->bytes[p->len++] = 0;
}

/* ---- Pages -------------------------------------------------------------------------- */

static u32 head_word(u32 type, u32 delta)
{
	return STORED_BIG_ENDIAN ? type << RAW_DELTA_BITS | delta :
				   type | delta << 5;
}

/* Each entry begins at a multiple of four bytes. */
static always_inline char *put_raw_word(char *to, u32 word)
{
	store_number(to, word, sizeof(word));
	return to + sizeof(word);
}

/* Bytes that an entry takes: a time that is far ahead has an entry of its own. */
static u32 size_of(const struct payload *p, u64 delta)
{
	return p->len + (p->len > 4 * RAW_TYPE_MAX ? 8 : 4) +
	       (delta >> RAW_DELTA_BITS ? 8 : 0);
}

static char *put_payload(char *to, const struct payload *p, u64 delta)
{
	bool far = delta >> RAW_DELTA_BITS, is_long = p->len > 4 * RAW_TYPE_MAX;

	if (far) {
		to = put_raw_word(
			to, head_word(RAW_TYPE_EXTEND,
				      delta & ((1u << RAW_DELTA_BITS) - 1)));
		to = put_raw_word(to, delta >> RAW_DELTA_BITS);
		delta = 0;
	}
	to = put_raw_word(to, head_word(is_long ? 0 : p->len / 4, delta));
	if (is_long)
		to = put_raw_word(to, p->len + 4); /* counts itself */
	for (const u32 *w = p->words, *end = w + p->len / 4; w < end; w++) {
		*(u32 *)to = *w;
		to += sizeof(*w);
	}
	return to;
}

/* raw_page_fill() has left room for the count behind the data. */
static void put_head(char *page, u64 time, u32 used, u64 lost)
{
	u64 count;

	store_number(page, time, sizeof(time));
	store_number(page + sizeof(time),
		     used | (lost ? RAW_LOST | RAW_LOST_COUNT : 0),
		     STORED_LONG);
	if (!lost)
		return;
	store_number(&count, lost, STORED_LONG);
	memcpy(page + RAW_HEAD + used, &count, STORED_LONG);
}

unsigned int raw_page_fill(struct ring_cursor *c, void *page)
{
	char *data = (char *)page + RAW_HEAD, *to = data;
	const struct trace_instance *in = c->ring->in;
	struct payload *p = kmalloc(sizeof(*p));
	u64 first = 0, last = 0, time, lost = 0;
	unsigned int n = 0;

	ring_cursor_begin(c);
	while (p && ring_cursor_peek(c)) {
		/* The number of lost entries stands at a page's beginning. */
		if (n && c->lost)
			break;
		time = trace_stamp(in, ring_when(&c->entry));
		encode_payload(p, in, &c->entry);
		if (to + size_of(p, n ? time - last : 0) +
			    (lost + c->lost ? STORED_LONG : 0) >
		    data + RAW_DATA)
			break;
		if (!ring_cursor_take(c))
			continue;
		lost += c->lost;
		c->lost = 0;
		if (!n++)
			first = last = time;
		to = put_payload(to, p, time - last);
		last = time;
	}
	ring_cursor_end(c);
	memset(to, 0, data + RAW_DATA - to);
	put_head(page, first, to - data, lost);
	kfree(p);
	return n;
}
