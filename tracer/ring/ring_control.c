/* SPDX-License-Identifier: MIT */
/* Making, sizing, clearing and switching the trace buffer. All code that touches a ring's writing
 * side runs on its CPU with interrupts off, so it is never in the middle of an event (the
 * trampoline keeps interrupts off as well). */
#include <tracer/ring/ring_internal.h>
#include <tracer/ring/ring_control.h>
#include <tracer/base/instance.h>

#include <kernel/cpu/hotplug.h>
#include <kernel/errno.h>
#include <kernel/lib/bits.h>
#include <kernel/printk.h>
#include <kernel/sched/task.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/page.h>
#include <kernel/mm/kmalloc.h>

struct mutex ring_readers = MUTEX_INIT(ring_readers);

struct call {
	void (*fn)(unsigned int cpu, void *arg);
	void *arg;
};

static void ring_call_here(void *arg)
{
	struct call *c = arg;

	c->fn(cpu_index(), c->arg);
}

void ring_call(cpumask_t mask, void (*fn)(unsigned int cpu, void *arg),
	       void *arg)
{
	struct call c = { fn, arg };
	unsigned int cpu;
	cpumask_t online;

	cpus_read_lock();
	online = cpus_online;
	if (mask & online)
		BUG_ON(cpu_call(mask & online, ring_call_here, &c));
	for (cpu = 0; cpu < nr_cpus; cpu++)
		if (mask & ~online & 1u << cpu)
			fn(cpu, arg);
	cpus_read_unlock();
}

/* ---- Pages ------------------------------------------------------------------ */

struct page_set {
	struct ring_page **pages;
	u32 nr;
};

static void free_set(struct page_set *set)
{
	while (set->pages && set->nr)
		page_free(set->pages[--set->nr], 0);
	kfree(set->pages);
	set->pages = NULL;
}

static int alloc_set(struct page_set *set, u32 nr)
{
	set->nr = 0;
	set->pages = kmalloc(nr * sizeof(*set->pages));
	if (!set->pages)
		return -ENOMEM;
	while (set->nr < nr) {
		struct ring_page *p = page_alloc(0);

		if (!p) {
			free_set(set);
			return -ENOMEM;
		}
		/* A spare ring shows its head page before anything was in it. */
		*p = (struct ring_page){
			.state = RING_STATE(RING_NOBODY, 0, 0),
		};
		set->pages[set->nr++] = p;
	}
	return 0;
}

static void free_sets(struct page_set *sets)
{
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		free_set(&sets[cpu]);
}

/* For the CPUs of mask. Does it fit at all? Taking the machine's last page is no way to find
 * out. */
static int alloc_sets(struct page_set *sets, cpumask_t mask, u32 nr)
{
	struct mm_stats mm;

	mm_stats(&mm);
	if (nr > mm.pages_free / bit_count(mask))
		return -ENOMEM;
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		if ((mask >> cpu & 1) && alloc_set(&sets[cpu], nr)) {
			free_sets(sets);
			return -ENOMEM;
		}
	return 0;
}

/*
 * Take other pages, with the newest events of the old ones. r gets the array `pages` of nr, in
 * which pages that stay are exchanged for new ones. The caller frees all pages that are in the old
 * array then. Events that do not fit count as overwritten.
 */
static void adopt_pages(struct ring *r, struct ring_page **pages, u32 nr)
{
	struct ring_page **old = r->pages, *p;
	u32 old_nr = r->nr, first, seq, i;

	r->pages = pages;
	r->nr = nr;
	if (!old) {
		ring_restart(r);
		return;
	}
	first = r->head - min(r->head - r->tail, nr - 1);
	for (seq = first; seq != r->head + 1; seq++) {
		p = pages[seq % nr];
		pages[seq % nr] = old[seq % old_nr];
		old[seq % old_nr] = p;
	}
	for (i = 0; i < old_nr; i++)
		ring_take_page_back(r, old[i]);
	WRITE_ONCE(r->tail, first);
}

struct swap {
	struct ring *buffer;
	struct page_set sets[MAX_CPUS];
};

static void swap_set(unsigned int cpu, void *arg)
{
	struct swap *swap = arg;
	struct ring *r = &swap->buffer[cpu];
	struct page_set *set = &swap->sets[cpu];
	struct page_set old = { r->pages, r->nr };

	adopt_pages(r, set->pages, set->nr);
	*set = old;
}

/* A ring that is made tells the trampolines where to write, or keeps that to itself. */
static void place_rings(struct ring *set)
{
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		set[cpu].at =
			set == rings ? &cpus[cpu].head.ring : &set[cpu].own;
}

int ring_resize(struct ring *set, cpumask_t mask, unsigned long kb)
{
	unsigned long nr = max((kb + 3) / 4, RING_MIN_PAGES + 0ul);
	struct swap new = { .buffer = set },
		    spare = { .buffer = set[0].in->spares };
	bool spares = spare.buffer[0].pages;

	if (nr > ~0u || alloc_sets(new.sets, mask, nr))
		return -ENOMEM;
	if (spares && alloc_sets(spare.sets, mask, nr)) {
		free_sets(new.sets);
		return -ENOMEM;
	}
	mutex_lock(&ring_readers);
	if (!set[0].pages)
		place_rings(set);
	ring_call(mask, swap_set, &new);
	if (spares)
		ring_call(mask, swap_set, &spare);
	free_sets(new.sets);
	free_sets(spare.sets);
	mutex_unlock(&ring_readers);
	return 0;
}

int ring_spares_make(struct trace_instance *in)
{
	struct page_set sets[MAX_CPUS] = { 0 };

	if (in->spares[0].pages)
		return 0;
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		if (alloc_sets(sets, 1u << cpu, in->buffer[cpu].nr)) {
			free_sets(sets);
			return -ENOMEM;
		}
	mutex_lock(&ring_readers);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		in->spares[cpu] = (struct ring){
			.in = in,
			.pages = sets[cpu].pages,
			.nr = sets[cpu].nr,
		};
	mutex_unlock(&ring_readers);
	return 0;
}

void ring_free(struct ring *set)
{
	mutex_lock(&ring_readers);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++) {
		struct page_set pages = { set[cpu].pages, set[cpu].nr };

		free_set(&pages);
		set[cpu] = (struct ring){ .in = set[cpu].in };
	}
	mutex_unlock(&ring_readers);
}

void ring_spares_clear(struct trace_instance *in, cpumask_t mask)
{
	mutex_lock(&ring_readers);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		if ((mask >> cpu & 1) && in->spares[cpu].pages)
			ring_forget(&in->spares[cpu]);
	mutex_unlock(&ring_readers);
}

unsigned long ring_kb(const struct ring *set, unsigned int cpu)
{
	return set[cpu].nr * (PAGE_SIZE / 1024);
}

static void clear_one(unsigned int cpu, void *arg)
{
	struct ring *set = arg;

	if (set[cpu].pages)
		ring_restart(&set[cpu]);
}

void ring_clear(struct ring *set, cpumask_t mask)
{
	ring_call(mask, clear_one, set);
}

static void reopen_one(unsigned int cpu, void *arg)
{
	(void)arg;
	if (rings[cpu].pages)
		ring_reopen(&rings[cpu]);
}

void ring_set_mode(u32 mode)
{
	/* Pairs with ring_event_slow()'s acquire. */
	__atomic_store_n(&ring_mode, mode, __ATOMIC_RELEASE);
}

void ring_let_graph(bool on)
{
	if (on == !!(ring_mode & RING_GRAPH))
		return;
	ring_set_mode(ring_mode ^ RING_GRAPH);
	ring_call(cpus_present(), reopen_one, NULL);
}

struct record {
	struct ring *set;
	cpumask_t mask;
	bool clear;
	bool (*takes)(s32 pid);
};

static void record_one(unsigned int cpu, void *arg)
{
	const struct record *how = arg;
	const struct task *current = cpus[cpu].head.current;
	s32 pid = current ? current->pid : 0;
	struct ring *r = &how->set[cpu];

	if (!r->pages)
		return;
	if (how->clear)
		ring_restart(r);
	ring_switch(r, pid, how->mask >> cpu & 1,
		    !how->takes || how->takes(pid));
}

void ring_record(struct ring *set, cpumask_t mask, bool clear,
		 bool (*takes)(s32 pid))
{
	struct record how = { set, mask, clear, takes };

	ring_call(cpus_present(), record_one, &how);
}
