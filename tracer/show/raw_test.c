/* SPDX-License-Identifier: MIT */
/*
 * Pages of trace_pipe_raw, taken apart by the rules of header_page and header_event: every entry is
 * there once, in its order and at its time, of every kind and length.
 */
#include <tracer/testing.h>

#include <kernel/lib/format.h>
#include <kernel/time.h>
#include <tracer/base/event.h>
#include <tracer/show/files_marker.h>
#include <tracer/show/raw.h>
#include <tracer/show/raw_swap.h>
#include <tracer/show/raw_testing.h>
#include <tracer/show/snapshot.h>
#include <tracer/ring/ring_control.h>
#include <tracer/ring/ring_more.h>
#include <kernel/test/again.h>

#define FAR_NS (1ull << 27) /* more than an entry's own header can say */

/* What the tests fill. A test that fails amid its work loses no memory. */
static char pages[2][PAGE_SIZE] __attribute__((aligned(16)));
static char text[RING_MARK_MAX + 1];

/* Markers of every length up to the longest. The text says which one it is. */
KTEST(raw_markers, "raw.markers_of_any_length")
{
	struct ring_cursor c;
	unsigned int len = 1, n;
	u64 last = 0;

	trace_test_reset();
	trace_test_size(2048);
	preempt_disable();
	for (unsigned int i = 1; i <= RING_MARK_MAX; i++) {
		memset(text, 'a' + i % 26, i);
		KEXPECT_EQ(t, ring_mark(rings, text, i), 0);
	}
	preempt_enable();
	trace_test_put("tracing_on", "0");
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++) {
		KASSERT(t, !ring_cursor_open(&c, rings, cpu, false));
		while ((n = raw_page_fill(&c, pages[0]))) {
			KEXPECT_EQ(t, raw_walk_begin(t, pages[0]), 0);
			while (n-- && raw_next_entry(t)) {
				const char *said =
					raw_walk.payload + 8 + sizeof(long);

				unsigned long ip;

				memcpy(&ip, raw_walk.payload + 8, sizeof(ip));
				KEXPECT(t, ip == (unsigned long)
							   tracing_mark_write);
				KEXPECT_EQ(t, said[0], 'a' + len % 26);
				KEXPECT_EQ(t, strlen(said), len + 1);
				KEXPECT_EQ(t, said[len], '\n');
				KEXPECT(t, raw_walk.time >= last);
				last = raw_walk.time;
				len++;
			}
			KEXPECT(t, raw_walk.at == raw_walk.end);
		}
		ring_cursor_close(&c);
	}
	KEXPECT_EQ(t, len, RING_MARK_MAX + 1);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}

/* Of an entry on the one page and on the other: are its numbers the same, and its text? */
static bool is_same_entry(struct page_walk *walk, unsigned int offset,
			  unsigned int size, bool text)
{
	u64 number[2];

	for (unsigned int i = 0; i < 2; i++) {
		raw_walk = walk[i];
		number[i] = raw_number_at(raw_walk.payload + offset, size);
	}
	return text ? !memcmp(walk[0].payload + offset,
			      walk[1].payload + offset, size) :
		      number[0] == number[1];
}

/* Calls, markers and switches. Returns the entry's type. */
static u32 compare_entry(struct ktest_run *t, struct page_walk *walk)
{
	const unsigned int size = sizeof(long);
	u32 type;

	KEXPECT_EQ(t, walk[0].time, walk[1].time);
	KEXPECT_EQ(t, walk[0].len, walk[1].len);
	KEXPECT(t, is_same_entry(walk, 0, 2, false)); /* type */
	KEXPECT(t, is_same_entry(walk, 2, 2, true));  /* flags, depth */
	KEXPECT(t, is_same_entry(walk, 4, 4, false)); /* pid */
	raw_walk = walk[0];
	type = raw_number_at(raw_walk.payload, 2);
	if (type == 1 || type == 5)
		KEXPECT(t, is_same_entry(walk, 8, size, false)); /* ip */
	if (type == 1)
		KEXPECT(t, is_same_entry(walk, 8 + size, size, false));
	if (type == 5)
		KEXPECT(t, is_same_entry(walk, 8 + size, 7, true));
	if (type < EVENT_FIRST_ID)
		return type;
	/* prev_comm, prev_pid, prev_prio, prev_state */
	KEXPECT(t, is_same_entry(walk, 8, 16, true));
	KEXPECT(t, is_same_entry(walk, 24, 4, false));
	KEXPECT(t, is_same_entry(walk, 28, 4, false));
	KEXPECT(t, is_same_entry(walk, 32, size, false));
	return type;
}

/* What a program of the host's reads of a machine of the other byte order. */
KTEST(raw_swapped, "raw.other_byte_order")
{
	KNEED_CLIENT(t, "events");
	struct page_walk walk[2];
	unsigned int calls = 0, marks = 0, switches = 0, n;
	struct ring_cursor c;
	u32 type;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	task_set_affinity(current_task(), 1);
	trace_test_put("events/sched/sched_switch/enable", "1");
	victim_call(1);
	KEXPECT_EQ(t, ring_mark(rings, "a mark", 6), 0);
	task_sleep(2 * FAR_NS);
	victim_call(2);
	trace_test_put("tracing_on", "0");
	trace_test_put("events/sched/sched_switch/enable", "0");
	KASSERT(t, !ring_cursor_open(&c, rings, 0, false));
	n = raw_page_fill(&c, pages[0]);
	ring_cursor_close(&c);
	memcpy(pages[1], pages[0], PAGE_SIZE);
	raw_page_swap(pages[1]);
	for (unsigned int i = 0; i < 2; i++) {
		raw_walk.swapped = i;
		raw_walk_begin(t, pages[i]);
		walk[i] = raw_walk;
	}
	for (; n; n--) {
		for (unsigned int i = 0; i < 2; i++) {
			raw_walk = walk[i];
			KASSERT(t, raw_next_entry(t));
			walk[i] = raw_walk;
		}
		type = compare_entry(t, walk);
		calls += type == 1;
		marks += type == 5;
		switches += type >= EVENT_FIRST_ID;
	}
	KEXPECT(t, calls == 2 && marks == 1 && switches > 1);
	KEXPECT(t, walk[1].at == walk[1].end);
	raw_walk.swapped = false;
	task_set_affinity(current_task(), ~0u);
	trace_test_reset();
}

/* Bytes that a marker of so many takes in a page, where its time is near the last one's. */
static u32 marker_size(u32 len)
{
	u32 payload = ALIGN_UP(8 + sizeof(long) + len + 2, 4ul);

	return payload + (payload > 112 ? 8 : 4);
}

/* Markers that leave room in a page for one of a byte, and for 4 bytes. If the host has stopped the
 * machine, the times of two of them may be far apart: then begin anew. */
static void fill_but_one(struct ktest_run *t)
{
	const u32 most = marker_size(RING_MARK_MAX);
	u32 left, len;
	u64 began;

	do {
		trace_test_put("trace", "");
		began = arch_clock();
		left = RAW_DATA;
		for (; left > 2 * most; left -= most)
			KEXPECT_EQ(t, ring_mark(rings, text, RING_MARK_MAX), 0);
		left -= marker_size(1) + 4;
		KEXPECT_EQ(t, ring_mark(rings, text, RING_MARK_MAX), 0);
		left -= most;
		for (len = 1; marker_size(len) < left; len++)
			;
		KEXPECT_EQ(t, marker_size(len), left);
		KEXPECT_EQ(t, ring_mark(rings, text, len), 0);
	} while (clock_delta_to_ns(arch_clock() - began) >= FAR_NS);
}

/* An entry that fits into a page, but not together with a time that is far ahead. */
KTEST(raw_far, "raw.far_time_needs_room")
{
	struct ring_cursor c;

	memset(text, 'x', RING_MARK_MAX);
	memset(pages[1], 0x5a, PAGE_SIZE);
	trace_test_reset();
	task_set_affinity(current_task(), 1);
	fill_but_one(t);
	task_sleep(FAR_NS);
	KEXPECT_EQ(t, ring_mark(rings, text, 1), 0);
	trace_test_put("tracing_on", "0");
	KASSERT(t, !ring_cursor_open(&c, rings, 0, false));
	KEXPECT(t, raw_page_fill(&c, pages[0]) > 3);
	raw_walk_begin(t, pages[0]);
	KEXPECT_EQ(t, raw_walk.end - pages[0], PAGE_SIZE - marker_size(1) - 4);
	KEXPECT_EQ(t, raw_page_fill(&c, pages[0]), 1);
	for (unsigned int i = 0; i < PAGE_SIZE; i++)
		KEXPECT_EQ(t, (u8)pages[1][i], 0x5a);
	ring_cursor_close(&c);
	task_set_affinity(current_task(), ~0u);
	trace_test_reset();
}

static u64 entries_and_lost(struct ktest_run *t, struct ring_cursor *c,
			    char *page, u64 *lost)
{
	unsigned int n;
	u64 read = 0;

	while ((n = raw_page_fill(c, page))) {
		*lost += raw_walk_begin(t, page);
		read += n;
	}
	return read + *lost;
}

/* A page says how many entries the ring has lost before it: also before the first page, and since
 * the ring was cleared. */
KTEST(raw_lost, "raw.lost_entries_are_counted")
{
	struct ring_cursor c;
	struct ring_stats sum;
	u64 lost = 0;
	unsigned int n;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	trace_test_size(8);
	task_set_affinity(current_task(), 1);
	/* The ring goes round several times before there is a reader, and before its first page. */
	raw_call_victim(2000);
	KASSERT(t, !ring_cursor_open(&c, rings, 0, false));
	raw_call_victim(3000);
	trace_test_put("tracing_on", "0");
	KEXPECT_EQ(t, entries_and_lost(t, &c, pages[0], &lost), 5000);
	KEXPECT(t, lost > 3000);
	trace_test_put("tracing_on", "1");
	raw_call_victim(100);
	n = raw_page_fill(&c, pages[0]);
	KEXPECT(t, n > 50 && !raw_walk_begin(t, pages[0]));
	/* Again, before the next one. */
	raw_call_victim(5000);
	trace_test_put("tracing_on", "0");
	lost = 0;
	KEXPECT_EQ(t, n + entries_and_lost(t, &c, pages[0], &lost), 5100);
	KEXPECT(t, lost > 3000);
	/* The cursor stands at 10,100 entries. Now they count from 0. */
	trace_test_put("trace", "");
	trace_test_put("tracing_on", "1");
	raw_call_victim(4000);
	trace_test_put("tracing_on", "0");
	lost = 0;
	KEXPECT_EQ(t, entries_and_lost(t, &c, pages[0], &lost), 4000);
	KEXPECT(t, lost > 2000);
	KEXPECT(t, trace_test_books(&sum));
	ring_cursor_close(&c);
	/* Losses that one reader was told of are not told to another one. */
	KASSERT(t, !ring_cursor_open(&c, rings, 0, false));
	trace_test_put("tracing_on", "1");
	raw_call_victim(10);
	trace_test_put("tracing_on", "0");
	KEXPECT_EQ(t, raw_page_fill(&c, pages[0]), 10);
	KEXPECT_EQ(t, raw_walk_begin(t, pages[0]), 0);
	ring_cursor_close(&c);
	task_set_affinity(current_task(), ~0u);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}
