/* SPDX-License-Identifier: MIT */
/*
 * Pages of trace_pipe_raw, taken apart by the rules of header_page and header_event: every entry is
 * there once, in its order and at its time, of every kind and length.
 */
#include <tracer/testing.h>

#include <kernel/lib/format.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/mm/page.h>
#include <kernel/time.h>
#include <tracer/base/event.h>
#include <tracer/show/files_marker.h>
#include <tracer/show/raw.h>
#include <tracer/show/raw_swap.h>
#include <tracer/show/snapshot.h>
#include <tracer/ring/ring_control.h>
#include <tracer/ring/ring_more.h>

#define FAR_NS (1ull << 27) /* more than an entry's own header can say */

static struct page_walk {
	const char *at, *end;
	u64 time;
	u32 len;
	const char *payload;
	bool swapped; /* the page is in the other byte order */
} next;

static u64 number_at(const char *p, unsigned int size)
{
	bool little =
		(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != next.swapped;
	u64 v = 0;

	for (unsigned int i = 0; i < size; i++)
		v |= (u64)(u8)p[little ? i : size - 1 - i] << 8 * i;
	return v;
}

static u32 word_at(const char *p)
{
	return number_at(p, sizeof(u32));
}

/* Go to the next entry of the page. False: there is no more. */
static bool next_on_page(struct ktest_run *t)
{
	const bool little =
		(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != next.swapped;
	u32 word, type, delta;

	if (next.at == next.end)
		return false;
	word = word_at(next.at);
	type = little ? word & 31 : word >> 27;
	delta = little ? word >> 5 : word & ((1u << 27) - 1);
	next.at += 4;
	if (type == 30) {
		next.time += delta + ((u64)word_at(next.at) << 27);
		next.at += 4;
		return next_on_page(t);
	}
	next.time += delta;
	KEXPECT(t, type <= 28);
	next.len = type ? 4 * type : word_at(next.at) - 4;
	next.payload = next.at + (type ? 0 : 4);
	next.at = next.payload + next.len;
	KEXPECT(t, next.at <= next.end);
	return next.at <= next.end;
}

static u64 begin_raw_page(struct ktest_run *t, const char *page)
{
	unsigned long commit;

	next.time = number_at(page, 8);
	commit = number_at(page + 8, sizeof(commit));
	next.at = page + RAW_HEAD;
	next.end = next.at + (commit & 0xfff);
	KEXPECT(t, next.end <= page + PAGE_SIZE);
	if (!(commit & RAW_LOST))
		return 0;
	KEXPECT(t, commit & RAW_LOST_COUNT);
	return number_at(next.end, sizeof(commit));
}

/* Markers of every length up to the longest. The text says which one it is. */
KTEST(raw_markers, "raw.markers_of_any_length")
{
	char *page = page_alloc(0), *text = kmalloc_zeroed(RING_MARK_MAX + 1);
	struct ring_cursor c;
	unsigned int len = 1, n;
	u64 last = 0;

	KASSERT(t, page && text);
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
		while ((n = raw_page_fill(&c, page))) {
			KEXPECT_EQ(t, begin_raw_page(t, page), 0);
			while (n-- && next_on_page(t)) {
				const char *said =
					next.payload + 8 + sizeof(long);

				unsigned long ip;

				memcpy(&ip, next.payload + 8, sizeof(ip));
				KEXPECT(t, ip == (unsigned long)
							   tracing_mark_write);
				KEXPECT_EQ(t, said[0], 'a' + len % 26);
				KEXPECT_EQ(t, strlen(said), len + 1);
				KEXPECT_EQ(t, said[len], '\n');
				KEXPECT(t, next.time >= last);
				last = next.time;
				len++;
			}
			KEXPECT(t, next.at == next.end);
		}
		ring_cursor_close(&c);
	}
	KEXPECT_EQ(t, len, RING_MARK_MAX + 1);
	kfree(text);
	page_free(page, 0);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}

/* Of an entry on the one page and on the other: are its numbers the same, and its text? */
static bool is_same_entry(struct page_walk *walk, unsigned int offset,
			  unsigned int size, bool text)
{
	u64 number[2];

	for (unsigned int i = 0; i < 2; i++) {
		next = walk[i];
		number[i] = number_at(next.payload + offset, size);
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
	next = walk[0];
	type = number_at(next.payload, 2);
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
	char *page[] = { page_alloc(0), page_alloc(0) };
	struct page_walk walk[2];
	unsigned int calls = 0, marks = 0, switches = 0, n;
	struct ring_cursor c;
	u32 type;

	KASSERT(t, page[0] && page[1]);
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
	n = raw_page_fill(&c, page[0]);
	ring_cursor_close(&c);
	memcpy(page[1], page[0], PAGE_SIZE);
	raw_page_swap(page[1]);
	for (unsigned int i = 0; i < 2; i++) {
		next.swapped = i;
		begin_raw_page(t, page[i]);
		walk[i] = next;
	}
	for (; n; n--) {
		for (unsigned int i = 0; i < 2; i++) {
			next = walk[i];
			KASSERT(t, next_on_page(t));
			walk[i] = next;
		}
		type = compare_entry(t, walk);
		calls += type == 1;
		marks += type == 5;
		switches += type >= EVENT_FIRST_ID;
	}
	KEXPECT(t, calls == 2 && marks == 1 && switches > 1);
	KEXPECT(t, walk[1].at == walk[1].end);
	next.swapped = false;
	task_set_affinity(current_task(), ~0u);
	page_free(page[0], 0);
	page_free(page[1], 0);
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
static void fill_but_one(struct ktest_run *t, const char *text)
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
	char *page = page_alloc(1), *text = kmalloc_zeroed(RING_MARK_MAX + 1);
	struct ring_cursor c;

	KASSERT(t, page && text);
	memset(text, 'x', RING_MARK_MAX);
	memset(page + PAGE_SIZE, 0x5a, PAGE_SIZE);
	trace_test_reset();
	task_set_affinity(current_task(), 1);
	fill_but_one(t, text);
	task_sleep(FAR_NS);
	KEXPECT_EQ(t, ring_mark(rings, text, 1), 0);
	trace_test_put("tracing_on", "0");
	KASSERT(t, !ring_cursor_open(&c, rings, 0, false));
	KEXPECT(t, raw_page_fill(&c, page) > 3);
	begin_raw_page(t, page);
	KEXPECT_EQ(t, next.end - page, PAGE_SIZE - marker_size(1) - 4);
	KEXPECT_EQ(t, raw_page_fill(&c, page), 1);
	for (unsigned int i = 0; i < PAGE_SIZE; i++)
		KEXPECT_EQ(t, (u8)page[PAGE_SIZE + i], 0x5a);
	ring_cursor_close(&c);
	task_set_affinity(current_task(), ~0u);
	kfree(text);
	page_free(page, 1);
	trace_test_reset();
}

static u64 entries_and_lost(struct ktest_run *t, struct ring_cursor *c,
			    char *page, u64 *lost)
{
	unsigned int n;
	u64 read = 0;

	while ((n = raw_page_fill(c, page))) {
		*lost += begin_raw_page(t, page);
		read += n;
	}
	return read + *lost;
}

static void call_victim_times(unsigned int times)
{
	for (unsigned int i = 0; i < times; i++)
		victim_call(i);
}

/* A page says how many entries the ring has lost before it: also before the first page, and since
 * the ring was cleared. */
KTEST(raw_lost, "raw.lost_entries_are_counted")
{
	char *page = page_alloc(0);
	struct ring_cursor c;
	struct ring_stats sum;
	u64 lost = 0;
	unsigned int n;

	KASSERT(t, page);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	trace_test_size(8);
	task_set_affinity(current_task(), 1);
	/* The ring goes round several times before there is a reader, and before its first page. */
	call_victim_times(2000);
	KASSERT(t, !ring_cursor_open(&c, rings, 0, false));
	call_victim_times(3000);
	trace_test_put("tracing_on", "0");
	KEXPECT_EQ(t, entries_and_lost(t, &c, page, &lost), 5000);
	KEXPECT(t, lost > 3000);
	trace_test_put("tracing_on", "1");
	call_victim_times(100);
	n = raw_page_fill(&c, page);
	KEXPECT(t, n > 50 && !begin_raw_page(t, page));
	/* Again, before the next one. */
	call_victim_times(5000);
	trace_test_put("tracing_on", "0");
	lost = 0;
	KEXPECT_EQ(t, n + entries_and_lost(t, &c, page, &lost), 5100);
	KEXPECT(t, lost > 3000);
	/* The cursor stands at 10,100 entries. Now they count from 0. */
	trace_test_put("trace", "");
	trace_test_put("tracing_on", "1");
	call_victim_times(4000);
	trace_test_put("tracing_on", "0");
	lost = 0;
	KEXPECT_EQ(t, entries_and_lost(t, &c, page, &lost), 4000);
	KEXPECT(t, lost > 2000);
	KEXPECT(t, trace_test_books(&sum));
	ring_cursor_close(&c);
	/* Losses that one reader was told of are not told to another one. */
	KASSERT(t, !ring_cursor_open(&c, rings, 0, false));
	trace_test_put("tracing_on", "1");
	call_victim_times(10);
	trace_test_put("tracing_on", "0");
	KEXPECT_EQ(t, raw_page_fill(&c, page), 10);
	KEXPECT_EQ(t, begin_raw_page(t, page), 0);
	ring_cursor_close(&c);
	task_set_affinity(current_task(), ~0u);
	page_free(page, 0);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}

/* Entries in the next pages of a binary file, up to its end or to where a reader must wait. */
static unsigned int count_raw(struct ktest_run *t, struct ctl_handle *h)
{
	static char page[PAGE_SIZE];
	unsigned int entries = 0;
	size_t len = 0;
	ssize_t n;

	while ((n = ctl_read(h, page + len, PAGE_SIZE - len)) > 0) {
		len += n;
		if (len < PAGE_SIZE)
			continue;
		for (begin_raw_page(t, page); next_on_page(t); entries++)
			;
		len = 0;
	}
	KEXPECT_EQ(t, len, 0);
	return entries;
}

static struct ctl_handle *open_raw(struct ktest_run *t, const char *file)
{
	struct ctl_handle *h = NULL;
	char path[64];

	snprintf(path, sizeof(path), TRACING "per_cpu/cpu0/%s", file);
	KEXPECT_EQ(t, ctl_open(path, false, false, &h), 0);
	return h;
}

/*
 * snapshot_raw has the entries of the snapshot, not those behind it. A reader that has read an
 * entry has consumed it. While the file is open, nothing takes another snapshot, because that
 * would exchange the pages under the reader. Giving its memory back ends the reader instead. A
 * latency tracer keeps its record there, and the file is refused.
 */
KTEST(raw_snapshot, "raw.snapshot")
{
	KNEED_CLIENT(t, "latency");
	struct ctl_handle *h;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	task_set_affinity(current_task(), 1);
	h = open_raw(t, "snapshot_raw");
	KASSERT(t, h);
	KEXPECT_EQ(t, count_raw(t, h), 0);
	ctl_abandon(h);
	call_victim_times(1000);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	call_victim_times(10);
	h = open_raw(t, "snapshot_raw");
	KASSERT(t, h);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), -EBUSY);
	KEXPECT_EQ(t, count_raw(t, h), 1000);
	KEXPECT_EQ(t, count_raw(t, h), 0);
	ctl_abandon(h);
	/* Its memory may go between two pages. */
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	call_victim_times(1000);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	h = open_raw(t, "snapshot_raw");
	KASSERT(t, h);
	for (unsigned int i = 0; i < PAGE_SIZE; i++)
		KEXPECT_EQ(t, ctl_read(h, &(char){ 0 }, 1), 1);
	KEXPECT_EQ(t, trace_test_put("snapshot", "0"), 0);
	count_raw(t, h);
	ctl_abandon(h);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "irqsoff"), 0);
	KEXPECT_EQ(t,
		   ctl_open(TRACING "per_cpu/cpu0/snapshot_raw", false, false,
			    &h),
		   -EBUSY);
	task_set_affinity(current_task(), ~0u);
	trace_test_reset();
}

static struct ctl_handle *waiting;
static ssize_t woken_with; /* the read's return value. 0: it waits */

static void wait_for_page(void *arg)
{
	char byte;

	(void)arg;
	WRITE_ONCE(woken_with, ctl_read(waiting, &byte, 1));
}

/* The value that a read returns to a task which is asked to stop: -EINTR if the read would wait. */
static ssize_t read_if_ready(struct ctl_handle *h)
{
	struct task *me = current_task();
	char byte;
	ssize_t n;

	WRITE_ONCE(me->should_stop, true);
	n = ctl_read(h, &byte, 1);
	WRITE_ONCE(me->should_stop, false);
	return n;
}

#define PAGES 16u

/* The reader waits in its task, too, before the ring is full enough. */
static void wait_at(struct ktest_run *t, const char *percent, unsigned int less,
		    unsigned int enough)
{
	struct task *reader;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, trace_test_put("buffer_percent", percent), 0);
	woken_with = 0;
	waiting = open_raw(t, "trace_pipe_raw");
	KASSERT(t, waiting);
	KEXPECT_EQ(t, read_if_ready(waiting), -EINTR);
	call_victim_times(less);
	KEXPECT_EQ(t, read_if_ready(waiting), -EINTR);
	reader = task_create("reader", PRIO_NORMAL, ~0u, wait_for_page, NULL);
	KASSERT(t, reader);
	KEXPECT(t, KWAIT(READ_ONCE(reader->state) == TASK_BLOCKED));
	KEXPECT_EQ(t, READ_ONCE(woken_with), 0);
	call_victim_times(enough - less);
	KEXPECT(t, KWAIT(READ_ONCE(woken_with)));
	trace_test_put("tracing_on", "0");
	task_join(reader);
	KEXPECT_EQ(t, woken_with, 1);
	ctl_abandon(waiting);
}

/* A reader that waits goes on when its ring is full to that part. One that wants the first entry
 * gets each at once, and so does each reader when tracing ends. */
KTEST(raw_percent, "raw.buffer_percent")
{
	struct ctl_handle *h;

	KEXPECT(t, trace_test_says("buffer_percent", "50\n"));
	KEXPECT_EQ(t, trace_test_put("buffer_percent", "101"), -EINVAL);
	KEXPECT(t, strstr(trace_test_error, "from 0 to 100"));
	KEXPECT(t, trace_test_says("buffer_percent", "50\n"));
	task_set_affinity(current_task(), 1);
	trace_test_size(4 * PAGES);
	wait_at(t, "0", 0, 1);
	/* Half a page too little, and half a page more than is enough. */
	wait_at(t, "50", 13 * RING_SLOTS / 2, 15 * RING_SLOTS / 2);
	wait_at(t, "100", 29 * RING_SLOTS / 2, 31 * RING_SLOTS / 2);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	h = open_raw(t, "trace_pipe_raw");
	KASSERT(t, h);
	h->nonblock = true;
	call_victim_times(3);
	KEXPECT_EQ(t, count_raw(t, h), 0);
	h->wants = CTL_FIRST_ENTRY;
	KEXPECT_EQ(t, count_raw(t, h), 3);
	h->nonblock = false;
	h->wants = CTL_WAITS_AS_SHELL;
	call_victim_times(4);
	trace_test_put("tracing_on", "0");
	KEXPECT_EQ(t, count_raw(t, h), 4);
	ctl_abandon(h);
	task_set_affinity(current_task(), ~0u);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
	KEXPECT(t, trace_test_says("buffer_percent", "50\n"));
}
