/* SPDX-License-Identifier: MIT */
/*
 * The two rings in the guest's memory, one for requests and one for replies. The guest writes its
 * words as it likes: each is loaded once, and checked before it is used. A guest that has written
 * nonsense gets no more requests, and gives no more replies.
 */
#ifndef TOOLS_MAILBOX_H
#define TOOLS_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Find the rings in `memory`, and ask for a new session: as p9_attach(). */
const char *mailbox_open(const char *memory, pid_t pid);

/* Has the guest begun the session? */
bool mailbox_is_ready(void);

/* Goes on as long as the guest serves, and the nonsense that it has written, or NULL. */
uint32_t mailbox_alive(void);
const char *mailbox_is_broken(void);
void mailbox_give_up(const char *why); /* it is nonsense, as this line says */

/* Bytes that the ring of requests has room for, put a request there, let the guest see all. */
uint32_t mailbox_room(void);
void mailbox_put(const uint8_t *message, uint32_t size);
void mailbox_publish(void);

/* Take a whole reply of up to `size` bytes, at least 7. Its size. 0: there is none. */
uint32_t mailbox_take(uint8_t *message, uint32_t size);

/* This machine's clock, which only goes on, for the waits of this program. */
uint64_t mailbox_now_ns(void);

#endif
