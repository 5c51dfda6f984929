/* SPDX-License-Identifier: MIT */
/* Objects of any size, cut from pages. */
#ifndef KERNEL_KMALLOC_H
#define KERNEL_KMALLOC_H

#include <kernel/types.h>

/*
 * size bytes, aligned to 16 bytes (8 on 32-bit machines), not zeroed. NULL when there
 * is no memory, or when size is 0. Any context but NMI. kfree(NULL) does nothing. A
 * kfree() of an address that is not allocated panics, and so does one of an object behind
 * whose end bytes were written (of 1996 bytes at most: larger ones have no guard).
 */
void *kmalloc(size_t size);
void *kmalloc_zeroed(size_t size);
void kfree(void *p);

/*
 * How many objects there are behind whose end bytes were written. *first is set to one, if there
 * is any. It looks at all objects with interrupts off: for tests. Any context but NMI.
 */
unsigned int kmalloc_damaged(const void **first);

#endif
