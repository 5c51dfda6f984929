/* SPDX-License-Identifier: MIT */
/* Open files: opening, writing, closing. Their reads are in reads.h. */
#ifndef TOOLS_FILE_H
#define TOOLS_FILE_H

#include "node.h"

#define FILES_MAX 1024

struct read;

struct file {
	struct file *next_waiting; /* of those with a handle */
	struct node *node;
	uint32_t fid;
	bool is_read; /* it was opened for reading */
	enum {
		TEXT,	 /* has places */
		ENTRIES, /* trace_pipe: each read goes on */
		PAGES,	 /* trace_pipe_raw */
	} kind;
	bool is_paged;
	struct read *reads;
	struct p9_call *reading; /* the guest has been asked for: */
	uint32_t asked;
	uint32_t asked_for; /* PAGES: struct read's wants */
	uint64_t asked_at;
	/* The bytes that the guest has given last. A TEXT has it from place `offset` on.
	 * A reader of ENTRIES or PAGES has taken the first `at` bytes. */
	char *kept;
	uint32_t len, at;
	uint64_t offset;
	uint64_t taken; /* bytes of a stream that the guest has given */
	bool ends;	/* behind that */
	bool fresh;	/* it is the answer to the first of `reads` */
	bool early;	/* it was asked for with the open */
	uint64_t early_until;
	uint64_t early_changes; /* `changes` then */
	int err;		/* for the next reader */
	struct fuse_pollhandle
		*handle; /* of a program that waits in poll(), or NULL */
	bool polled;
	uint64_t not_before; /* asking for PAGES again, in ns, while tracing is off */
};

/* Operations, each of which answers its request, now or later. `info` is the request's own. */
void file_open(fuse_req_t req, struct node *n, struct fuse_file_info *info);
void file_write(fuse_req_t req, struct file *f, const char *data, size_t size);
void file_release(fuse_req_t req, struct file *f);

#endif
