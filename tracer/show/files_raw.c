/* SPDX-License-Identifier: MIT */
/* The control files with Linux's binary pages: trace_pipe_raw, snapshot_raw, buffer_percent. */
#include <tracer/show/raw.h>

#include <kernel/console.h>
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <tracer/core/tracer.h>
#include <tracer/ring/ring_read.h>
#include <tracer/show/raw_swap.h>
#include <tracer/show/snapshot.h>

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

/* The next page, in the byte order of the reader. */
static unsigned int make_page(const struct ctl_handle *h, struct raw *raw)
{
	unsigned int entries = raw_page_fill(&raw->cursor, raw->page);

	if (entries && STORED_BIG_ENDIAN && h->little_endian)
		raw_page_swap(raw->page);
	return entries;
}

/* Is there a page for the reader? */
static bool fill_page(const struct ctl_handle *h, struct raw *raw, bool on)
{
	return ring_cursor_peek(&raw->cursor) && is_enough(h, raw, on) &&
	       make_page(h, raw);
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
		    !make_page(h, raw))
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
