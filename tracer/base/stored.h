/* SPDX-License-Identifier: MIT */
/*
 * Numbers as the machine that recorded them has stored them. Here it is this machine. tools/extract
 * compiles the tracer's readers for the host, where it is the guest, whose byte order and long may
 * be others: tools/extract/machine.h defines all of this for it.
 */
#ifndef TRACER_STORED_H
#define TRACER_STORED_H

#include <kernel/image/symbols.h>
#include <kernel/types.h>

#define STORED_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define STORED_LONG sizeof(long)
/* Offsets of functions count from here. */
#define STORED_TEXT ((unsigned long)_text)
/* In a table: the size of n longs, and bytes that such a size stands for. */
#define STORED_LONGS(n) ((n) * sizeof(long))
#define STORED_SIZE(size) (size)

/* A difference, as a long of the machine has it. */
static inline long stored_long(s64 v)
{
	return v;
}

static inline u32 stored_u32(const u32 *p)
{
	return *p;
}

/* Store a number of 2, 4 or 8 bytes, at a place of that alignment. */
static always_inline void store_number(void *to, u64 v, unsigned int size)
{
	if (size == 2)
		*(u16 *)to = v;
	else if (size == 4)
		*(u32 *)to = v;
	else
		*(u64 *)to = v;
}

/* The text at an address that was recorded. */
static inline const char *stored_text(unsigned long addr)
{
	return (const char *)addr;
}

#endif
