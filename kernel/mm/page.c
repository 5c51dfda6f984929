/* SPDX-License-Identifier: MIT */
/*
 * Pages: a buddy allocator over all of boot_info's memory. A free block of 2^order
 * pages is aligned to its size, and holds its own list node. One byte for each page
 * says whether a block begins there, and whether it is free. So a free finds the
 * buddy at once, and a wrong free is noticed.
 */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/event/event.h>
#include <kernel/lib/list.h>
#include <kernel/lock/lock.h>
#include <kernel/mm/mm_internal.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/mm/page.h>

#define NR_ORDERS 12 /* the largest block: 8 MiB */

/* Does a block begin at this page, free or used? The lower bits hold its order. */
enum { PAGE_INSIDE = 0, PAGE_FREE = 0x40, PAGE_USED = 0x80 };

static struct spinlock lock = SPINLOCK_INIT("pages");
/* under lock: */
static struct list free_blocks[NR_ORDERS];
static u8 *page_state; /* [pfn - first_pfn] */
static unsigned long pages_free, failures;
/* fixed at boot: */
static unsigned long first_pfn, end_pfn, pages_total;

static struct list *node_of(unsigned long pfn)
{
	return arch_phys_to_virt((u64)pfn << PAGE_SHIFT);
}

static unsigned long pfn_of(const void *page)
{
	return arch_virt_to_phys(page) >> PAGE_SHIFT;
}

static u8 *page_state_of(unsigned long pfn)
{
	return &page_state[pfn - first_pfn];
}

static void block_add(unsigned long pfn, unsigned int order)
{
	*page_state_of(pfn) = PAGE_FREE | order;
	list_add_before(free_blocks[order].next, node_of(pfn));
}

static void block_del(unsigned long pfn)
{
	*page_state_of(pfn) = PAGE_INSIDE;
	list_del(node_of(pfn));
}

/* Free a block and join it with its buddy as long as that is free as well. */
static void block_free(unsigned long pfn, unsigned int order)
{
	pages_free += 1ul << order;
	*page_state_of(pfn) = PAGE_INSIDE;
	for (; order < NR_ORDERS - 1; order++) {
		unsigned long buddy = pfn ^ (1ul << order);

		if (buddy < first_pfn || buddy >= end_pfn ||
		    *page_state_of(buddy) != (PAGE_FREE | order))
			break;
		block_del(buddy);
		pfn &= ~(1ul << order);
	}
	block_add(pfn, order);
}

/* Take a block of at least the order, and give back the upper halves. */
static void *block_take(unsigned int order)
{
	unsigned int o = order;
	unsigned long pfn;

	while (o < NR_ORDERS && list_empty(&free_blocks[o]))
		o++;
	if (o >= NR_ORDERS)
		return NULL;
	pfn = pfn_of(free_blocks[o].next);
	block_del(pfn);
	while (o-- > order)
		block_add(pfn + (1ul << o), o);
	*page_state_of(pfn) = PAGE_USED | order;
	pages_free -= 1ul << order;
	return node_of(pfn);
}

FAULT(memory_fails, "an allocation of memory fails");

void *page_alloc(unsigned int order)
{
	irq_state_t state = spin_lock(&lock);
	void *page =
		fault_happens(&fault_memory_fails) ? NULL : block_take(order);

	failures += !page;
	spin_unlock(&lock, state);
	trace_mm_page_alloc(page ? pfn_of(page) : ~0ul, order);
	return page;
}

unsigned int page_order(const void *page)
{
	unsigned long pfn = pfn_of(page);

	if (pfn < first_pfn || pfn >= end_pfn ||
	    (unsigned long)page % PAGE_SIZE ||
	    !(*page_state_of(pfn) & PAGE_USED))
		panic("%p is no allocated page", page);
	return *page_state_of(pfn) & ~PAGE_USED;
}

void page_free(void *page, unsigned int order)
{
	irq_state_t state;

	if (page_order(page) != order)
		panic("page_free: %p is of order %u, not %u", page,
		      page_order(page), order);
	trace_mm_page_free(pfn_of(page), order);
	state = spin_lock(&lock);
	block_free(pfn_of(page), order);
	spin_unlock(&lock, state);
}

/* ---- boot ---- */

static void add_range(unsigned long pfn, unsigned long end)
{
	while (pfn < end) {
		unsigned int order = 0;

		while (order < NR_ORDERS - 1 && !(pfn & (1ul << order)) &&
		       pfn + (2ul << order) <= end)
			order++;
		block_free(pfn, order);
		pfn += 1ul << order;
	}
}

/* The states' own memory comes off the end of the largest range. */
static struct boot_range *place_states(void)
{
	struct boot_range *m = boot_info.mem, *largest = m;
	u64 bytes;

	first_pfn = ~0ul;
	for (unsigned int i = 0; i < boot_info.nr_mem; i++) {
		first_pfn = min(first_pfn,
				(unsigned long)(m[i].start >> PAGE_SHIFT));
		end_pfn = max(end_pfn, (unsigned long)(m[i].end >> PAGE_SHIFT));
		if (m[i].end - m[i].start > largest->end - largest->start)
			largest = &m[i];
	}
	bytes = ALIGN_UP((u64)(end_pfn - first_pfn), (u64)PAGE_SIZE);
	if (!boot_info.nr_mem || largest->end - largest->start <= bytes)
		panic("the firmware names no memory that can be used");
	page_state = arch_phys_to_virt(largest->end - bytes);
	memset(page_state, PAGE_INSIDE, bytes);
	return largest;
}

void mm_init(void)
{
	struct boot_range *largest;
	u64 states;

	for (unsigned int o = 0; o < NR_ORDERS; o++)
		list_init(&free_blocks[o]);
	largest = place_states();
	states = arch_virt_to_phys(page_state);
	for (unsigned int i = 0; i < boot_info.nr_mem; i++) {
		struct boot_range *m = &boot_info.mem[i];

		add_range(m->start >> PAGE_SHIFT,
			  (m == largest ? states : m->end) >> PAGE_SHIFT);
	}
	pages_total = pages_free;
	kmalloc_init();
}

void mm_stats(struct mm_stats *s)
{
	irq_state_t state = spin_lock(&lock);

	*s = (struct mm_stats){
		.pages_total = pages_total,
		.pages_free = pages_free,
		.failures = failures,
	};
	spin_unlock(&lock, state);
	kmalloc_stats(s);
}
