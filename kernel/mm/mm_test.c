/* SPDX-License-Identifier: MIT */
/*
 * Proves that pages and objects are aligned, disjoint and all given back, on all CPUs
 * at once, and that running out of memory is reported and does no harm.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/test/ktest.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/mm/page.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/test/again.h>

static struct mm_stats stats_now(void)
{
	struct mm_stats s;

	mm_stats(&s);
	return s;
}

KTEST(mm_pages, "mm.pages")
{
	unsigned long before = stats_now().pages_free;
	char *block[8];

	for (unsigned int o = 0; o < 8; o++) {
		block[o] = page_alloc(o);
		KASSERT(t, block[o]);
		KEXPECT_EQ(t, (uintptr_t)block[o] % (PAGE_SIZE << o), 0);
		memset(block[o], o + 1, PAGE_SIZE << o);
	}
	KEXPECT_EQ(t, before - stats_now().pages_free, 255);
	for (unsigned int o = 0; o < 8; o++) {
		size_t size = PAGE_SIZE << o;

		KEXPECT(t, block[o][0] == (char)(o + 1));
		KEXPECT(t, block[o][size - 1] == (char)(o + 1));
		page_free(block[o], o);
	}
	KEXPECT_EQ(t, stats_now().pages_free, before);
	KEXPECT(t, !page_alloc(31));
}

/* Takes all memory there is, as a list through the pages. Then no task can be made. */
KTEST(mm_exhaust, "mm.exhaustion")
{
	unsigned long before = stats_now().pages_free, taken = 0;
	unsigned long failures = stats_now().failures;
	void **list = NULL, **page;
	struct task *none;
	unsigned int order = 7;

	for (;;) {
		page = page_alloc(order);
		if (!page && !order--)
			break;
		if (!page)
			continue;
		page[0] = list;
		page[1] = (void *)(uintptr_t)order;
		list = page;
		taken += 1ul << order;
	}
	KEXPECT_EQ(t, taken, before);
	none = task_create("no-memory", PRIO_LOW, ~0u, NULL, NULL);
	KEXPECT(t, !none);
	KEXPECT(t, !kmalloc(10000));
	KEXPECT(t, stats_now().failures > failures);
	while ((page = list)) {
		list = page[0];
		page_free(page, (uintptr_t)page[1]);
	}
	KEXPECT_EQ(t, stats_now().pages_free, before);
	page = page_alloc(7); /* joined again */
	KEXPECT(t, page);
	page_free(page, 7);
}

KTEST(mm_kmalloc, "mm.kmalloc")
{
	static u8 *object[200];
	unsigned long objects = stats_now().kmalloc_objects;
	unsigned long pages = stats_now().pages_free;
	size_t size;

	for (size_t i = 0; i < ARRAY_SIZE(object); i++) {
		size = 1 + i * i / 4;
		object[i] = kmalloc(size);
		KASSERT(t, object[i]);
		KEXPECT_EQ(t, (uintptr_t)object[i] % 16, 0);
		memset(object[i], i, size);
	}
	KEXPECT_EQ(t, stats_now().kmalloc_objects - objects,
		   ARRAY_SIZE(object));
	for (size_t i = 0; i < ARRAY_SIZE(object); i++) {
		size = 1 + i * i / 4;
		KEXPECT(t, object[i][0] == i && object[i][size - 1] == i);
		kfree(object[i]);
	}
	KEXPECT_EQ(t, stats_now().kmalloc_objects, objects);
	KEXPECT_EQ(t, stats_now().pages_free, pages);
	KEXPECT(t, !kmalloc(0));
	KEXPECT(t, !kmalloc(~(size_t)0));
	kfree(NULL);
}

KTEST(mm_kzalloc, "mm.kmalloc_zeroed")
{
	u8 *p = kmalloc(500), sum = 0;

	memset(p, 0xff, 500);
	kfree(p);
	p = kmalloc_zeroed(500);
	for (int i = 0; i < 500; i++)
		sum |= p[i];
	KEXPECT_EQ(t, sum, 0);
	kfree(p);
}

/* Each byte from an object's end to the end of its slot is written, one at a time. */
KTEST(mm_guard, "mm.guard")
{
	static const struct {
		u16 size, slot;
	} objects[] = { { 1, 16 },    { 12, 16 },    { 13, 32 },
			{ 16, 32 },   { 252, 256 },  { 253, 496 },
			{ 988, 992 }, { 989, 2000 }, { 1996, 2000 } };

	for (unsigned int i = 0; i < ARRAY_SIZE(objects); i++) {
		unsigned int size = objects[i].size;
		u8 *p = kmalloc(size);
		const void *first;

		KASSERT(t, p);
		memset(p, 1, size);
		KEXPECT_EQ(t, kmalloc_damaged(&first), 0);
		for (unsigned int at = size; at < objects[i].slot; at++) {
			first = NULL;
			p[at] ^= 1;
			KEXPECT_EQ(t, kmalloc_damaged(&first), 1);
			KEXPECT(t, first == p);
			p[at] ^= 1;
		}
		KEXPECT_EQ(t, kmalloc_damaged(&first), 0);
		kfree(p);
	}
}

/* ---- all CPUs at once ---- */

#define HELD 16

struct eater {
	u32 seed, errors;
};

static u32 next_random(u32 *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void replace_object(struct eater *e, u32 **slot)
{
	u32 size = 8 + next_random(&e->seed) % 3000, n = size / 4;

	if (*slot)
		e->errors += (*slot)[0] != (u32)(uintptr_t)*slot ||
			     (*slot)[(*slot)[1] - 1] != (u32)(uintptr_t)*slot;
	kfree(*slot);
	*slot = kmalloc(size);
	if (!*slot) {
		e->errors++;
		return;
	}
	(*slot)[1] = n;
	(*slot)[0] = (u32)(uintptr_t)*slot;
	if (n > 2)
		(*slot)[n - 1] = (u32)(uintptr_t)*slot;
	else
		(*slot)[1] = 1;
}

static void eat_memory(void *arg)
{
	struct eater *e = arg;
	u32 *held[HELD] = { NULL };

	for (int i = 0; i < 100; i++)
		replace_object(e, &held[next_random(&e->seed) % HELD]);
	for (int i = 0; i < HELD; i++)
		kfree(held[i]);
}

KTEST(mm_concurrent, "mm.concurrent")
{
	static struct eater eater[MAX_CPUS];
	struct task *task[MAX_CPUS];

	for (int i = 0; i < MAX_CPUS; i++) {
		eater[i] = (struct eater){ .seed = i + 1 };
		task[i] = task_create("eater", PRIO_LOW, ~0u, eat_memory,
				      &eater[i]);
	}
	for (int i = 0; i < MAX_CPUS; i++) {
		task_join(task[i]);
		KEXPECT_EQ(t, eater[i].errors, 0);
	}
}
