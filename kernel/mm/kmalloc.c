/* SPDX-License-Identifier: MIT */
/*
 * kmalloc: objects of a few sizes, cut from pages. A slab is one page: a header with a
 * bit for each object, then the objects, all of one size. An object that is larger
 * than any in a slab gets pages of its own. Its address is page-aligned, which an
 * object in a slab never is, so kfree() can tell them apart. A slab that falls empty
 * gives its page back at once, so the free memory does not depend on earlier use.
 *
 * An object in a slab is smaller than its slot. The rest of the slot is its guard: bytes
 * of one value, then the object's size twice. A write behind the object changes the guard.
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

/* Of slots: multiples of 16. The larger ones fit a page 8, 4 or 2 times. */
static const u16 sizes[] = { 16, 32, 48, 64, 96, 128, 192, 256, 496, 992, 2000 };
#define NR_SIZES ARRAY_SIZE(sizes)
#define GUARD_BYTE 0xc5
#define SIZE_BYTES sizeof(u32)
#define SIZE_TWICE(size) ((u32)(size)*0x10001u)
#define SLAB_LARGEST (2000 - SIZE_BYTES)

struct slab {
	struct list link; /* with others of its size that have room */
	struct list all;  /* with all slabs */
	u32 magic;
	u16 size, used;
	u32 taken[SLAB_WORDS]; /* bit i: object i is allocated */
};

static_assert(sizeof(struct slab) <= SLAB_HEADER, "the header's room");
static_assert(SLAB_HEADER % 16 == 0, "objects are aligned to 16");
static_assert(SLAB_OBJECTS(16) <= 32 * SLAB_WORDS, "a bit for each object");
static_assert(SLAB_OBJECTS(SLAB_LARGEST + SIZE_BYTES) >= 1, "fits a page");

static struct spinlock lock = SPINLOCK_INIT("kmalloc");
/* under lock: */
static struct list with_room[NR_SIZES], slabs;
static unsigned long bytes, objects, failures, slab_pages;

void kmalloc_init(void)
{
	for (unsigned int i = 0; i < NR_SIZES; i++)
		list_init(&with_room[i]);
	list_init(&slabs);
}

/* Of the smallest slots of at least so many bytes. */
static unsigned int slot_index(size_t size)
{
	unsigned int i = 0;

	while (sizes[i] < size)
		i++;
	return i;
}

static u32 *end_of_guard(void *p, size_t slot)
{
	return (u32 *)((char *)p + slot - SIZE_BYTES);
}

static void guard_object(void *p, size_t size, size_t slot)
{
	memset((char *)p + size, GUARD_BYTE, slot - SIZE_BYTES - size);
	*end_of_guard(p, slot) = SIZE_TWICE(size);
}

static bool guard_is_whole(void *p, size_t slot)
{
	const u32 *end = end_of_guard(p, slot);
	size_t size = *end & 0xffff;
	const u8 *byte = (const u8 *)p + size;

	if (size > slot - SIZE_BYTES || *end != SIZE_TWICE(size))
		return false;
	while (byte < (const u8 *)end && *byte == GUARD_BYTE)
		byte++;
	return byte == (const u8 *)end;
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
	list_add_before(&slabs, &s->all);
	return s;
}

static bool object_taken(const struct slab *s, unsigned int i)
{
	return s->taken[i / 32] & (1u << i % 32);
}

static void *object_at(struct slab *s, unsigned int i)
{
	return (char *)s + SLAB_HEADER + i * s->size;
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
	return object_at(s, w * 32 + bit);
}

static void slab_give(struct slab *s, void *p)
{
	size_t offset = (char *)p - (char *)s - SLAB_HEADER;
	unsigned int i = offset / s->size;

	if (offset % s->size || !object_taken(s, i))
		panic("kfree: %p is not allocated", p);
	if (!guard_is_whole(p, s->size))
		panic("kfree: bytes behind the object at %p were written", p);
	s->taken[i / 32] &= ~(1u << i % 32);
	if (s->used-- == SLAB_OBJECTS(s->size))
		list_add_before(&with_room[slot_index(s->size)], &s->link);
	if (!s->used) {
		list_del(&s->link);
		list_del(&s->all);
		s->magic = 0;
		slab_pages--;
		page_free(s, 0);
	}
}

static void *alloc_small(size_t size, size_t *got)
{
	unsigned int i = slot_index(size + SIZE_BYTES);
	struct list *l = &with_room[i];
	struct slab *s = list_empty(l) ? slab_new(i) :
					 list_entry(l->next, struct slab, link);
	void *p = s ? slab_take(s) : NULL;

	*got = sizes[i];
	if (p)
		guard_object(p, size, *got);
	return p;
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
	if (fault_happens(&fault_memory_fails))
		p = NULL;
	else if (size <= SLAB_LARGEST)
		p = alloc_small(size, &got);
	else
		p = alloc_large(size, &got);
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

unsigned int kmalloc_damaged(const void **first)
{
	irq_state_t state = spin_lock(&lock);
	unsigned int n = 0;

	for (struct list *l = slabs.next; l != &slabs; l = l->next) {
		struct slab *s = list_entry(l, struct slab, all);

		for (unsigned int i = 0; i < SLAB_OBJECTS(s->size); i++)
			if (object_taken(s, i) &&
			    !guard_is_whole(object_at(s, i), s->size) && !n++)
				*first = object_at(s, i);
	}
	spin_unlock(&lock, state);
	return n;
}
