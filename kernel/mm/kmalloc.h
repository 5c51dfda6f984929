/* Objects of any size, cut from pages. */
#ifndef KERNEL_KMALLOC_H
#define KERNEL_KMALLOC_H

#include <kernel/types.h>

/*
 * size bytes, 16-byte aligned (8 on 32-bit), not zeroed; NULL when there is no
 * memory or size is 0. Any context but NMI. kfree(NULL) is harmless; freeing
 * what is not allocated panics.
 */
void *kmalloc(size_t size);
void *kzalloc(size_t size);
void kfree(void *p);

#endif
