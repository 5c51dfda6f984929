/* SPDX-License-Identifier: MIT */
/* Sorting. */
#ifndef KERNEL_SORT_H
#define KERNEL_SORT_H

#include <kernel/types.h>

/*
 * Sort n rows of `size` bytes each, a multiple of 4, at a word's boundary. comes_first(a, b): must
 * row a stand before row b? Rows that are equal change places at will. n log n steps, whatever
 * their order was: users decide how long some lists are. Any context.
 */
void sort_rows(void *base, size_t n, size_t size,
	       bool (*comes_first)(const void *a, const void *b));

#endif
