/* SPDX-License-Identifier: MIT */
/* Open files: file.h. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE 4096
#define READ_AHEAD (P9_IOUNIT / PAGE * PAGE)
#define FIRST_FID (PATH_FID + 1)
_Static_assert(FIRST_FID + FILES_MAX <= P9_FIDS, "fids");

/*
 * The guest gives a page as soon as it has one event, and each read makes some. Without a pause a
 * program that records would so get thousands of pages with little in them. There is none behind
 * a page that is full, or that says that events were lost: a page ends before these.
 */
#define PAGE_PAUSE_NS 100000000
#define FEW_BYTES 512 /* a page that ends with so many zeros is not full */
#define LOST_BYTE                                                              \
	11 /* of a page, and its bit: the guest's events/header_page */
#define LOST_BIT 0x80

/* A read that has no answer yet; or a poll(), which takes nothing. */
struct read {
	struct read *next;
	fuse_req_t req;
	struct file *file;
	size_t size, done;
	uint64_t offset;
	bool now; /* it does not wait */
	bool poll;
	char *buf;
};

struct file {
	struct file *next_waiting; /* of those with a handle */
	uint32_t fid, flags;
	enum {
		TEXT,	 /* has places */
		ENTRIES, /* trace_pipe: each read goes on */
		PAGES,	 /* trace_pipe_raw */
	} kind;
	bool is_paged;
	struct read *reads;
	struct p9_call *reading; /* the guest has been asked for: */
	uint32_t asked;
	uint64_t asked_at;
	/* What the guest has given last. A TEXT has it from place `offset` on. A reader of ENTRIES
	 * or PAGES has taken the first `at` bytes. */
	char *kept;
	uint32_t len, at;
	uint64_t offset;
	uint64_t taken; /* bytes of a stream that the guest has given */
	bool ends;	/* behind that */
	bool fresh;	/* it is the answer to the first of `reads` */
	int err;	/* for the next reader */
	struct fuse_pollhandle
		*handle; /* of a program that waits in poll(), or NULL */
	bool polled;
	uint64_t not_before; /* asking for PAGES again, in ns */
};

static struct file *files[FILES_MAX];
static struct file *waiting; /* with a handle */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

bool file_gives_pages(const struct file *f)
{
	return f->is_paged;
}

/* ---- What was read -------------------------------------------------------------------- */

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

/* Of the last page that was read. */
static bool more_is_there(const char *pages, size_t len)
{
	const char *page = pages + len - PAGE;

	if (len < PAGE)
		return false;
	for (int i = PAGE - FEW_BYTES; i < PAGE; i++)
		if (page[i])
			return true;
	return page[LOST_BYTE] & LOST_BIT;
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

/* The guest has nothing now. */
static void end_reads_of_now(struct file *f)
{
	struct read *r, *next;

	for (r = f->reads; r; r = next) {
		next = r->next;
		if (r->now)
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

	if (!f->kept || at < f->offset || at > end || !(at || f->fresh))
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
	if (f->kind == PAGES)
		f->asked = READ_AHEAD;
	p9_begin(P9_TREAD);
	p9_put(f->fid, 4);
	p9_put(f->kind == TEXT ? f->asked_at : f->taken, 8);
	p9_put(f->asked, 4);
	f->reading = p9_send(take_read, f);
}

/* Answer what can be answered, and ask for the rest. */
static void serve(struct file *f)
{
	bool paused = has_no_end(f) && now_ns() < f->not_before;

	while (f->reads && !f->reading) {
		if (give_read(f, f->reads))
			continue;
		if (paused && f->reads->now)
			end_reads_of_now(f);
		else
			ask(f);
	}
	f->fresh = false;
	for (struct read *r = f->reads; r; r = r->next)
		if (r->now)
			p9_flush(f->reading);
}

/* The program in poll() looks again. */
static void notify_poll(struct file *f)
{
	struct file **at = &waiting;

	if (!f->handle)
		return;
	while (*at != f)
		at = &(*at)->next_waiting;
	*at = f->next_waiting;
	fuse_lowlevel_notify_poll(f->handle);
	fuse_pollhandle_destroy(f->handle);
	f->handle = NULL;
}

static void take_read(void *arg, int err, struct p9_reply *reply)
{
	struct file *f = arg;
	uint32_t n = err ? 0 : p9_get(reply, 4);
	const uint8_t *data = err ? NULL : p9_get_bytes(reply, n);

	f->reading = NULL;
	if (!err && (!data || n > f->asked))
		err = -EIO;
	if (!err && !n && has_no_end(f))
		err = -EINTR;
	if (f->kind == PAGES && (err || !more_is_there((char *)data, n)))
		f->not_before = now_ns() + PAGE_PAUSE_NS;
	if (!err)
		err = keep(f, data, n);
	f->fresh = !err && f->reads;
	if (err == -EINTR) /* flushed, or as good as that */
		end_reads_of_now(f);
	else
		f->err = err;
	serve(f);
	if (is_readable(f))
		notify_poll(f);
}

int64_t file_look(void)
{
	int64_t wait = -1, left;
	struct file *f;

	for (f = waiting; f; f = f->next_waiting) {
		if (f->reading || is_readable(f))
			continue;
		left = f->not_before - now_ns();
		if (left <= 0)
			ask(f);
		else if (wait < 0 || left < wait)
			wait = left;
	}
	return wait;
}

/* ---- Operations ----------------------------------------------------------------------------- */

/* The program that reads has been interrupted. What the guest gives yet is kept. */
static void interrupt(fuse_req_t req, void *arg)
{
	struct read *r = arg;
	struct file *f = r->file;

	(void)req;
	end_read(r, r->done ? 0 : -EINTR);
	if (!f->reads && !f->handle && f->reading)
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

void file_read(fuse_req_t req, struct file *f, size_t size, off_t offset,
	       const struct fuse_file_info *info)
{
	struct read r = { .req = req,
			  .file = f,
			  .size = size,
			  .offset = offset,
			  .now = info->flags & O_NONBLOCK || has_no_end(f),
			  .buf = malloc(size + 1) };

	if (r.buf)
		add_read(&r);
	else
		fuse_reply_err(req, ENOMEM);
}

void file_poll(fuse_req_t req, struct file *f, struct fuse_pollhandle *handle)
{
	const struct read r = {
		.req = req, .file = f, .now = true, .poll = true
	};

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

/* A write, of several messages if it is long: the guest carries it out behind one that is not
 * full. So the last one never is. */
struct write {
	fuse_req_t req;
	uint32_t fid, part;
	size_t size, done;
	char data[];
};

static void take_write(void *arg, int err, struct p9_reply *reply);

static void write_on(struct write *w)
{
	size_t left = w->size - w->done;

	w->part = left < P9_IOUNIT  ? left :
		  left == P9_IOUNIT ? P9_IOUNIT - 1 :
				      P9_IOUNIT;
	p9_begin(P9_TWRITE);
	p9_put(w->fid, 4);
	p9_put(0, 8);
	p9_put(w->part, 4);
	p9_put_bytes(w->data + w->done, w->part);
	p9_send(take_write, w);
}

static void take_write(void *arg, int err, struct p9_reply *reply)
{
	struct write *w = arg;

	if (!err && p9_get(reply, 4) != w->part)
		err = -EIO;
	w->done += w->part;
	if (!err && w->done < w->size) {
		write_on(w);
		return;
	}
	if (err)
		fuse_reply_err(w->req, -err);
	else
		fuse_reply_write(w->req, w->size);
	free(w);
}

void file_write(fuse_req_t req, struct file *f, const char *data, size_t size)
{
	struct write *w = malloc(sizeof(*w) + size);

	if (!w) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	*w = (struct write){ .req = req, .fid = f->fid, .size = size };
	memcpy(w->data, data, size);
	write_on(w);
}

/* ---- Opening and closing ------------------------------------------------------------------ */

struct open {
	fuse_req_t req;
	struct fuse_file_info info;
	struct file *file;
	int err;
};

static void open_walk(void *arg, int err, struct p9_reply *reply)
{
	(void)reply;
	((struct open *)arg)->err = err;
}

static void close_file(struct file *f)
{
	if (f->reading) {
		p9_forget(f->reading);
		p9_flush(f->reading);
	}
	node_clunk(f->fid);
	files[f->fid - FIRST_FID] = NULL;
	drop_kept(f);
	free(f);
}

static void open_done(void *arg, int err, struct p9_reply *reply)
{
	struct open *o = arg;

	(void)reply;
	err = o->err ? o->err : err;
	o->info.fh = (uintptr_t)o->file;
	o->info.direct_io = 1; /* no size is known before a file is read */
	if (err)
		fuse_reply_err(o->req, -err);
	if (err || fuse_reply_open(o->req, &o->info))
		close_file(o->file);
	free(o);
}

static uint32_t open_flags(int flags)
{
	return (flags & O_ACCMODE) | (flags & O_TRUNC ? 0x200 : 0) |
	       (flags & O_APPEND ? 0x400 : 0);
}

/* A new file with a fid of its own, or NULL. */
static struct file *new_file(const char *name)
{
	size_t n = strlen(name);
	struct file *f;
	uint32_t i = 0;

	while (i < FILES_MAX && files[i])
		i++;
	f = i < FILES_MAX ? calloc(1, sizeof(*f)) : NULL;
	if (!f)
		return NULL;
	files[i] = f;
	f->fid = FIRST_FID + i;
	f->kind = !strcmp(name, "trace_pipe")	  ? ENTRIES :
		  !strcmp(name, "trace_pipe_raw") ? PAGES :
						    TEXT;
	f->is_paged = n > 4 && !strcmp(name + n - 4, "_raw");
	return f;
}

void file_open(fuse_req_t req, struct node *n, struct fuse_file_info *info)
{
	struct file *f = new_file(strrchr(n->path, '/') + 1);
	struct open *o = f ? calloc(1, sizeof(*o)) : NULL;

	if (!o) {
		fuse_reply_err(req, f ? ENOMEM : ENFILE);
		return;
	}
	*o = (struct open){ .req = req, .info = *info, .file = f };
	node_walk(n->path, f->fid, open_walk, o);
	p9_begin(P9_TLOPEN);
	p9_put(f->fid, 4);
	p9_put(open_flags(info->flags), 4);
	p9_send(open_done, o);
	n->lowered = info->flags & O_TRUNC;
}

void file_release(fuse_req_t req, struct file *f)
{
	struct file **at = &waiting;

	if (f->handle) {
		while (*at != f)
			at = &(*at)->next_waiting;
		*at = f->next_waiting;
		fuse_pollhandle_destroy(f->handle);
	}
	close_file(f);
	fuse_reply_err(req, 0);
}
