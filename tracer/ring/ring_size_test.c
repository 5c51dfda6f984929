/* SPDX-License-Identifier: MIT */
/*
 * Proves of the trace buffer's size: that a resize keeps the entries that fit, that resizing and
 * clearing lose nothing unsaid, and that page numbers may run over.
 */
#include <tracer/testing.h>
#include <tracer/ring/ring_control.h>
#include <kernel/lib/string.h>
#include <kernel/test/again.h>

#define TINY "8"

KTEST(ring_resize, "ring.resize")
{
	unsigned long kb = ring_kb(rings, 0);
	struct trace_worker *w = trace_workers;
	struct ring_stats s;
	unsigned int i;

	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", "500000000"), -ENOMEM);
	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", "0"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", "much"), -EINVAL);
	KEXPECT_EQ(t, ring_kb(rings, 0), kb);
	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", "1"), 0);
	KEXPECT_EQ(t, ring_kb(rings, 0), 8);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KASSERT(t, trace_workers_start(w, 0));
	for (i = 0; i < 12; i++) {
		KEXPECT_EQ(t,
			   trace_test_put("buffer_size_kb", i % 2 ? "9" : "40"),
			   0);
		KEXPECT_EQ(t, ring_kb(rings, 0), i % 2 ? 12 : 40);
		KEXPECT(t, trace_test_books(&s));
		trace_test_walk_eight(i, i % 3);
		if (i % 4 == 0)
			trace_test_put("trace", "");
	}
	trace_workers_join(w);
	trace_test_reset();
	trace_test_size(kb);
	KEXPECT_EQ(t, ring_kb(rings, 0), kb);
}

/* One CPU has another size, and its snapshot has that, too. */
KTEST(ring_resize_one, "ring.resize_one_cpu")
{
	unsigned long kb = ring_kb(rings, 0);
	unsigned int last = nr_cpus - 1;
	char file[40], text[20];
	u64 held;

	if (!last)
		KSKIP(t, "one CPU");
	trace_test_reset();
	trace_test_size(kb);
	snprintf(file, sizeof(file), "per_cpu/cpu%u/buffer_size_kb", last);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	KEXPECT_EQ(t, trace_test_put(file, "500000000"), -ENOMEM);
	KEXPECT_EQ(t, trace_test_put(file, "0"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put(file, "17"), 0);
	KEXPECT(t, trace_test_says(file, "20\n"));
	KEXPECT(t, trace_test_says("buffer_size_kb", "X\n"));
	KEXPECT_EQ(t, ring_kb(rings, 0), kb);
	KEXPECT_EQ(t, ring_kb(ring_spares, last), 20);
	KEXPECT_EQ(t, ring_kb(ring_spares, 0), kb);
	snprintf(text, sizeof(text), "%lu\n", kb * last + 20);
	KEXPECT(t, trace_test_says("buffer_total_size_kb", text));
	/* Its ring is as large as it says, and so is a snapshot that is made now. */
	KEXPECT_EQ(t, trace_test_put("snapshot", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	KEXPECT_EQ(t, ring_kb(ring_spares, last), 20);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	task_set_affinity(current_task(), 1u << last);
	for (unsigned int i = 0; i < 5 * RING_SLOTS + 10; i++)
		victim_call(i);
	/* The page that is being written has had its first entries only. */
	held = trace_test_walk(false);
	KEXPECT(t, held > 4 * RING_SLOTS && held < 4 * RING_SLOTS + 20);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	KEXPECT_EQ(t, trace_test_walk(false), 0);
	task_set_affinity(current_task(), ~0u);
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("snapshot", "0"), 0);
	trace_test_size(kb);
	snprintf(text, sizeof(text), "%lu\n", kb);
	KEXPECT(t, trace_test_says("buffer_size_kb", text));
}

/* The number in the newest marker, and how many there are. */
static unsigned int count_marks(u32 *newest)
{
	struct trace_iter *it = trace_iter_open(rings, cpus_present(), true);
	const struct ring_entry *e;
	unsigned int n = 0;
	char text[8];
	u64 v;

	for (; it && (e = trace_iter_peek(it)); trace_iter_next(it), n++) {
		string_copy(text, e->text, min(e->len + 1ul, sizeof(text)));
		if (parse_u64(text, &v) || (n && v != *newest + 1))
			break; /* each is its predecessor's successor */
		*newest = v;
	}
	trace_iter_close(it);
	return n;
}

KTEST(ring_resize_keeps, "ring.resize_keeps_what_fits")
{
	static const char *const sizes[] = { "64", "20", "400", "8" };
	unsigned long kb = ring_kb(rings, 0);
	struct ring_stats s, before;
	u32 newest = 0;
	char text[8];

	task_set_affinity(current_task(), 1);
	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", "40"), 0);
	trace_test_reset();
	for (u32 i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "%u", i);
		KEXPECT_EQ(t, trace_test_put("trace_marker", text), 0);
	}
	ring_stats(rings, 0, &before);
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		KEXPECT_EQ(t, trace_test_put("buffer_size_kb", sizes[i]), 0);
		KEXPECT(t, trace_test_books(&s));
		KEXPECT_EQ(t, s.written, before.written);
		/* All of them, but where some pages had to go. */
		KEXPECT(t,
			i % 2 ? s.held <= before.held : s.held == before.held);
		KEXPECT(t, s.held > 0);
		KEXPECT_EQ(t, count_marks(&newest), s.held);
		KEXPECT_EQ(t, newest, 999);
		before = s;
	}
	KEXPECT(t, s.held <= 2 * RING_SLOTS / 2);
	task_set_affinity(current_task(), ~0u);
	trace_test_reset();
	trace_test_size(kb);
}

static void near_the_end(unsigned int cpu, void *arg)
{
	(void)arg;
	rings[cpu].head = ~0u - 4;
}

/* After 2^32 pages their numbers start again. The books go on. */
KTEST(ring_wrap, "ring.page_numbers_run_over")
{
	unsigned long kb = ring_kb(rings, 0);
	struct trace_worker *w = trace_workers;
	struct ring_stats s;
	unsigned long calls;

	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", "16"), 0);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	ring_call(cpus_present(), near_the_end, NULL);
	trace_test_put("trace", "");
	KASSERT(t, trace_workers_start(w, 10 * RING_SLOTS));
	calls = trace_workers_join(w);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		KEXPECT(t, !w[cpu].task || rings[cpu].head < 10);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, calls);
	KEXPECT_EQ(t, trace_test_walk(true), s.held);
	trace_test_reset();
	trace_test_size(kb);
}

/* The bytes of a long entry are counted until it has been read. */
KTEST(ring_bytes, "ring.bytes_held")
{
	const u64 one = (1 + RING_MORE_SLOTS(RING_MARK_MAX)) * RING_EVENT_SIZE;
	static char large[RING_MARK_MAX + 1];
	struct trace_iter *it;
	struct ring_stats s;

	trace_test_reset();
	task_set_affinity(current_task(), 1);
	memset(large, 'x', RING_MARK_MAX);
	trace_test_put("trace", "");
	for (unsigned int i = 0; i < 2; i++)
		KEXPECT_EQ(t, trace_test_put("trace_marker", large), 0);
	ring_stats(rings, 0, &s);
	/* And a slot that says which task it was. */
	KEXPECT(t, s.bytes >= 2 * one && s.bytes <= 2 * one + RING_EVENT_SIZE);
	it = trace_iter_open(rings, 1, true);
	KASSERT(t, it);
	KEXPECT(t, trace_iter_peek(it) && trace_iter_consume(it));
	trace_iter_close(it);
	ring_stats(rings, 0, &s);
	KEXPECT_EQ(t, s.bytes, one);
	task_set_affinity(current_task(), ~0u);
	trace_test_reset();
}

/* ---- Option overwrite ------------------------------------------------------------------ */

static int write_numbered_mark(unsigned int i)
{
	char text[12];

	snprintf(text, sizeof(text), "%u", i);
	return trace_test_put("trace_marker", text);
}

/* A full ring keeps the oldest entries, until they are read, and counts the entries that it has
 * dropped. */
KTEST(ring_keeps_oldest, "ring.overwrite_is_0")
{
	cpumask_t everywhere = current_task()->affinity;
	struct ring_stats s;
	unsigned int first, more = 0;
	u32 newest;

	trace_test_reset();
	task_set_affinity(current_task(), 1);
	trace_test_size(8);
	KEXPECT_EQ(t, trace_test_put("options/overwrite", "0"), 0);
	for (first = 0; first < 1000 && !write_numbered_mark(first); first++)
		;
	/* Two pages, and two or three slots a marker. */
	KEXPECT(t, first >= 2 * RING_SLOTS / 3 - 2 && first <= RING_SLOTS);
	KEXPECT_EQ(t, write_numbered_mark(first), -ENOSPC);
	KEXPECT(t, strstr(trace_test_error, "the buffer is full"));
	KEXPECT_EQ(t, count_marks(&newest), first);
	KEXPECT_EQ(t, newest, first - 1);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.overwritten, 0);
	KEXPECT_EQ(t, s.dropped, 2);
	/* Entries that were read make room. */
	KEXPECT_EQ(t, trace_test_walk(true), first);
	while (more < 1000 && !write_numbered_mark(more))
		more++;
	KEXPECT(t, more >= RING_SLOTS / 3 - 2);
	KEXPECT_EQ(t, count_marks(&newest), more);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.overwritten, 0);
	KEXPECT_EQ(t, s.dropped, 3);
	/* And with the option on again the newest entry is always there. */
	KEXPECT_EQ(t, trace_test_put("options/overwrite", "1"), 0);
	for (unsigned int i = 0; i < 1000; i++)
		KEXPECT_EQ(t, write_numbered_mark(more + i), 0);
	count_marks(&newest);
	KEXPECT_EQ(t, newest, more + 999);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT(t, s.overwritten > 0);
	KEXPECT_EQ(t, s.dropped, 3);
	task_set_affinity(current_task(), everywhere);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}

/* Once an entry has not found room, none does: not a smaller one either. */
KTEST(ring_keeps_order, "ring.overwrite_is_0_for_all_sizes")
{
	static char large[RING_MARK_MAX + 1];
	unsigned int n = 0;

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("tracing_cpumask", "1"), 0);
	task_set_affinity(current_task(), 1);
	trace_test_size(8);
	KEXPECT_EQ(t, trace_test_put("options/overwrite", "0"), 0);
	memset(large, 'x', RING_MARK_MAX);
	while (n < 100 && !trace_test_put("trace_marker", large))
		n++;
	KEXPECT(t, n < 100);
	KEXPECT_EQ(t, write_numbered_mark(1), -ENOSPC);
	KEXPECT_EQ(t, trace_test_walk(false), n);
	task_set_affinity(current_task(), ~0u);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}

/* Two tasks that share a CPU: few calls of a function of its own, and then the other's turn. */
static unsigned long (*const own[2])(unsigned long x) = { victim_other,
							  victim_leaf };

static void call_own_and_yield(void *arg)
{
	unsigned long (*fn)(unsigned long x) = own[(uintptr_t)arg];

	while (!task_should_stop()) {
		for (unsigned int i = 0; i < 20; i++)
			fn(i);
		sched_yield();
	}
}

/* While a ring is full and is read, each entry is still of the task that made it. */
KTEST(ring_keeps_tasks, "ring.overwrite_is_0_under_load")
{
	unsigned int c = ktest_last_cpu();
	const struct ring_entry *e;
	struct task *task[2];
	struct trace_iter *it;
	struct ring_stats s;
	u64 n = 0;

	KNEED_TWO(t);
	trace_test_reset();
	task_set_affinity(current_task(), 1);
	trace_test_size(8);
	KEXPECT_EQ(t, trace_test_put("options/overwrite", "0"), 0);
	KEXPECT_EQ(t,
		   trace_test_put("set_ftrace_filter",
				  "victim_other victim_leaf"),
		   0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	for (uintptr_t i = 0; i < 2; i++)
		task[i] = task_create("yield", PRIO_NORMAL, 1u << c,
				      call_own_and_yield, (void *)i);
	KASSERT(t, task[0] && task[1]);
	it = trace_iter_open(rings, 1u << c, false);
	for (unsigned int i = 0; it && i < 5000; i++) {
		e = trace_iter_peek(it);
		if (!e) {
			task_sleep(NSEC_PER_MSEC);
			continue;
		}
		KEXPECT_EQ(t, e->pid,
			   task[e->ip != site_address(trace_test_site(own[0])) +
						 trace_test_site_length]
				   ->pid);
		n += trace_iter_consume(it);
	}
	trace_iter_close(it);
	for (unsigned int i = 0; i < 2; i++) {
		task_stop(task[i]);
		task_join(task[i]);
	}
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.overwritten, 0);
	KEXPECT_EQ(t, s.read, n);
	KEXPECT(t, s.dropped > 0);
	task_set_affinity(current_task(), ~0u);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}
