/* SPDX-License-Identifier: MIT */
/* Binary pages in the other byte order: raw_swap.c. */
#ifndef TRACER_RAW_SWAP_H
#define TRACER_RAW_SWAP_H

#include <kernel/types.h>

/* A page of raw.h for a reader of the other byte order: each number's bytes change places. */
void raw_page_swap(char *page);

static inline void raw_swap(void *at, unsigned int size)
{
	u8 *bytes = at, last;

	for (unsigned int i = 0; i < size / 2; i++) {
		last = bytes[size - 1 - i];
		bytes[size - 1 - i] = bytes[i];
		bytes[i] = last;
	}
}

#endif
