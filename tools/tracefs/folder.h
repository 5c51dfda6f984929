/* SPDX-License-Identifier: MIT */
/* Folders: their names, which are read from the guest at once, making them and taking them away,
 * and attributes set by a path. */
#ifndef TOOLS_FOLDER_H
#define TOOLS_FOLDER_H

#include "node.h"

/* Operations, each of which answers its request, now or later. */
void folder_open(fuse_req_t req, struct node *n, struct fuse_file_info *info);
void folder_read(fuse_req_t req, struct node *n, size_t size, off_t offset,
		 struct fuse_file_info *info);
void folder_release(fuse_req_t req, struct fuse_file_info *info);
void folder_make(fuse_req_t req, fuse_ino_t parent, const char *name,
		 mode_t mode);
void folder_remove(fuse_req_t req, fuse_ino_t parent, const char *name);

/* Give a file a size. Only 0 is one. */
void folder_truncate(fuse_req_t req, struct node *n, off_t size);

#endif
