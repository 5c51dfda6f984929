/* SPDX-License-Identifier: MIT */
/* Folders: folder.h. */
#include "folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 65536 /* of a folder: a guest that gives more is mad */
#define NAME_MAX_LEN 255

/* An open folder. Its names are those of the last read from the beginning. */
struct folder {
	struct node *node;
	struct entry {
		char name[NAME_MAX_LEN + 1];
		uint64_t ino;
		uint32_t mode;
	} * entries;
	uint32_t count, room;
	uint64_t next; /* to be asked for */
	/* The read that waits for them. */
	fuse_req_t req;
	size_t size;
	int err;
};

static int add_entry(struct folder *f, const char *name, size_t n, uint64_t ino,
		     uint32_t mode)
{
	struct entry *e;

	if (f->count == NAMES_MAX)
		return -EIO;
	if (f->count == f->room) {
		f->room = f->room ? 2 * f->room : 64;
		e = realloc(f->entries, f->room * sizeof(*e));
		if (!e)
			return -ENOMEM;
		f->entries = e;
	}
	e = &f->entries[f->count++];
	*e = (struct entry){ .ino = ino, .mode = mode };
	memcpy(e->name, name, n);
	return 0;
}

static void give_entries(struct folder *f, fuse_req_t req, size_t size,
			 off_t offset)
{
	char *buf = malloc(size);
	size_t done = 0, n;

	for (uint64_t i = offset; buf && i < f->count; i++) {
		const struct entry *e = &f->entries[i];
		struct stat st = { .st_ino = e->ino, .st_mode = e->mode };

		n = fuse_add_direntry(req, buf + done, size - done, e->name,
				      &st, i + 1);
		if (n > size - done)
			break;
		done += n;
	}
	if (buf)
		fuse_reply_buf(req, buf, done);
	else
		fuse_reply_err(req, ENOMEM);
	free(buf);
}

/* A name of a reply: its kind and its place are the guest's, and go on. */
static int take_entry(struct folder *f, struct p9_reply *r)
{
	const char *name;
	uint64_t ino, next;
	uint32_t kind, n;
	char text[NAME_MAX_LEN + 1] = "";

	kind = p9_get(r, 1);
	p9_get(r, 4);
	ino = p9_get(r, 8);
	next = p9_get(r, 8);
	p9_get(r, 1);
	n = p9_get(r, 2);
	name = (const char *)p9_get_bytes(r, n);
	if (!name || !n || n > NAME_MAX_LEN || next <= f->next ||
	    memchr(name, '/', n) || memchr(name, '\0', n))
		return -EIO;
	f->next = next;
	memcpy(text, name, n);
	if (node_is_left_out(text))
		return 0;
	return add_entry(f, name, n, ino, kind & 0x80 ? S_IFDIR : S_IFREG);
}

static void ask_names(struct folder *f);

static void take_names(void *arg, int err, struct p9_reply *r)
{
	struct folder *f = arg;
	uint32_t size = err ? 0 : p9_get(r, 4);

	if (!err && size != r->size - r->at)
		err = -EIO;
	while (!err && r->at < r->size)
		err = take_entry(f, r);
	err = f->err ? f->err : err;
	if (err)
		fuse_reply_err(f->req, -err);
	else if (size)
		ask_names(f);
	else
		give_entries(f, f->req, f->size, 0);
}

static void names_walk(void *arg, int err, struct p9_reply *r)
{
	(void)r;
	((struct folder *)arg)->err = err;
}

/* No fid is kept meanwhile, so that any number of folders may be open. */
static void ask_names(struct folder *f)
{
	node_walk(f->node->path, PATH_FID, names_walk, f);
	p9_begin(P9_TLOPEN);
	p9_put(PATH_FID, 4);
	p9_put(0, 4);
	p9_send(NULL, NULL);
	p9_begin(P9_TREADDIR);
	p9_put(PATH_FID, 4);
	p9_put(f->next, 8);
	p9_put(P9_IOUNIT, 4);
	p9_send(take_names, f);
	node_clunk(PATH_FID);
}

void folder_open(fuse_req_t req, struct node *n, struct fuse_file_info *info)
{
	struct folder *f = calloc(1, sizeof(*f));

	if (!f) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	f->node = n;
	info->fh = (uintptr_t)f;
	if (fuse_reply_open(req, info))
		free(f);
}

void folder_read(fuse_req_t req, struct node *n, size_t size, off_t offset,
		 struct fuse_file_info *info)
{
	struct folder *f = (struct folder *)(uintptr_t)info->fh;

	if (offset) {
		give_entries(f, req, size, offset);
		return;
	}
	f->req = req;
	f->size = size;
	f->count = f->next = f->err = 0;
	/* The kernel takes the parent's inode from this one's own lookup. */
	add_entry(f, ".", 1, node_stat(n).st_ino, S_IFDIR);
	add_entry(f, "..", 2, node_stat(n).st_ino, S_IFDIR);
	ask_names(f);
}

void folder_release(fuse_req_t req, struct fuse_file_info *info)
{
	struct folder *f = (struct folder *)(uintptr_t)info->fh;

	free(f->entries);
	free(f);
	fuse_reply_err(req, 0);
}

/* ---- Changes by a path -------------------------------------------------------------------- */

struct change {
	fuse_req_t req;
	fuse_ino_t parent;
	char *made;	    /* a name that has to be looked up then, or NULL */
	struct node *sized; /* or a file that was truncated */
	int err;
};

static void change_walk(void *arg, int err, struct p9_reply *r)
{
	(void)r;
	((struct change *)arg)->err = err;
}

static void changed(void *arg, int err, struct p9_reply *r)
{
	struct change *c = arg;

	(void)r;
	err = c->err ? c->err : err;
	if (!err && c->made) {
		node_lookup(c->req, c->parent, c->made);
	} else if (!err && c->sized) {
		struct stat st = node_stat(c->sized);

		fuse_reply_attr(c->req, &st, node_stat_s(c->sized));
		node_lower(c->sized);
	} else {
		fuse_reply_err(c->req, -err);
	}
	free(c->made);
	free(c);
}

/* Take the path up for a change, whose request follows. NULL: it has been answered. */
static struct change *begin_change(fuse_req_t req, const char *path)
{
	struct change *c = calloc(1, sizeof(*c));

	if (!c || !node_walk(path, PATH_FID, change_walk, c)) {
		free(c);
		fuse_reply_err(req, ENOMEM);
		return NULL;
	}
	c->req = req;
	return c;
}

static void send_change(struct change *c)
{
	p9_send(changed, c);
	node_clunk(PATH_FID);
}

void folder_make(fuse_req_t req, fuse_ino_t parent, const char *name,
		 mode_t mode)
{
	struct change *c = begin_change(req, node_of(parent)->path);

	if (!c)
		return;
	c->parent = parent;
	c->made = strdup(name);
	p9_begin(P9_TMKDIR);
	p9_put(PATH_FID, 4);
	p9_put_text(name, strlen(name));
	p9_put(mode, 4);
	p9_put(0, 4);
	send_change(c);
}

void folder_remove(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct change *c = begin_change(req, node_of(parent)->path);

	if (!c)
		return;
	p9_begin(P9_TUNLINKAT);
	p9_put(PATH_FID, 4);
	p9_put_text(name, strlen(name));
	p9_put(0x200, 4);
	send_change(c);
}

void folder_truncate(fuse_req_t req, struct node *n, off_t size)
{
	struct change *c = begin_change(req, n->path);

	if (!c)
		return;
	c->sized = n;
	p9_begin(P9_TSETATTR);
	p9_put(PATH_FID, 4);
	p9_put(P9_SETATTR_SIZE, 4);
	p9_put(0, 4);
	p9_put(0, 8);
	p9_put(size, 8);
	send_change(c);
}
