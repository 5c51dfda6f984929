/* SPDX-License-Identifier: MIT */
/*
 * Nodes: the files and folders that this machine's kernel knows. Each has its path. The guest
 * keeps nothing for one. And requests about a path, for which the guest takes it up for a moment.
 */
#ifndef TOOLS_NODE_H
#define TOOLS_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define FUSE_USE_VERSION 35
#include <fuse3/fuse_lowlevel.h>

#include "p9.h"

struct node {
	struct node *next; /* of the same hash */
	uint64_t lookups;  /* that the kernel has not forgotten */
	uint64_t ino;
	uint32_t mode, nlink;
	uint32_t readers; /* open files that can be read */
	/* The kernel may take the file for empty: node_lower(). When that is mended, and in how
	 * many ns once more. */
	struct node *next_lowered;
	uint64_t raise_at, raise_again;
	uint64_t raised; /* times: the kernel sees a raised size only in one that grows */
	const char *path;
};

/* Files whose name matches this glob are not there. NULL: all are. */
extern const char *node_left_out;
bool node_is_left_out(const char *name);

/* The node of an inode's number. */
struct node *node_of(fuse_ino_t ino);

/* Forget n lookups of it. */
void node_forget(struct node *n, uint64_t lookups);

/* As stat() has it: the size is 0. And for how many seconds the kernel may keep that. */
struct stat node_stat(const struct node *n);
double node_stat_s(const struct node *n);

/*
 * splice() gives nothing, and no error, behind the size that the kernel has for a file (since Linux
 * 6.5, mmap() always). No size is known here before a file is read. So the kernel gets an endless
 * one while a reader has the file open: then splice() asks this program, and has its error or its
 * pages. stat() still gives 0, for the kernel does not let an older reply replace its own size.
 */
void node_raise(struct node *n);

/*
 * The kernel is about to lower its size, as behind O_TRUNC, after a reply that is sent now. Nothing
 * tells when it has. So node_raise_lowered() raises the size soon, and a few times more. It gives
 * the ns until it is to be called again, or -1.
 */
void node_lower(struct node *n);
int64_t node_raise_lowered(void);

extern struct fuse_session *node_session;

/* The fid that a path is taken up under, for one request or a few. */
#define PATH_FID 1

/*
 * Take a path up under a fid: the requests behind it rely on that. What is the error of a walk is
 * told to `taker`, with `arg`, before theirs. False: no path is so long, and nothing is queued.
 */
bool node_walk(const char *path, uint32_t fid, p9_taker *taker, void *arg);
void node_clunk(uint32_t fid);

/*
 * Answer a lookup of a name in a folder: a node, or an error. A folder's name that has been made
 * before is looked up in the same way.
 */
void node_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);

/* The path of a name in a folder. The caller frees it. NULL: no memory. */
char *node_path(const struct node *folder, const char *name);

#endif
