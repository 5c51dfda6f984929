/* SPDX-License-Identifier: MIT */
/*
 * A client of 9P2000.L through a guest's mailbox: two rings of bytes in the guest's memory, which
 * kernel/p9/p9_mailbox.c describes. kernel/p9/p9.h says which messages there are.
 *
 * The program has one thread. A request is queued, p9_step() sends it, and a function of the
 * caller takes the reply. The guest answers in the order of the requests, but for reads that wait.
 * So several requests can be queued at once, each of which relies on the one before.
 *
 * The guest is not trusted: each number of a reply is checked where p9.c takes it out of the ring,
 * or by p9_get().
 */
#ifndef TOOLS_P9_H
#define TOOLS_P9_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <kernel/p9/p9_numbers.h>

#define P9_ROOT 0    /* the fid of / */
#define P9_FIDS 1026 /* all fids are smaller */

/* ---- The bytes of messages --------------------------------------------------------- */

/* A reply that is read from `at` on. bad: it was too short for that. */
struct p9_reply {
	const uint8_t *buf;
	uint32_t at, size;
	bool bad;
};

/* The next number, of n bytes, or 0, and the next n bytes, or NULL. */
uint64_t p9_get(struct p9_reply *r, unsigned int n);
const uint8_t *p9_get_bytes(struct p9_reply *r, uint32_t n);

/* Begin a request, and add to it. There is one at a time, until p9_send(). */
void p9_begin(uint8_t type);
void p9_put(uint64_t value, unsigned int n);
void p9_put_bytes(const void *data, size_t n);
void p9_put_text(const char *text, size_t n);

/* ---- Requests --------------------------------------------------------------------- */

/* Takes a reply. err: 0, or the guest's error. -EIO: the guest does not answer, or its answer makes
 * no sense. -EINTR: p9_flush() has ended the request. reply: NULL after an error. */
typedef void p9_taker(void *arg, int err, struct p9_reply *reply);

/* Queue the request. `taker` is called by p9_step(), once. NULL: the reply does not matter. What
 * is returned stands until then. */
struct p9_call;
struct p9_call *p9_send(p9_taker *taker, void *arg);

/* Make the guest give a request up, whose taker gets -EINTR, or the reply that came before. */
void p9_flush(struct p9_call *call);

/* The taker of a request is not called any more. */
void p9_forget(struct p9_call *call);

/* Send queued requests, and give replies to their takers. True: something was moved. */
bool p9_step(void);

/* The guest has ended, or is not asked any more: all that waits fails. */
void p9_give_up(void);

/* Is a reply expected? */
bool p9_is_waiting(void);

/* ---- The guest ----------------------------------------------------------------------- */

/*
 * Find the mailbox in `memory`, the file that is the guest's memory, and begin a session. pid is
 * QEMU's process, or 0. NULL, or the mistake. It waits for a guest that boots.
 */
const char *p9_attach(const char *memory, pid_t pid);

/* A file that can be read from once QEMU has ended, or -1, and has it? */
int p9_end_fd(void);
bool p9_has_ended(void);

#endif
