/* SPDX-License-Identifier: MIT */
/* The control files with binary pages: the entries that each has, and when a reader waits. */
#include <tracer/testing.h>

#include <kernel/lib/format.h>
#include <kernel/mm/page.h>
#include <kernel/time.h>
#include <tracer/show/raw_testing.h>
#include <tracer/show/snapshot.h>
#include <tracer/ring/ring_control.h>
#include <kernel/test/again.h>

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
		for (raw_walk_begin(t, page); raw_next_entry(t); entries++)
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
	raw_call_victim(1000);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	raw_call_victim(10);
	h = open_raw(t, "snapshot_raw");
	KASSERT(t, h);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), -EBUSY);
	KEXPECT_EQ(t, count_raw(t, h), 1000);
	KEXPECT_EQ(t, count_raw(t, h), 0);
	ctl_abandon(h);
	/* Its memory may go between two pages. */
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	raw_call_victim(1000);
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
	raw_call_victim(less);
	KEXPECT_EQ(t, read_if_ready(waiting), -EINTR);
	reader = task_create("reader", PRIO_NORMAL, ~0u, wait_for_page, NULL);
	KASSERT(t, reader);
	KEXPECT(t, KWAIT(READ_ONCE(reader->state) == TASK_BLOCKED));
	KEXPECT_EQ(t, READ_ONCE(woken_with), 0);
	raw_call_victim(enough - less);
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
	raw_call_victim(3);
	KEXPECT_EQ(t, count_raw(t, h), 0);
	h->wants = CTL_FIRST_ENTRY;
	KEXPECT_EQ(t, count_raw(t, h), 3);
	h->nonblock = false;
	h->wants = CTL_WAITS_AS_SHELL;
	raw_call_victim(4);
	trace_test_put("tracing_on", "0");
	KEXPECT_EQ(t, count_raw(t, h), 4);
	ctl_abandon(h);
	task_set_affinity(current_task(), ~0u);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
	KEXPECT(t, trace_test_says("buffer_percent", "50\n"));
}
