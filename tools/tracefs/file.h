/* SPDX-License-Identifier: MIT */
/*
 * Open files. A read waits here, not in a thread: its request stays in a list until the guest
 * answers, or until the program that reads is interrupted.
 */
#ifndef TOOLS_FILE_H
#define TOOLS_FILE_H

#include "node.h"

#define FILES_MAX 1024

struct file;

/* Operations, each of which answers its request, now or later. `info` is the request's own. */
void file_open(fuse_req_t req, struct node *n, struct fuse_file_info *info);
void file_read(fuse_req_t req, struct file *f, size_t size, off_t offset,
	       const struct fuse_file_info *info);
void file_write(fuse_req_t req, struct file *f, const char *data, size_t size);
void file_poll(fuse_req_t req, struct file *f, struct fuse_pollhandle *handle);
void file_release(fuse_req_t req, struct file *f);

/* Does it give whole pages, so that splice() can have them? */
bool file_gives_pages(const struct file *f);

/* Ask for the pages that programs wait for in poll(), if it is time. In how many ns to look again;
 * -1: no program waits for a time. */
int64_t file_look(void);

#endif
