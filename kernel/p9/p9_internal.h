/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the 9P server share. */
#ifndef KERNEL_P9_INTERNAL_H
#define KERNEL_P9_INTERNAL_H

#include <kernel/p9/p9.h>
#include <kernel/p9/p9_wire.h>

struct ctl_handle;

#define FIDS 1100 /* that a client has at once */
#define FID_LISTS 64
#define P9_PATH 128
#define P9_NAMES_MAX 16 /* of one walk */

/* A file or a folder that the client knows by a number of its own. */
struct fid {
	struct fid *next; /* of the same list */
	bool opened;
	u32 number;
	u32 flags; /* of lopen */
	char path[P9_PATH];
	/* NULL: not open for reading, or between two positions, or no write is under way. */
	struct ctl_handle *reader, *writer;
	u64 at;		    /* bytes read, or names of a folder */
	char last[P9_PATH]; /* of these, the last name */
	bool written;	    /* O_TRUNC has had its effect */
};

/* A read that has to wait. */
struct waiting {
	struct waiting *next;
	u16 tag;
	u32 fid, count;
	u64 offset;
};

struct p9_session {
	u32 msize;
	struct fid *fids[FID_LISTS]; /* by the number modulo FID_LISTS */
	unsigned int fid_count;
	char paths[1 + P9_NAMES_MAX]
		  [P9_PATH];	 /* of the walk that is being answered */
	struct waiting *waiting; /* the longest wait first */
};

/* The fid of that number, or NULL, and a new one, NULL: it is taken, or
 * there is no room for more. */
struct fid *p9_find_fid(struct p9_session *s, u32 number);
struct fid *p9_new_fid(struct p9_session *s, u32 number);

/* As ctl_mode(), but a folder is no error. */
int p9_mode(const char *path, bool *is_dir);
void p9_put_qid(struct p9_wire *w, const char *path, bool is_dir);

/* Messages: each fills the reply, or returns an error. */
int p9_walk(struct p9_session *s, struct p9_wire *in, struct p9_wire *out);
int p9_getattr(struct p9_session *s, struct p9_wire *in, struct p9_wire *out);
int p9_readdir(struct p9_session *s, struct p9_wire *in, struct p9_wire *out);
/* mkdir if `make`, else unlinkat. */
int p9_change_folder(struct p9_session *s, struct p9_wire *in,
		     struct p9_wire *out, bool make);

#endif
