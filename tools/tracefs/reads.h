/* SPDX-License-Identifier: MIT */
/*
 * Reads and poll() of open files. A read waits here, not in a thread: its request stays in a list
 * until the guest answers. A read that waits for entries ends when its program is interrupted.
 */
#ifndef TOOLS_READS_H
#define TOOLS_READS_H

#include "file.h"

/* Operations, each of which answers its request, now or later. `info` is the request's own. */
void reads_add(fuse_req_t req, struct file *f, size_t size, off_t offset,
	       const struct fuse_file_info *info);
void reads_poll(fuse_req_t req, struct file *f, struct fuse_pollhandle *handle);

/* Ask for the beginning of a file, behind the open that is queued. */
void reads_ask_early(struct file *f);

/* A program changes something: a beginning that the guest gave before is old. */
void reads_are_old(void);

/* Ask for the pages that programs wait for in poll(), if it is time. In how many ns to look again.
 * -1: no program waits for a time. */
int64_t reads_look(void);

/* The file is closed: no program waits for it. */
void reads_end(struct file *f);

#endif
