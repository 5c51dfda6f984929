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

#define HASH 1024
#define NAMES_MAX 16 /* of one walk */
#define SIZE_AT_FIRST (1ull << 30)
#define ENTRY_S 1.0 /* the kernel keeps a name for so long */

const char *node_left_out;
static struct node *nodes[HASH];
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

/* The node of a path, or a new one; NULL: no memory. */
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
	n->size = SIZE_AT_FIRST;
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

void node_raise(struct fuse_session *session, struct node *n)
{
	struct fuse_bufvec none = FUSE_BUFVEC_INIT(0);

	if (!S_ISREG(n->mode))
		return;
	n->size++;
	n->lowered = false;
	/* Nothing is stored there, but a file that reaches so far is as large. */
	fuse_lowlevel_notify_store(session, (uintptr_t)n, n->size, &none,
				   FUSE_BUF_NO_SPLICE);
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
	struct fuse_entry_param e = { .entry_timeout = ENTRY_S };
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
	n->lowered = false;
	e.ino = (uintptr_t)n;
	e.attr = node_stat(n);
	/* Nothing shows this size: it is the kernel's own. */
	e.attr.st_size = S_ISREG(n->mode) ? (off_t)n->size : 0;
	e.attr_timeout = S_ISDIR(n->mode) ? ENTRY_S : 0;
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
	p9_put(0x7ff, 8);
	p9_send(lookup_attr, l);
	node_clunk(PATH_FID);
}
