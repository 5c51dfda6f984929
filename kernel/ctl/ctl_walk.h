/* SPDX-License-Identifier: MIT */
/* All paths of control files, for the control-file layer alone. */
#ifndef KERNEL_CTL_WALK_H
#define KERNEL_CTL_WALK_H

#include <kernel/ctl/ctl.h>

#define CTL_PATH 128

REGISTRY(struct ctl_folders, ctl_folders);

/* A walk over all paths, those with %u once for each CPU, those with %s for each name, and
 * all of these again in each folder. */
struct ctl_walk {
	/* Paths that cannot be this one, or below it, are passed over. */
	const char *wanted;
	size_t wanted_len;	     /* without slashes at its end */
	const struct ctl_file *file; /* NULL: the walk has not begun */
	unsigned int n;		     /* the CPU, or the name's number */
	unsigned int folder;	     /* 0: none */
	size_t differs_at; /* the next n changes nothing in the path before that */
	char path[CTL_PATH];
};

/*
 * Begin before the first path, and go to the next one. False: there is none. A path that agrees
 * with `wanted` only in part may be among them. Any task.
 */
void ctl_walk_start(struct ctl_walk *w, const char *wanted);
bool ctl_walk_next(struct ctl_walk *w);

/* Is the path's folder still the one that it names? Another task may have removed that, and made
 * another in its place. Context: the folder is in use. */
bool ctl_walk_holds(const struct ctl_walk *w);

/* Pass over the file's other names if they would change nothing in the path's first len bytes. */
void ctl_walk_skip(struct ctl_walk *w, size_t len);

/* The part of a path below dir, or NULL if it is not below. */
const char *ctl_below(const char *path, const char *dir);

#endif
