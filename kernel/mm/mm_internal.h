/* SPDX-License-Identifier: MIT */
/* Between page.c and kmalloc.c. */
#ifndef KERNEL_MM_INTERNAL_H
#define KERNEL_MM_INTERNAL_H

#include <kernel/mm/page.h>

/* Of an allocated block, by its first page. Anything else panics. */
unsigned int page_order(const void *page);

void kmalloc_init(void);
void kmalloc_stats(struct mm_stats *s);

#endif
