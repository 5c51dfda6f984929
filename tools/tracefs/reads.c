/* SPDX-License-Identifier: MIT */
/* Reads and poll() of open files: reads.h. */
#include "reads.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "mailbox.h"

#define PAGE 4096
#define READ_AHEAD (P9_IOUNIT / PAGE * PAGE)

/* A program that opens a file mostly reads it then. So the beginning is asked for with the open,
 * and is the answer to a read that comes within this time, unless anything is changed before. */
#define EARLY_NS 2000000

/* While tracing is off the guest answers each read of pages with their end. So poll() asks again
 * behind a pause. */
#define OFF_PAUSE_NS 100000000

/* A read that has no answer yet, or a poll(), which takes nothing. */
struct read {
	struct read *next;
	fuse_req_t req;
	struct file *file;
	size_t size, done;
	uint64_t offset;
	bool now; /* it does not wait for the guest to have something */
	bool poll;
	uint32_t wants; /* of PAGES: P9_READ_PAGES, P9_READ_PERCENT, or 0 */
	char *buf;
};

static uint64_t changes;     /* that programs have asked for */
static struct file *waiting; /* with a handle */

void reads_are_old(void)
{
	changes++;
}

/* ---- Bytes that were read -------------------------------------------------------------------- */

/* Would a read of a stream be answered at once? */
static bool is_readable(const struct file *f)
{
	return f->kind == TEXT || f->err || f->at < f->len || f->ends;
}

static void drop_kept(struct file *f)
{
	free(f->kept);
	f->kept = NULL;
	f->len = f->at = 0;
	f->ends = false;
}

/*
 * A program that has used poll() on pages sees no end, even while tracing is off: splice() would
 * take it for the file's. Nor does its read wait, for it may ask for many pages at once, and shall
 * have those that are there.
 */
static bool has_no_end(const struct file *f)
{
	return f->kind == PAGES && f->polled;
}

static int keep(struct file *f, const uint8_t *data, uint32_t n)
{
	drop_kept(f);
	f->kept = malloc(n + 1);
	if (!f->kept)
		return -ENOMEM;
	memcpy(f->kept, data, n);
	f->len = n;
	f->offset = f->asked_at;
	f->taken += n;
	f->ends = n < f->asked && (f->kind == TEXT || !n);
	return 0;
}

/* ---- Answers to readers ------------------------------------------------------------------ */

static void end_read(struct read *r, int err)
{
	struct read **at = &r->file->reads;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	if (r->poll)
		fuse_reply_poll(r->req,
				is_readable(r->file) ? POLLIN | POLLOUT : 0);
	else if (err)
		fuse_reply_err(r->req, -err);
	else
		fuse_reply_buf(r->req, r->buf, r->done);
	free(r->buf);
	free(r);
}

/* Is a read content with less than the one that the guest was asked for? */
static bool wants_less(const struct file *f, const struct read *r)
{
	return f->asked_for && r->wants != f->asked_for &&
	       r->wants != P9_READ_PERCENT;
}

/* The guest has nothing of it now. */
static void end_reads_of_now(struct file *f)
{
	struct read *r, *next;

	for (r = f->reads; r; r = next) {
		next = r->next;
		if (r->now && !wants_less(f, r))
			end_read(r, -EAGAIN);
	}
}

static uint32_t add_to_read(struct read *r, uint32_t from)
{
	struct file *f = r->file;
	size_t n = f->len - from, left = r->size - r->done;

	n = n < left ? n : left;
	memcpy(r->buf + r->done, f->kept + from, n);
	r->done += n;
	return n;
}

/* Of a stream each byte is given once. */
static bool give_stream(struct file *f, struct read *r)
{
	if (!is_readable(f))
		return false;
	if (!r->poll) {
		if (f->at < f->len)
			f->at += add_to_read(r, f->at);
		if (f->at == f->len)
			drop_kept(f);
	}
	end_read(r, 0);
	return true;
}

/*
 * A text that is read in small pieces is asked for in larger ones. The first byte always comes from
 * the guest: a program that reads from there wants the file as it is now. The end is told once.
 */
static bool give_text(struct file *f, struct read *r)
{
	uint64_t at = r->offset + r->done, end = f->offset + f->len;
	bool early = f->early && f->early_changes == changes &&
		     mailbox_now_ns() < f->early_until;

	f->early = false;
	if (!f->kept || at < f->offset || at > end ||
	    !(at || f->fresh || early))
		return false;
	at += add_to_read(r, at - f->offset);
	if (r->done < r->size && !(f->ends && at == end))
		return false;
	if (!r->done)
		drop_kept(f);
	end_read(r, 0);
	return true;
}

static bool give_read(struct file *f, struct read *r)
{
	int err = f->err;

	if (err && !r->poll) {
		f->err = 0;
		end_read(r, r->done ? 0 : err);
		return true;
	}
	return f->kind == TEXT ? give_text(f, r) : give_stream(f, r);
}

/* ---- Asking the guest --------------------------------------------------------------------- */

static void take_read(void *arg, int err, struct p9_reply *reply);

static void ask(struct file *f)
{
	const struct read *r = f->reads;
	size_t size = r ? r->size - r->done : 0;

	f->asked_at = r ? r->offset + r->done : 0;
	f->asked = size < PAGE ? PAGE : size < P9_IOUNIT ? size : P9_IOUNIT;
	if (f->kind == PAGES) {
		f->asked = READ_AHEAD;
		f->asked_for = r ? r->wants : P9_READ_PERCENT;
	}
	p9_begin(P9_TREAD);
	p9_put(f->fid, 4);
	p9_put(f->kind == TEXT ? f->asked_at : f->taken, 8);
	p9_put(f->asked | f->asked_for, 4);
	f->reading = p9_send(take_read, f);
}

/* The first read, behind the open that is queued. */
void reads_ask_early(struct file *f)
{
	f->early = true;
	f->early_changes = changes;
	ask(f);
}

/* Answer the reads that can be answered, and ask the guest for the rest. */
static void serve(struct file *f)
{
	bool paused = has_no_end(f) && mailbox_now_ns() < f->not_before;

	while (f->reads && !f->reading) {
		if (give_read(f, f->reads))
			continue;
		if (paused && f->reads->poll)
			end_read(f->reads, 0);
		else
			ask(f);
	}
	f->fresh = false;
	for (struct read *r = f->reads; r; r = r->next)
		if (r->now)
			p9_flush(f->reading);
}

static void forget_handle(struct file *f)
{
	struct file **at = &waiting;

	if (!f->handle)
		return;
	while (*at != f)
		at = &(*at)->next_waiting;
	*at = f->next_waiting;
	fuse_pollhandle_destroy(f->handle);
	f->handle = NULL;
}

/* The program in poll() looks again. */
static void notify_poll(struct file *f)
{
	if (f->handle)
		fuse_lowlevel_notify_poll(f->handle);
	forget_handle(f);
}

static void take_read(void *arg, int err, struct p9_reply *reply)
{
	struct file *f = arg;
	uint32_t n = err ? 0 : p9_get(reply, 4);
	const uint8_t *data = err ? NULL : p9_get_bytes(reply, n);

	f->reading = NULL;
	if (!err && (!data || n > f->asked))
		err = -EIO;
	if (!err && !n && has_no_end(f)) {
		err = -EINTR;
		f->not_before = mailbox_now_ns() + OFF_PAUSE_NS;
	}
	if (!err)
		err = keep(f, data, n);
	f->fresh = !err && f->reads;
	f->early_until = mailbox_now_ns() + EARLY_NS;
	if (err == -EINTR) /* flushed, or as good as that */
		end_reads_of_now(f);
	else if (f->early && !f->reads)
		f->err = 0; /* the read that comes asks itself */
	else
		f->err = err;
	serve(f);
	if (is_readable(f))
		notify_poll(f);
}

int64_t reads_look(void)
{
	int64_t wait = -1, left;
	struct file *f;

	for (f = waiting; f; f = f->next_waiting) {
		if (f->reading || is_readable(f))
			continue;
		left = f->not_before - mailbox_now_ns();
		if (left <= 0)
			ask(f);
		else if (wait < 0 || left < wait)
			wait = left;
	}
	return wait;
}

/* ---- Operations ----------------------------------------------------------------------------- */

/*
 * The program that reads has been interrupted. As in Linux, that ends a read which waits for
 * entries, and the bytes that the guest gives yet are kept. It ends no other read: a program that
 * empties a buffer would take EINTR for the end. A guest that does not answer has to give it up.
 */
static void interrupt(fuse_req_t req, void *arg)
{
	struct read *r = arg;
	struct file *f = r->file;
	bool waits = !r->now && f->kind != TEXT;

	(void)req;
	r->now = true;
	if (waits)
		end_read(r, -EINTR);
	if (f->reading && (!waits || (!f->reads && !f->handle)))
		p9_flush(f->reading);
}

static void add_read(const struct read *wanted)
{
	struct read *r = malloc(sizeof(*r)), **at = &wanted->file->reads;

	if (!r) {
		fuse_reply_err(wanted->req, ENOMEM);
		return;
	}
	*r = *wanted;
	while (*at)
		at = &(*at)->next;
	*at = r;
	serve(r->file);
	for (at = &wanted->file->reads; *at && *at != r; at = &(*at)->next)
		;
	/* Otherwise it has been answered. */
	if (*at && fuse_req_interrupted(r->req))
		interrupt(r->req, r);
	else if (*at)
		fuse_req_interrupt_func(r->req, interrupt, r);
}

void reads_add(fuse_req_t req, struct file *f, size_t size, off_t offset,
	       const struct fuse_file_info *info)
{
	struct read r = { .req = req,
			  .file = f,
			  .size = size,
			  .offset = offset,
			  .now = info->flags & O_NONBLOCK || has_no_end(f),
			  .wants = info->lock_owner ? 0 : P9_READ_PAGES,
			  .buf = malloc(size + 1) };

	if (r.buf)
		add_read(&r);
	else
		fuse_reply_err(req, ENOMEM);
}

void reads_poll(fuse_req_t req, struct file *f, struct fuse_pollhandle *handle)
{
	const struct read r = { .req = req,
				.file = f,
				.now = true,
				.poll = true,
				.wants = P9_READ_PERCENT };

	f->polled = true;
	if (handle && !f->handle) {
		f->handle = handle;
		f->next_waiting = waiting;
		waiting = f;
	} else if (handle) {
		fuse_pollhandle_destroy(f->handle);
		f->handle = handle;
	}
	if (f->kind == TEXT)
		fuse_reply_poll(req, POLLIN | POLLOUT);
	else
		add_read(&r);
}

void reads_end(struct file *f)
{
	forget_handle(f);
	if (f->reading) {
		p9_forget(f->reading);
		p9_flush(f->reading);
	}
	drop_kept(f);
}
