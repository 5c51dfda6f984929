/* SPDX-License-Identifier: MIT */
/*
 * kmalloc: objects of a few sizes, cut from pages. A slab is one page: a header with a
 * bit for each object, then the objects, all of one size. An object that is larger
 * than any in a slab gets pages of its own. Its address is page-aligned, which an
 * object in a slab never is, so kfree() can tell them apart. A slab that falls empty
 * gives its page back at once, so the free memory does not depend on earlier use.
 */
#include <kernel/event/event.h>
#include <kernel/lib/bits.h>
#include <kernel/lib/list.h>
#include <kernel/lock/lock.h>
#include <kernel/mm/mm_internal.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/mm/page.h>
#include <kernel/mm/kmalloc.h>

#define SLAB_HEADER 96
#define SLAB_MAGIC 0x51ab51ab
#define SLAB_OBJECTS(size) ((PAGE_SIZE - SLAB_HEADER) / (size))
#define SLAB_WORDS 8

/* Multiples of 16. The larger sizes let 8, 4 or 2 objects fit a page. */
static const u16 sizes[] = { 16, 32, 48, 64, 96, 128, 192, 256, 496, 992, 2000 };
#define NR_SIZES ARRAY_SIZE(sizes)
#define SLAB_LARGEST 2000

struct slab {
	struct list link; /* with others of its size that have room */
	u32 magic;
	u16 size, used;
	u32 taken[SLAB_WORDS]; /* bit i: object i is allocated */
};

static_assert(sizeof(struct slab) <= SLAB_HEADER, "the header's room");
static_assert(SLAB_HEADER % 16 == 0, "objects are aligned to 16");
static_assert(SLAB_OBJECTS(16) <= 32 * SLAB_WORDS, "a bit for each object");
static_assert(SLAB_OBJECTS(SLAB_LARGEST) >= 1, "fits a page");

static struct spinlock lock = SPINLOCK_INIT("kmalloc");
/* under lock: */
static struct list with_room[NR_SIZES];
static unsigned long bytes, objects, failures, slab_pages;

void kmalloc_init(void)
{
	for (unsigned int i = 0; i < NR_SIZES; i++)
		list_init(&with_room[i]);
}

static unsigned int size_index(size_t size)
{
	unsigned int i = 0;

	while (sizes[i] < size)
		i++;
	return i;
}

static struct slab *slab_new(unsigned int i)
{
	struct slab *s = page_alloc(0);

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->magic = SLAB_MAGIC;
	slab_pages++;
	s->size = sizes[i];
	list_add_before(&with_room[i], &s->link);
	return s;
}

/* It has room: at least one bit is clear. */
static void *slab_take(struct slab *s)
{
	unsigned int w = 0, bit;

	while (s->taken[w] == ~0u)
		w++;
	bit = bit_lowest(~s->taken[w]);
	s->taken[w] |= 1u << bit;
	if (++s->used == SLAB_OBJECTS(s->size))
		list_del(&s->link);
	return (char *)s + SLAB_HEADER + (w * 32 + bit) * s->size;
}

static void slab_give(struct slab *s, void *p)
{
	size_t offset = (char *)p - (char *)s - SLAB_HEADER;
	unsigned int i = offset / s->size;

	if (offset % s->size || !(s->taken[i / 32] & (1u << i % 32)))
		panic("kfree: %p is not allocated", p);
	s->taken[i / 32] &= ~(1u << i % 32);
	if (s->used-- == SLAB_OBJECTS(s->size))
		list_add_before(&with_room[size_index(s->size)], &s->link);
	if (!s->used) {
		list_del(&s->link);
		s->magic = 0;
		slab_pages--;
		page_free(s, 0);
	}
}

static void *alloc_small(unsigned int i)
{
	struct list *l = &with_room[i];
	struct slab *s = list_empty(l) ? slab_new(i) :
					 list_entry(l->next, struct slab, link);

	return s ? slab_take(s) : NULL;
}

static void *alloc_large(size_t size, size_t *got)
{
	unsigned int order = 0;

	while (order < 31 - PAGE_SHIFT && PAGE_SIZE << order < size)
		order++;
	*got = PAGE_SIZE << order;
	return *got < size ? NULL : page_alloc(order);
}

/* For the function that calls: the event's call_site is its caller. */
static always_inline void *allocate_object(size_t size)
{
	irq_state_t state;
	size_t got = 0;
	void *p;

	if (!size)
		return NULL;
	state = spin_lock(&lock);
	if (fault_happens(&fault_memory_fails)) {
		p = NULL;
	} else if (size <= SLAB_LARGEST) {
		got = sizes[size_index(size)];
		p = alloc_small(size_index(size));
	} else {
		p = alloc_large(size, &got);
	}
	if (p) {
		bytes += got;
		objects++;
	} else {
		failures++;
	}
	spin_unlock(&lock, state);
	trace_kmalloc((unsigned long)__builtin_return_address(0), p, size, got);
	return p;
}

void *kmalloc(size_t size)
{
	return allocate_object(size);
}

void *kmalloc_zeroed(size_t size)
{
	void *p = allocate_object(size);

	if (p)
		memset(p, 0, size);
	return p;
}

static size_t free_large(void *p)
{
	unsigned int order = page_order(p);

	page_free(p, order);
	return PAGE_SIZE << order;
}

static size_t free_small(void *p)
{
	struct slab *s = (struct slab *)ALIGN_DOWN((uintptr_t)p, PAGE_SIZE);
	size_t size;

	page_order(s); /* panics if the page is not allocated */
	size = s->size;
	if (s->magic != SLAB_MAGIC || (char *)p < (char *)s + SLAB_HEADER)
		panic("kfree: %p is not allocated", p);
	slab_give(s, p);
	return size;
}

void kfree(void *p)
{
	irq_state_t state;

	trace_kfree((unsigned long)__builtin_return_address(0), p);
	if (!p)
		return;
	state = spin_lock(&lock);
	bytes -= (uintptr_t)p % PAGE_SIZE ? free_small(p) : free_large(p);
	objects--;
	spin_unlock(&lock, state);
}

void kmalloc_stats(struct mm_stats *s)
{
	irq_state_t state = spin_lock(&lock);

	s->kmalloc_bytes = bytes;
	s->kmalloc_objects = objects;
	s->slab_pages = slab_pages;
	s->failures += failures;
	spin_unlock(&lock, state);
}
