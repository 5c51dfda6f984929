/* SPDX-License-Identifier: MIT */
/* Nodes, and requests about paths: node.h. */
#define _GNU_SOURCE
#include "node.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mailbox.h"

#define HASH 1024
#define NAMES_MAX 16 /* of one walk */
#define ENDLESS (1ull << 50)
#define RAISE_FIRST_NS 50000
#define RAISE_LAST_NS 1000000000
#define KEEP_S                                                                 \
	1.0 /* the kernel keeps a name, and the result of stat(), for so long */

const char *node_left_out;
struct fuse_session *node_session;
static struct node *nodes[HASH], *lowered;
static struct node root = {
	.mode = S_IFDIR | 0755, .nlink = 2, .ino = 1, .path = ""
};

bool node_is_left_out(const char *name)
{
	return node_left_out && *name && !fnmatch(node_left_out, name, 0);
}

struct node *node_of(fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? &root : (struct node *)(uintptr_t)ino;
}

static struct node **place_of(const char *path)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	while (*path)
		hash = (hash ^ (uint8_t)*path++) * 16777619u;
	return &nodes[hash % HASH];
}

/* The node of a path, or a new one. NULL: no memory. */
static struct node *node_get(const char *path)
{
	struct node **at = place_of(path), *n;

	for (n = *at; n; n = n->next)
		if (!strcmp(n->path, path))
			return n;
	n = calloc(1, sizeof(*n) + strlen(path) + 1);
	if (!n)
		return NULL;
	n->path = strcpy((char *)(n + 1), path);
	n->next = *at;
	*at = n;
	return n;
}

void node_forget(struct node *n, uint64_t lookups)
{
	struct node **at = place_of(n->path);

	if (n == &root)
		return;
	n->lookups -= lookups;
	if (n->lookups)
		return;
	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	if (n->raise_again) {
		for (at = &lowered; *at != n; at = &(*at)->next_lowered)
			;
		*at = n->next_lowered;
	}
	free(n);
}

struct stat node_stat(const struct node *n)
{
	return (struct stat){
		.st_ino = n->ino,
		.st_mode = n->mode,
		.st_nlink = n->nlink,
		.st_uid = getuid(),
		.st_gid = getgid(),
		.st_blksize = 4096,
	};
}

double node_stat_s(const struct node *n)
{
	return n->readers ? 0 : KEEP_S;
}

/* The kernel's size reaches behind a byte that is stored there. */
void node_raise(struct node *n)
{
	struct fuse_bufvec bytes = FUSE_BUFVEC_INIT(1);
	char byte = 0;

	bytes.buf[0].mem = &byte;
	if (n->readers)
		fuse_lowlevel_notify_store(node_session, (uintptr_t)n,
					   ENDLESS + n->raised++, &bytes,
					   FUSE_BUF_NO_SPLICE);
}

void node_lower(struct node *n)
{
	if (!n->readers)
		return;
	if (!n->raise_again) {
		n->next_lowered = lowered;
		lowered = n;
	}
	n->raise_again = RAISE_FIRST_NS;
	n->raise_at = mailbox_now_ns() + n->raise_again;
}

/* Raise it, if it is time. False: that was the last time. */
static bool raise_again(struct node *n)
{
	if (n->raise_at > mailbox_now_ns())
		return true;
	node_raise(n);
	n->raise_again *= 2;
	n->raise_at += n->raise_again;
	return n->readers && n->raise_again < RAISE_LAST_NS;
}

int64_t node_raise_lowered(void)
{
	struct node **at = &lowered, *n;
	int64_t wait = -1, left;

	while ((n = *at)) {
		if (!raise_again(n)) {
			n->raise_again = 0;
			*at = n->next_lowered;
			continue;
		}
		left = n->raise_at - mailbox_now_ns();
		left = left > 0 ? left : 0;
		wait = wait < 0 || left < wait ? left : wait;
		at = &n->next_lowered;
	}
	return wait;
}

/* ---- Walks ---------------------------------------------------------------------------- */

struct walk {
	p9_taker *taker;
	void *arg;
	uint32_t names;
};

static void take_walk(void *arg, int err, struct p9_reply *r)
{
	struct walk *w = arg;
	uint64_t there = err ? 0 : p9_get(r, 2);

	if (!err && (r->bad || there > w->names))
		err = -EIO;
	else if (!err && there < w->names)
		err = -ENOENT;
	if (err)
		w->taker(w->arg, err, NULL);
	free(w);
}

static const char *next_name(const char *path, size_t *n)
{
	while (*path == '/')
		path++;
	*n = strcspn(path, "/");
	return path;
}

bool node_walk(const char *path, uint32_t fid, p9_taker *taker, void *arg)
{
	struct walk *w = calloc(1, sizeof(*w));
	const char *name;
	size_t n;

	if (!w)
		return false;
	*w = (struct walk){ .taker = taker, .arg = arg };
	for (name = next_name(path, &n); n; name = next_name(name + n, &n))
		w->names++;
	if (w->names > NAMES_MAX) {
		free(w);
		return false;
	}
	p9_begin(P9_TWALK);
	p9_put(P9_ROOT, 4);
	p9_put(fid, 4);
	p9_put(w->names, 2);
	for (name = next_name(path, &n); n; name = next_name(name + n, &n))
		p9_put_text(name, n);
	p9_send(take_walk, w);
	return true;
}

void node_clunk(uint32_t fid)
{
	p9_begin(P9_TCLUNK);
	p9_put(fid, 4);
	p9_send(NULL, NULL);
}

char *node_path(const struct node *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", folder->path, name) < 0 ? NULL : path;
}

/* ---- Lookup ------------------------------------------------------------------------------ */

struct lookup {
	fuse_req_t req;
	int err;
	char *path;
};

static void end_lookup(struct lookup *l, const struct fuse_entry_param *e)
{
	if (e)
		fuse_reply_entry(l->req, e);
	else
		fuse_reply_err(l->req, -l->err);
	free(l->path);
	free(l);
}

static void lookup_walk(void *arg, int err, struct p9_reply *r)
{
	(void)r;
	((struct lookup *)arg)->err = err;
}

/* The words of a reply to getattr: a type that no file here has makes no sense. */
static int take_attr(struct node *n, struct p9_reply *r)
{
	uint64_t ino, mode, nlink;

	p9_get(r, 8 + 5);
	ino = p9_get(r, 8);
	mode = p9_get(r, 4);
	p9_get(r, 8);
	nlink = p9_get(r, 8);
	if (r->bad || (!S_ISREG(mode) && !S_ISDIR(mode)))
		return -EIO;
	n->ino = ino;
	n->mode = (mode & S_IFMT) | (mode & 0777);
	n->nlink = nlink;
	return 0;
}

static void lookup_attr(void *arg, int err, struct p9_reply *r)
{
	struct fuse_entry_param e = { .entry_timeout = KEEP_S };
	struct node read = { .mode = 0 }, *n;
	struct lookup *l = arg;

	if (!l->err)
		l->err = err ? err : take_attr(&read, r);
	n = l->err ? NULL : node_get(l->path);
	if (!n) {
		l->err = l->err ? l->err : -ENOMEM;
		end_lookup(l, NULL);
		return;
	}
	n->ino = read.ino;
	n->mode = read.mode;
	n->nlink = read.nlink;
	n->lookups++;
	node_raise(n);
	e.ino = (uintptr_t)n;
	e.attr = node_stat(n);
	e.attr_timeout = node_stat_s(n);
	end_lookup(l, &e);
}

void node_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct lookup *l;

	if (node_is_left_out(name)) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	l = calloc(1, sizeof(*l));
	if (!l || !(l->path = node_path(node_of(parent), name))) {
		free(l);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	l->req = req;
	if (!node_walk(l->path, PATH_FID, lookup_walk, l)) {
		l->err = -ENAMETOOLONG;
		end_lookup(l, NULL);
		return;
	}
	p9_begin(P9_TGETATTR);
	p9_put(PATH_FID, 4);
	p9_put(P9_GETATTR_BASIC, 8);
	p9_send(lookup_attr, l);
	node_clunk(PATH_FID);
}
