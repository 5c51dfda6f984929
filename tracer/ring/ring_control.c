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
#include <kernel/lib/string.h>
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
 * A ring's way into other pages, with the newest events of the old ones. Events that do not fit
 * count as overwritten. `to` begins as `fresh`, and gets the ring's pages some at a time while the
 * writer goes on in the old array. When it has caught up, it writes by the new array.
 */
struct page_move {
	struct page_set fresh, old;
	struct ring_page **to;
	u32 first, end; /* pages from first to before end are in `to` */
	bool begun, done;
};

struct page_moves {
	struct ring *buffer;
	struct page_move of[MAX_CPUS];
};

static void move_pages(unsigned int cpu, void *arg)
{
	struct page_moves *moves = arg;
	struct page_move *m = &moves->of[cpu];
	struct ring *r = &moves->buffer[cpu];
	u32 left = RING_PAGES_AT_ONCE, nr = m->fresh.nr, i;

	if (!r->pages) {
		r->pages = m->to;
		r->nr = nr;
		ring_restart(r);
		m->done = true;
		return;
	}
	if (!m->begun)
		m->first = m->end = r->tail;
	m->begun = true;
	for (; left && r->head - r->tail >= nr; left--) {
		ring_take_page_back(r, r->pages[r->tail % r->nr]);
		WRITE_ONCE(r->tail, r->tail + 1);
	}
	for (; left && m->first != r->tail; left--) {
		i = m->first % nr;
		m->to[i] = m->fresh.pages[i];
		m->first++;
		if ((s32)(m->end - m->first) < 0)
			m->end = m->first;
	}
	for (; left && m->end != r->head + 1; left--, m->end++)
		m->to[m->end % nr] = r->pages[m->end % r->nr];
	if (!left)
		return;
	m->old = (struct page_set){ r->pages, r->nr };
	r->pages = m->to;
	r->nr = nr;
	m->done = true;
}

static void free_move(struct page_move *m)
{
	u32 seq;

	if (!m->done)
		kfree(m->to);
	for (seq = m->first; m->old.pages && seq != m->end; seq++) {
		page_free(m->fresh.pages[seq % m->fresh.nr], 0);
		m->old.pages[seq % m->old.nr] = NULL;
	}
	while (m->old.pages && m->old.nr)
		if (m->old.pages[--m->old.nr])
			page_free(m->old.pages[m->old.nr], 0);
	kfree(m->old.pages);
	if (m->done)
		kfree(m->fresh.pages);
	else
		free_set(&m->fresh);
}

static void free_moves(struct page_moves *moves)
{
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		free_move(&moves->of[cpu]);
}

/* A ring that is made tells the trampolines where to write, or keeps that to itself. */
static void place_rings(struct ring *set)
{
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		set[cpu].at =
			set == rings ? &cpus[cpu].head.ring : &set[cpu].own;
}

static int alloc_moves(struct page_moves *moves, cpumask_t mask, u32 nr)
{
	struct page_set sets[MAX_CPUS] = { 0 };
	int err = alloc_sets(sets, mask, nr);

	for (unsigned int cpu = 0; !err && cpu < nr_cpus; cpu++)
		moves->of[cpu].fresh = sets[cpu];
	for (unsigned int cpu = 0; !err && cpu < nr_cpus; cpu++) {
		struct page_move *m = &moves->of[cpu];

		if (!m->fresh.pages)
			continue;
		m->to = kmalloc(nr * sizeof(*m->to));
		if (m->to)
			memcpy(m->to, m->fresh.pages, nr * sizeof(*m->to));
		else
			err = -ENOMEM;
	}
	return err;
}

static void carry_out_moves(struct page_moves *moves, cpumask_t mask)
{
	cpumask_t left = mask & cpus_present();

	while (left) {
		ring_call(left, move_pages, moves);
		for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
			if (moves->of[cpu].done)
				left &= ~(1u << cpu);
	}
}

int ring_resize(struct ring *set, cpumask_t mask, unsigned long kb)
{
	unsigned long nr = max((kb + 3) / 4, RING_MIN_PAGES + 0ul);
	struct page_moves new = { .buffer = set },
			  spare = { .buffer = set[0].in->spares };
	bool spares = spare.buffer[0].pages;
	int err = nr > ~0u ? -ENOMEM : alloc_moves(&new, mask, nr);

	if (!err && spares)
		err = alloc_moves(&spare, mask, nr);
	if (!err) {
		mutex_lock(&ring_readers);
		if (!set[0].pages)
			place_rings(set);
		carry_out_moves(&new, mask);
		if (spares)
			carry_out_moves(&spare, mask);
		mutex_unlock(&ring_readers);
	}
	free_moves(&new);
	free_moves(&spare);
	return err;
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
