/*
 * A client of 9P2000.L through a guest's mailbox: two rings of bytes in the guest's memory, which
 * kernel/p9/p9_mailbox.c describes. kernel/p9/p9.h says which messages there are.
 */
#ifndef TOOLS_P9_H
#define TOOLS_P9_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define P9_MSIZE 32768
#define P9_IOUNIT (P9_MSIZE - 24) /* of these, the data of a read or a write */
#define P9_ROOT 0		  /* the fid of / */

enum {
	P9_RLERROR = 7,
	P9_TLOPEN = 12,
	P9_TGETATTR = 24,
	P9_TSETATTR = 26,
	P9_TREADDIR = 40,
	P9_TFSYNC = 50,
	P9_TMKDIR = 72,
	P9_TUNLINKAT = 76,
	P9_TVERSION = 100,
	P9_TATTACH = 104,
	P9_TFLUSH = 108,
	P9_TWALK = 110,
	P9_TREAD = 116,
	P9_TWRITE = 118,
	P9_TCLUNK = 120,
};

struct p9_msg {
	uint8_t buf[P9_MSIZE];
	uint32_t at;
};

/* Begin a request, and add numbers of n bytes and texts to it. */
void p9_begin(struct p9_msg *m, uint8_t type);
void p9_put(struct p9_msg *m, uint64_t value, unsigned int n);
void p9_put_text(struct p9_msg *m, const char *text, size_t n);

/* A number of n bytes of a reply. */
uint64_t p9_get(const uint8_t *buf, uint32_t at, unsigned int n);

/*
 * Send m, and wait for the reply, which replaces it. 0; the guest's error; -EIO: it does not
 * answer; -EINTR: the program that reads was interrupted, and the guest has given up, too.
 * Any thread.
 */
int p9_call(struct p9_msg *m);
/* The same; -EAGAIN: the reply would have to be waited for, and the guest has given up. */
int p9_try(struct p9_msg *m);

/* Read up to size bytes of an open file. How many; or an error as of p9_call(), or, if it does not
 * wait, of p9_try(). */
int p9_read(uint32_t fid, char *buf, size_t size, uint64_t offset, bool waits);

/*
 * Find the mailbox in `memory`, the file that is the guest's memory, and begin a session. pid is
 * QEMU's process, or 0. NULL; or what is wrong. It waits for a guest that boots.
 */
const char *p9_attach(const char *memory, pid_t pid);

/*
 * Receive replies from now on, in a thread of its own. is_interrupted: has the program that a
 * thread waits for been interrupted? ended: QEMU is gone, and every call gives -EIO.
 */
void p9_start(int (*is_interrupted)(void), void (*ended)(void));

#endif
