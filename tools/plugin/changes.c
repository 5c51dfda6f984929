/* SPDX-License-Identifier: MIT */
/* A guest's code and its changes: changes.h. */
#include "changes.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_SHIFT 12
#define PAGE_BYTES (1u << PAGE_SHIFT)
#define CHANGES_MOST 4096 /* that are kept of a page */

/* A page that has been executed. */
struct page {
	uint32_t last[PAGE_BYTES]; /* time of each byte's last change */
	uint8_t bytes[PAGE_BYTES];
	uint8_t longest[PAGE_BYTES]; /* of all instructions seen to begin there */
	struct change *changes;	     /* in the order of time */
	size_t nr_changes, room;
};

uint32_t now, unseen, synced[MAX_CPUS];
static struct page **pages;
static unsigned int nr_cpus;

void *checked(void *p)
{
	if (!p)
		errx(1, "stale: out of memory");
	return p;
}

static struct page *page_at(uint64_t offset)
{
	return offset < ram_size ? pages[offset >> PAGE_SHIFT] : NULL;
}

static struct page *page_make(uint64_t offset)
{
	struct page **p = &pages[offset >> PAGE_SHIFT];

	if (!*p) {
		*p = checked(calloc(1, sizeof(**p)));
		memcpy((*p)->bytes, ram + (offset & ~(PAGE_BYTES - 1ull)),
		       PAGE_BYTES);
	}
	return *p;
}

/*
 * Forget the changes that every CPU has synchronised with. If there are very many, the
 * older half goes too: the younger ones show a CPU that never synchronises as well.
 */
static void prune(struct page *p)
{
	uint32_t least = now;
	size_t drop = p->nr_changes < CHANGES_MOST ? 0 : CHANGES_MOST / 2;

	for (unsigned int c = 0; c < nr_cpus; c++)
		least = synced[c] < least ? synced[c] : least;
	while (drop < p->nr_changes && p->changes[drop].time <= least)
		drop++;
	p->nr_changes -= drop;
	memmove(p->changes, p->changes + drop,
		p->nr_changes * sizeof(*p->changes));
}

static void add_change(struct page *p, const struct change *c)
{
	if (p->nr_changes == p->room) {
		prune(p);
		if (p->nr_changes >= p->room / 2) {
			p->room = p->room ? 2 * p->room : 16;
			p->changes = checked(realloc(
				p->changes, p->room * sizeof(*p->changes)));
		}
	}
	p->changes[p->nr_changes++] = *c;
	for (unsigned int i = 0; i < c->n; i++)
		p->last[(c->offset & (PAGE_BYTES - 1)) + i] = c->time;
}

static void stored_in_page(unsigned int cpu, uint64_t pc, uint64_t offset,
			   size_t n)
{
	struct page *p = page_at(offset);
	unsigned int at = offset & (PAGE_BYTES - 1);
	const uint8_t *new = ram + offset;
	struct change c = { .offset = offset, .n = n, .cpu = cpu, .pc = pc };

	if (!p || !memcmp(p->bytes + at, new, n))
		return;
	c.time = ++now;
	memcpy(c.before, p->bytes + at, n);
	memcpy(c.after, new, n);
	memcpy(p->bytes + at, new, n);
	add_change(p, &c);
}

void changes_stored(unsigned int cpu, uint64_t pc, uint64_t offset, size_t n)
{
	size_t first = PAGE_BYTES - (offset & (PAGE_BYTES - 1));

	first = first < n ? first : n;
	stored_in_page(cpu, pc, offset, first);
	if (first < n)
		stored_in_page(cpu, pc, offset + first, n - first);
}

void changes_code(uint64_t offset, size_t n)
{
	struct page *p = page_make(offset);
	unsigned int at = offset & (PAGE_BYTES - 1);

	if (n > p->longest[at])
		p->longest[at] = n;
	/* Bytes that no store was seen to change: a device did, or QEMU itself. */
	for (unsigned int i = 0; i < n && at + i < PAGE_BYTES; i++)
		if (p->bytes[at + i] != ram[offset + i]) {
			p->bytes[at + i] = ram[offset + i];
			unseen++;
		}
	if (at + n > PAGE_BYTES && offset + n <= ram_size)
		page_make(offset + n - 1);
}

uint32_t changes_last(uint64_t offset, size_t n)
{
	uint32_t last = 0;

	for (uint64_t o = offset; o < offset + n; o++) {
		struct page *p = page_at(o);
		uint32_t t = p ? p->last[o & (PAGE_BYTES - 1)] : 0;

		last = t > last ? t : last;
	}
	return last;
}

size_t changes_longest(uint64_t offset)
{
	struct page *p = page_at(offset);

	return p ? p->longest[offset & (PAGE_BYTES - 1)] : 0;
}

unsigned int changes_missed(unsigned int cpu, uint64_t offset, size_t n,
			    bool own, const struct change **found,
			    unsigned int room)
{
	unsigned int count = 0;

	for (uint64_t o = offset; o < offset + n;) {
		struct page *p = page_at(o);
		unsigned int at = o & (PAGE_BYTES - 1);
		size_t here = PAGE_BYTES - at;

		if (here > offset + n - o)
			here = offset + n - o;
		for (size_t i = p ? p->nr_changes : 0; i-- > 0;) {
			const struct change *c = &p->changes[i];

			if (c->time <= synced[cpu])
				break;
			if (c->offset >= o + here || c->offset + c->n <= o ||
			    (!own && c->cpu == cpu))
				continue;
			if (count < room)
				found[count] = c;
			count++;
		}
		o += here;
	}
	return count;
}

void changes_begin(const char *path, unsigned int cpus)
{
	nr_cpus = cpus;
	ram_find(path);
	pages = checked(calloc(ram_size >> PAGE_SHIFT, sizeof(*pages)));
}
