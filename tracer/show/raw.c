/* SPDX-License-Identifier: MIT */
/* Entries as Linux's ring buffer has them: raw.h. */
#include <tracer/show/raw.h>

#include <kernel/console.h>
#include <kernel/cpu/cpu.h>
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/time.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/show/files_marker.h>
#include <tracer/show/output.h>
#include <tracer/show/snapshot.h>
#include <tracer/core/tracer.h>

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

/* Of an entry's header, a u32: what it is, and the time since the last one. */
#define TYPE_EXTEND 30
#define TYPE_MAX 28 /* words. Longer data have their length in the next word */
#define DELTA_BITS 27

struct common {
	u16 type;
	u8 flags, preempt_count;
	s32 pid;
};

/* The longest: a marker, with its ip, a newline and a NUL. */
#define PAYLOAD_MAX (sizeof(struct common) + sizeof(long) + RING_MARK_MAX + 8)

struct payload {
	u32 len;
	union {
		struct common common;
		char bytes[PAYLOAD_MAX];
		u32 words[PAYLOAD_MAX / 4];
	} __attribute__((aligned(8)));
};

static void payload_add(struct payload *p, const void *bytes, size_t n)
{
	memcpy(p->bytes + p->len, bytes, n);
	p->len += n;
}

static void payload_begin(struct payload *p, const struct ring_entry *e,
			  u16 type)
{
	u32 c = e->context;

	p->common = (struct common){
		.type = type,
		.flags = event_common_flags(c),
		.preempt_count = c & PREEMPT_DEPTH_MASK,
		.pid = e->pid,
	};
	p->len = sizeof(p->common);
}

/*
 * Programs name an address by the function that it lies in. Behind a call that does not return,
 * the next function may begin. Then the caller's name is that of the address before. What was
 * found out is kept: an offset from _text, and whether a function begins there, in one word.
 */
static notrace unsigned long nameable_address(unsigned long ret)
{
	static u32 known[256];
	u32 offset = ret - (unsigned long)_text;
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
	struct {
		unsigned long ip, parent;
	} call = { e->ip, nameable_address(e->parent) };

	payload_begin(p, e, RAW_FUNCTION);
	payload_add(p, &call, sizeof(call));
}

/* Linux has the time since the last of them, by the instance's clock, in two parts. */
static void put_raw_repeats(struct payload *p, const struct trace_instance *in,
			    const struct ring_entry *e)
{
	u64 since = trace_stamp(in, ring_when(e)) - trace_stamp(in, e->last);
	struct {
		unsigned long ip, parent;
		u16 count, top;
		u32 bottom;
	} repeats = { e->ip, nameable_address(e->parent), e->repeats,
		      since >> 32, since };

	payload_begin(p, e, RAW_REPEATS);
	payload_add(p, &repeats, sizeof(repeats));
}

static void put_raw_entry(struct payload *p, const struct ring_entry *e)
{
	struct {
		unsigned long func;
		s32 depth;
	} entry = { e->ip, e->depth };

	payload_begin(p, e, RAW_CALL);
	payload_add(p, &entry,
		    offsetof(__typeof__(entry), depth) + sizeof(s32));
}

static void put_raw_return(struct payload *p, const struct ring_entry *e)
{
	struct {
		unsigned long func;
		s32 depth;
		u32 overrun;
		u64 call, ret __attribute__((aligned(8)));
	} ret = { e->ip, e->depth, e->missed, clock_to_ns(e->clock - e->ticks),
		  clock_to_ns(e->clock) };

	payload_begin(p, e, RAW_RETURN);
	payload_add(p, &ret, sizeof(ret));
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
	payload_add(p, &ip, sizeof(ip));
	payload_add(p, e->text, e->len);
	payload_add(p, "\n", 2);
}

#define STACK_CALLERS 8 /* of Linux's format */

static void put_stack(struct payload *p, const struct ring_entry *e)
{
	unsigned int n = min(e->len / 4, STACK_CALLERS + 0u);
	struct {
		s32 size;
		unsigned long caller[STACK_CALLERS];
	} stack = { n, { 0 } };

	for (unsigned int i = 0; i < n; i++)
		stack.caller[i] =
			nameable_address((unsigned long)_text + e->stack[i]);
	payload_begin(p, e, RAW_STACK);
	payload_add(p, &stack, sizeof(stack));
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
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ?
		       type | delta << 5 :
		       type << DELTA_BITS | delta;
}

/* Each entry begins at a multiple of four bytes. */
static always_inline char *put_raw_word(char *to, u32 word)
{
	*(u32 *)to = word;
	return to + sizeof(word);
}

/* Bytes that an entry takes: a time that is far ahead has an entry of its own. */
static u32 size_of(const struct payload *p, u64 delta)
{
	return p->len + (p->len > 4 * TYPE_MAX ? 8 : 4) +
	       (delta >> DELTA_BITS ? 8 : 0);
}

static char *put_payload(char *to, const struct payload *p, u64 delta)
{
	bool far = delta >> DELTA_BITS, is_long = p->len > 4 * TYPE_MAX;

	if (far) {
		to = put_raw_word(to,
				  head_word(TYPE_EXTEND,
					    delta & ((1u << DELTA_BITS) - 1)));
		to = put_raw_word(to, delta >> DELTA_BITS);
		delta = 0;
	}
	to = put_raw_word(to, head_word(is_long ? 0 : p->len / 4, delta));
	if (is_long)
		to = put_raw_word(to, p->len + 4); /* counts itself */
	for (const u32 *w = p->words, *end = w + p->len / 4; w < end; w++)
		to = put_raw_word(to, *w);
	return to;
}

static void put_head(char *page, u64 time, u32 used, u64 lost)
{
	unsigned long commit = used, count = lost;

	if (lost) {
		commit |= RAW_LOST;
		if (used + sizeof(count) <= RAW_DATA) {
			commit |= RAW_LOST_COUNT;
			memcpy(page + RAW_HEAD + used, &count, sizeof(count));
		}
	}
	memcpy(page, &time, sizeof(time));
	memcpy(page + sizeof(time), &commit, sizeof(commit));
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
		/* What was lost is said at a page's beginning. */
		if (n && c->lost)
			break;
		time = trace_stamp(in, ring_when(&c->entry));
		encode_payload(p, in, &c->entry);
		if (to + size_of(p, n ? time - last : 0) > data + RAW_DATA)
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

/* ---- per_cpu/cpuN/trace_pipe_raw, snapshot_raw, buffer_percent ----------------------------- */

#define WAIT_NS (20 * NSEC_PER_MSEC)

struct raw {
	struct ring_cursor cursor;
	bool waited; /* since the last page, there was too little to read */
	u32 given; /* bytes of the page. All of them: the next is to be made */
	char page[PAGE_SIZE];
};

static int raw_open_on(struct ctl_handle *h, const struct ring *set)
{
	struct raw *raw = kmalloc(sizeof(*raw));

	if (!raw || ring_cursor_open(&raw->cursor, set, h->index, false)) {
		kfree(raw);
		return -ENOMEM;
	}
	raw->waited = false;
	raw->given = PAGE_SIZE;
	h->priv = raw;
	return 0;
}

static void close_raw(struct ctl_handle *h)
{
	struct raw *raw = h->priv;

	ring_cursor_close(&raw->cursor);
	kfree(raw);
}

static int raw_open(struct ctl_handle *h)
{
	int err = raw_open_on(h, instance_of(h)->buffer);

	if (!err)
		trace_count_pipes(instance_of(h), 1);
	return err;
}

static void raw_release(struct ctl_handle *h)
{
	trace_count_pipes(instance_of(h), -1);
	close_raw(h);
}

/*
 * As Linux: a reader gets whole pages at once. Where there is none, or it is poll(), it waits until
 * the ring is buffer_percent full. The page that is being written counts, since it is never among
 * the full. While tracing is off, or for read() through the mount, one entry makes a page.
 */
static bool is_enough(const struct ctl_handle *h, struct raw *raw, bool on)
{
	const struct trace_instance *in = instance_of(h);
	u32 full = ring_cursor_pages(&raw->cursor);

	return !on || h->wants == CTL_FIRST_ENTRY ||
	       (full && !raw->waited && h->wants != CTL_PERCENT) ||
	       (full + 1) * 100ull >= (u64)READ_ONCE(in->buffer_percent) *
					      READ_ONCE(raw->cursor.ring->nr);
}

/* Is there a page for the reader? */
static bool fill_page(const struct ctl_handle *h, struct raw *raw, bool on)
{
	return ring_cursor_peek(&raw->cursor) && is_enough(h, raw, on) &&
	       raw_page_fill(&raw->cursor, raw->page);
}

/* As trace_pipe, it waits for entries, and ends when tracing is off and all are read. */
static int raw_next_page(const struct ctl_handle *h, struct raw *raw)
{
	bool on = READ_ONCE(instance_of(h)->on);

	while (!fill_page(h, raw, on)) {
		if (!on)
			return 0;
		if (h->nonblock)
			return -EAGAIN;
		raw->waited = true;
		if (console_interrupted() || task_should_stop())
			return -EINTR;
		task_sleep(WAIT_NS);
		on = READ_ONCE(instance_of(h)->on);
	}
	raw->waited = false;
	raw->given = 0;
	return 1;
}

/* A page is handed out in records. */
static int hand_out(struct raw *raw, struct seq *s)
{
	s->len = min(sizeof(s->buf), PAGE_SIZE - raw->given);
	memcpy(s->buf, raw->page + raw->given, s->len);
	raw->given += s->len;
	return 1;
}

static int raw_read(struct ctl_handle *h, struct seq *s)
{
	struct raw *raw = h->priv;
	int err;

	if (raw->given == PAGE_SIZE) {
		err = raw_next_page(h, raw);
		if (err <= 0)
			return err;
	}
	return hand_out(raw, s);
}
CTL_FILE(trace_pipe_raw, .path = TRACING "per_cpu/cpu%u/trace_pipe_raw",
	 .folders = &trace_folders, .open = raw_open, .release = raw_release,
	 .read = raw_read);

/* While it is open, no snapshot is taken. Each page that is read is gone from the snapshot. */
static int snapshot_raw_open(struct ctl_handle *h)
{
	struct trace_instance *in = instance_of(h);
	int err = snapshot_check(h);

	if (err)
		return err;
	snapshot_hold(in);
	err = raw_open_on(h, in->spares);
	if (err)
		snapshot_release(in);
	return err;
}

static void snapshot_raw_release(struct ctl_handle *h)
{
	close_raw(h);
	snapshot_release(instance_of(h));
}

static int snapshot_raw_read(struct ctl_handle *h, struct seq *s)
{
	struct raw *raw = h->priv;

	if (raw->given == PAGE_SIZE) {
		if (!(snapshot_cpus(instance_of(h)) >> h->index & 1) ||
		    !raw_page_fill(&raw->cursor, raw->page))
			return 0;
		raw->given = 0;
	}
	return hand_out(raw, s);
}
CTL_FILE(snapshot_raw, .path = TRACING "per_cpu/cpu%u/snapshot_raw",
	 .folders = &trace_folders, .open = snapshot_raw_open,
	 .release = snapshot_raw_release, .read = snapshot_raw_read);

static void buffer_percent_show(struct ctl_handle *h, struct seq *s)
{
	seq_printf(s, "%u\n", READ_ONCE(instance_of(h)->buffer_percent));
}

static int buffer_percent_write(struct ctl_handle *h, char *text)
{
	u64 percent = 0;
	int err = ctl_number(h, text, ~0ull, "number from 0 to 100", &percent);

	if (!err && percent > 100)
		err = ctl_error(h, -EINVAL, "it is a number from 0 to 100");
	if (!err)
		WRITE_ONCE(instance_of(h)->buffer_percent, percent);
	return err;
}
CTL_FILE(buffer_percent, .path = TRACING "buffer_percent",
	 .folders = &trace_folders, .show = buffer_percent_show,
	 .write = buffer_percent_write, .at_boot = "50");
static_assert(BUFFER_PERCENT_AT_BOOT == 50, "at_boot says so");
