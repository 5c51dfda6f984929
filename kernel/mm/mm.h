/* Memory: pages and kmalloc. */
#ifndef KERNEL_MM_H
#define KERNEL_MM_H

#include <kernel/types.h>

/* Take over boot_info's memory. Boot CPU, once. */
void mm_init(void);

/*
 * 2^order contiguous pages, aligned to their size, not zeroed; NULL when there
 * are none (counted). Any context but NMI. Free with the same order.
 */
void *page_alloc(unsigned int order);
void page_free(void *page, unsigned int order);

/*
 * size bytes, 16-byte aligned (8 on 32-bit), not zeroed; NULL when there is no
 * memory or size is 0. Any context but NMI. kfree(NULL) is harmless; freeing
 * what is not allocated panics.
 */
void *kmalloc(size_t size);
void *kzalloc(size_t size);
void kfree(void *p);

struct mm_stats {
	unsigned long pages_total, pages_free; /* of PAGE_SIZE */
	unsigned long kmalloc_bytes, kmalloc_objects;
	unsigned long failures;
};
void mm_stats(struct mm_stats *s);

#endif
