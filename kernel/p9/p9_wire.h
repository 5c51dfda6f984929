/* SPDX-License-Identifier: MIT */
/* The bytes of 9P2000.L messages: little endian, texts with their length before them. */
#ifndef KERNEL_P9_WIRE_H
#define KERNEL_P9_WIRE_H

#include <kernel/p9/p9_numbers.h>
#include <kernel/types.h>

/* A message that is read or written from `at` on. bad: it was too short for that. */
struct p9_wire {
	u8 *buf;
	u32 at, size;
	bool bad;
};

/* The next number, of n bytes. 0 if there is none. */
u64 p9_get(struct p9_wire *w, unsigned int n);
/* The next text. One that has no room in `text` is as bad as one that is cut. */
void p9_get_text(struct p9_wire *w, char *text, size_t size);

void p9_put(struct p9_wire *w, u64 value, unsigned int n);
void p9_put_text(struct p9_wire *w, const char *text);

#endif
