/* SPDX-License-Identifier: MIT */
/*
 * A server of the protocol 9P2000.L over the control files: the calls of a program on the
 * host reach ctl_open(), ctl_read() and ctl_write(), and their errors go back. A subset:
 * version, attach, walk, lopen, read, write, readdir, getattr, setattr (size 0 alone), mkdir,
 * unlinkat (of a folder), clunk, flush, fsync. Linux's Documentation/filesystems/9p.rst names the
 * protocol's texts.
 *
 * A write is carried out when its message ends, so its error is the write's own. A write that
 * fills its message (P9_IOUNIT bytes) waits for the next one, or for the clunk.
 *
 * A read that has to wait, of trace_pipe, stays open while other messages are answered.
 */
#ifndef KERNEL_P9_H
#define KERNEL_P9_H

#include <kernel/p9/p9_numbers.h>
#include <kernel/types.h>

struct p9_session;

/* NULL: out of memory. Context of all here: a task that may sleep, one task for a session. */
struct p9_session *p9_open(void);
/* Close all its files. Writes that have not ended are dropped. It is as new then. */
void p9_reset(struct p9_session *s);
void p9_close(struct p9_session *s);

/*
 * Answer a message of `size` bytes. Returns the length of the reply, at most P9_MSIZE bytes. 0: the
 * reply comes later, from p9_later(). There is no other outcome: Rlerror answers a message that
 * makes no sense.
 */
u32 p9_answer(struct p9_session *s, const u8 *message, u32 size, u8 *reply);

/* A reply that has become possible, as above. 0: there is none now. */
u32 p9_later(struct p9_session *s, u8 *reply);

#endif
