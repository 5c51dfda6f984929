/* SPDX-License-Identifier: MIT */
/* Open files: file.h. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "reads.h"

#define FIRST_FID (PATH_FID + 1)
_Static_assert(FIRST_FID + FILES_MAX <= P9_FIDS, "fids");

static struct file *files[FILES_MAX];

/* ---- Writing --------------------------------------------------------------------------------- */

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
	reads_are_old();
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
	reads_end(f);
	node_clunk(f->fid);
	f->node->readers -= f->is_read;
	files[f->fid - FIRST_FID] = NULL;
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
	else if (o->info.flags & O_TRUNC)
		node_lower(o->file->node);
	free(o);
}

static uint32_t open_flags(int flags)
{
	return (flags & O_ACCMODE) | (flags & O_TRUNC ? P9_TRUNC : 0) |
	       (flags & O_APPEND ? 0x400 : 0);
}

/* A new file with a fid of its own, or NULL. */
static struct file *new_file(struct node *node, int flags)
{
	const char *name = strrchr(node->path, '/') + 1;
	size_t n = strlen(name);
	struct file *f;
	uint32_t i = 0;

	while (i < FILES_MAX && files[i])
		i++;
	f = i < FILES_MAX ? calloc(1, sizeof(*f)) : NULL;
	if (!f)
		return NULL;
	files[i] = f;
	f->node = node;
	f->is_read = (flags & O_ACCMODE) != O_WRONLY;
	node->readers += f->is_read;
	f->fid = FIRST_FID + i;
	f->kind = !strcmp(name, "trace_pipe")	  ? ENTRIES :
		  !strcmp(name, "trace_pipe_raw") ? PAGES :
						    TEXT;
	f->is_paged = n > 4 && !strcmp(name + n - 4, "_raw");
	return f;
}

void file_open(fuse_req_t req, struct node *n, struct fuse_file_info *info)
{
	struct file *f = new_file(n, info->flags);
	struct open *o = f ? calloc(1, sizeof(*o)) : NULL;

	if (!o) {
		if (f)
			close_file(f);
		fuse_reply_err(req, f ? ENOMEM : ENFILE);
		return;
	}
	*o = (struct open){ .req = req, .info = *info, .file = f };
	node_walk(n->path, f->fid, open_walk, o);
	p9_begin(P9_TLOPEN);
	p9_put(f->fid, 4);
	p9_put(open_flags(info->flags), 4);
	p9_send(open_done, o);
	if (info->flags & O_TRUNC)
		reads_are_old();
	node_raise(n);
	if (f->kind == TEXT && !f->is_paged &&
	    (info->flags & O_ACCMODE) == O_RDONLY)
		reads_ask_early(f);
}

void file_release(fuse_req_t req, struct file *f)
{
	close_file(f);
	fuse_reply_err(req, 0);
}
