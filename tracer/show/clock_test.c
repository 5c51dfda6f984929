/* SPDX-License-Identifier: MIT */
/*
 * Clocks that are no nanoseconds: trace_clock counter gives each entry the next number, whichever
 * code writes it, and binary pages have each clock as the text shows it.
 */
#include <tracer/testing.h>

#include <kernel/lib/format.h>
#include <kernel/mm/page.h>
#include <kernel/time.h>
#include <tracer/base/instance.h>
#include <tracer/core/options.h>
#include <tracer/show/raw.h>
#include <tracer/ring/ring_control.h>
#include <tracer/ring/ring_more.h>
#include <kernel/test/again.h>

/* How many entries the buffer has. Each one's number must be that behind the last one's. */
static unsigned int walk(struct ktest_run *t)
{
	struct trace_iter *it = trace_iter_open(rings, cpus_present(), true);
	const struct ring_entry *e;
	unsigned int n = 0, wrong = 0;
	u64 last = 0;

	KEXPECT(t, it);
	while (it && (e = trace_iter_peek(it))) {
		wrong += !e->number || (last && e->number != last + 1);
		last = e->number;
		n++;
		trace_iter_next(it);
	}
	trace_iter_close(it);
	KEXPECT_EQ(t, wrong, 0);
	return n;
}

/* Calls on all CPUs, and markers and events between them. */
static void make_entries(struct ktest_run *t)
{
	struct trace_worker *workers = trace_workers;

	KASSERT(t, trace_workers_start(workers, 200));
	for (unsigned int i = 0; i < 20; i++) {
		trace_test_put("trace_marker", "numbered");
		task_sleep(NSEC_PER_MSEC);
	}
	trace_workers_join(workers);
	trace_test_put("tracing_on", "0");
}

KTEST(clock_numbers, "clock.counter_numbers_each_entry")
{
	KNEED_CLIENT(t, "graph");
	static const char *const tracers[] = { "function", "function_graph" };

	for (unsigned int i = 0; i < ARRAY_SIZE(tracers); i++) {
		KASSERT(t, !trace_test_victim());
		trace_test_size(4096);
		trace_test_put("trace_clock", "counter");
		trace_test_put("events/sched/sched_switch/enable", "1");
		/* A record that the filter refuses has no number. */
		trace_test_put("events/sched/sched_wakeup/filter",
			       "prio == 77");
		trace_test_put("events/sched/sched_wakeup/enable", "1");
		KEXPECT_EQ(t, trace_test_put("current_tracer", tracers[i]), 0);
		make_entries(t);
		KEXPECT(t, walk(t) >= 200 * nr_cpus);
		trace_test_put("trace_clock", "local");
		trace_test_reset();
	}
	/* Behind the counter, trampolines write again. */
	KASSERT(t, !trace_test_victim());
	victim_call(1);
	KEXPECT(t, !(ring_mode & RING_BY_C));
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}

/* The first and last of the pages' numbers, by the rules of header_event: no delta is long. */
static void read_page(const char *page, u64 *first, u64 *last)
{
	const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
	const char *at = page + RAW_HEAD;
	unsigned long commit;
	u32 word, len;
	u64 stamp;

	memcpy(&stamp, page, sizeof(stamp));
	memcpy(&commit, page + sizeof(stamp), sizeof(commit));
	*first = stamp;
	while (at < page + RAW_HEAD + (commit & 0xfff)) {
		memcpy(&word, at, sizeof(word));
		len = little ? word & 31 : word >> 27;
		stamp += little ? word >> 5 : word & ((1u << 27) - 1);
		if (!len) {
			memcpy(&len, at + 4, sizeof(len));
			at += len;
		} else {
			at += 4 * len;
		}
		at += 4;
	}
	*last = stamp;
}

/* The clock of three markers, from a page and from the text. */
static void compare_clock(struct ktest_run *t, const char *clock, char *page,
			  char *text)
{
	u64 first, last;
	struct ring_cursor c;
	const char *at;
	char number[24];

	trace_test_put("trace_clock", clock);
	preempt_disable();
	for (unsigned int i = 0; i < 3; i++)
		KEXPECT_EQ(t, ring_mark(rings, "mark", 4), 0);
	preempt_enable();
	trace_test_read("trace", text, PAGE_SIZE, 512);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++) {
		KASSERT(t, !ring_cursor_open(&c, rings, cpu, false));
		if (raw_page_fill(&c, page)) {
			read_page(page, &first, &last);
			at = strstr(text, "] ");
			KASSERT(t, at);
			at += 8; /* and the flags */
			snprintf(number, sizeof(number),
				 "%12llu:", (unsigned long long)first);
			KEXPECT(t, !strncmp(at, number, strlen(number)));
			KEXPECT(t,
				strcmp(clock, "counter") || last - first == 2);
		}
		ring_cursor_close(&c);
	}
}

KTEST(clock_pages, "clock.pages_have_what_text_shows")
{
	char *page = page_alloc(0), *text = page_alloc(0);

	KASSERT(t, page && text);
	trace_test_reset();
	compare_clock(t, "counter", page, text);
	compare_clock(t, "uptime", page, text);
	trace_test_put("trace_clock", "local");
	page_free(text, 0);
	page_free(page, 0);
	trace_test_reset();
}

/* A snapshot of another clock does not stay, since nothing says which one that was. */
KTEST(clock_clears, "clock.choice_clears_the_snapshot")
{
	char *text = page_alloc(0);

	KASSERT(t, text);
	trace_test_reset();
	trace_test_put("trace_marker", "of the old clock");
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	trace_test_read("snapshot", text, PAGE_SIZE, 512);
	KEXPECT(t, strstr(text, "of the old clock"));
	trace_test_put("trace_clock", "counter");
	trace_test_read("snapshot", text, PAGE_SIZE, 512);
	KEXPECT(t, !strstr(text, "of the old clock"));
	trace_test_put("snapshot", "0");
	trace_test_put("trace_clock", "local");
	page_free(text, 0);
	trace_test_reset();
}

/* per_cpu/cpuN/stats has the number of the oldest entry, and the last one's. */
KTEST(clock_stats, "clock.stats_have_numbers")
{
	char *text = page_alloc(0), line[40];
	u64 number;

	KASSERT(t, text);
	trace_test_reset();
	trace_test_put("trace_clock", "counter");
	preempt_disable();
	KEXPECT_EQ(t, ring_mark(rings, "one", 3), 0);
	number = ring_count(0);
	snprintf(text, PAGE_SIZE, "per_cpu/cpu%u/stats", cpu_index());
	KEXPECT_EQ(t, ring_mark(rings, "two", 3), 0);
	preempt_enable();
	trace_test_read(text, text, PAGE_SIZE, 512);
	snprintf(line, sizeof(line), "oldest event ts: %12llu\n",
		 (unsigned long long)number);
	KEXPECT(t, strstr(text, line));
	snprintf(line, sizeof(line), "now ts: %12llu\n",
		 (unsigned long long)number + 1);
	KEXPECT(t, strstr(text, line));
	trace_test_put("trace_clock", "local");
	page_free(text, 0);
	trace_test_reset();
}
