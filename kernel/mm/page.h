/* SPDX-License-Identifier: MIT */
/* Pages. */
#ifndef KERNEL_PAGE_H
#define KERNEL_PAGE_H

#include <kernel/test/fault.h>

/* Take over boot_info's memory. Boot CPU, once. */
void mm_init(void);

/*
 * 2^order contiguous pages, aligned to their size, not zeroed. NULL when there are
 * none, which is counted. Any context but NMI. Free them with the same order.
 */
void *page_alloc(unsigned int order);
void page_free(void *page, unsigned int order);

FAULT_DECLARE(memory_fails); /* of page_alloc() and kmalloc() */

/* Figures of both allocators. */
struct mm_stats {
	unsigned long pages_total, pages_free; /* of PAGE_SIZE */
	unsigned long kmalloc_bytes, kmalloc_objects;
	unsigned long slab_pages; /* in which kmalloc() has small objects */
	unsigned long failures;
};
void mm_stats(struct mm_stats *s);

#endif
