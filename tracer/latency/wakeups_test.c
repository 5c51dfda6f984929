/* SPDX-License-Identifier: MIT */
/*
 * Two CPUs wake a task each, at almost the same time. One CPU keeps its wakeup, and has all CPUs
 * exchange their buffers. The other CPU begins the next wakeup at that moment: its beginning must
 * be in the new buffer.
 */
#include <tracer/testing.h>

#include <boot/boot_info.h>
#include <kernel/lock/wait.h>
#include <kernel/time.h>
#include <tracer/latency/latency.h>
#include <tracer/show/snapshot.h>
#include <tracer/ring/ring.h>
#include <kernel/test/again.h>

struct wakeup {
	struct wait_queue queue;
	struct task *task;
	u32 wanted; /* `at` is set: wake it then */
	u64 at;
	u64 held_ns; /* behind that its CPU lets nothing else run for so long */
	u32 go;	     /* it is woken */
};

static struct wakeup wakeup_before = { .queue = WAIT_QUEUE_INIT(
					       wakeup_before.queue) };
static struct wakeup wakeup_behind = { .queue = WAIT_QUEUE_INIT(
					       wakeup_behind.queue) };
static u32 wakeups_end;

static void wait_often(void *arg)
{
	struct wakeup *w = arg;

	while (!READ_ONCE(wakeups_end)) {
		wait_event(&w->queue,
			   READ_ONCE(w->go) || READ_ONCE(wakeups_end));
		WRITE_ONCE(w->go, 0);
	}
}

static void spin_until(u64 clock)
{
	while (arch_clock() < clock)
		;
}

static void wake_at(struct wakeup *w, u64 at)
{
	preempt_disable();
	spin_until(at);
	WRITE_ONCE(w->go, 1);
	wake_all(&w->queue);
	spin_until(arch_clock() + ns_to_clock_delta(w->held_ns));
	preempt_enable();
}

static void wake_before_ours(void *arg)
{
	(void)arg;
	while (!READ_ONCE(wakeups_end)) {
		if (__atomic_exchange_n(&wakeup_before.wanted, 0,
					__ATOMIC_ACQUIRE))
			wake_at(&wakeup_before, wakeup_before.at);
		sched_yield();
	}
}

static bool is_asleep(const struct wakeup *w)
{
	return !READ_ONCE(w->wanted) && !READ_ONCE(w->go) &&
	       READ_ONCE(w->task->state) == TASK_BLOCKED &&
	       !READ_ONCE(w->task->on_cpu);
}

/* Is the longest wakeup the task's, and without its beginning? While the snapshot is held no other
 * wakeup, which a busy host makes long, can displace it. */
static bool lacks_beginning(u32 pid, unsigned int *kept)
{
	const struct ring_switch *sw;
	const struct ring_entry *e;
	struct trace_iter *it;
	bool found = false;

	snapshot_hold(&trace_top);
	if ((u32)latency_longest().pid != pid) {
		snapshot_release(&trace_top);
		return false;
	}
	++*kept;
	it = trace_iter_open(ring_spares, snapshot_cpus(&trace_top), true);
	trace_iter_window(it);
	for (; it && !found && (e = trace_iter_peek(it)); trace_iter_next(it)) {
		sw = e->record;
		found = e->event == RING_WAKEUP && sw->next_pid == pid;
	}
	trace_iter_close(it);
	snapshot_release(&trace_top);
	return !found;
}

KTEST(latency_two_wakeups, "latency.wakeup_behind_another")
{
	unsigned int here = cpu_index(), kept = 0,
		     rounds = boot_info.icount ? 100 : 1000;
	bool has_beginning = true;
	u32 others = READ_ONCE(cpus_online) & ~(1u << here);
	struct task *waker;

	if (!others)
		KSKIP(t, "one CPU");
	trace_test_reset();
	others &= -others;
	task_set_affinity(current_task(), 1u << here);
	wakeups_end = wakeup_before.go = wakeup_behind.go = 0;
	wakeup_behind.held_ns = 200 * NSEC_PER_USEC;
	wakeup_before.task = task_create("first", PRIO_HIGH - 1, others,
					 wait_often, &wakeup_before);
	wakeup_behind.task = task_create("second", PRIO_HIGH, 1u << here,
					 wait_often, &wakeup_behind);
	waker = task_create("waker", PRIO_NORMAL, others, wake_before_ours,
			    NULL);
	KASSERT(t, wakeup_before.task && wakeup_behind.task && waker);
	/* No calls, which would make every wakeup longer. */
	KEXPECT_EQ(t, trace_test_put("options/function-trace", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "wakeup"), 0);
	for (unsigned int i = 0; i < rounds && has_beginning; i++) {
		while (!is_asleep(&wakeup_before) || !is_asleep(&wakeup_behind))
			task_sleep(20 * NSEC_PER_USEC);
		trace_test_put("tracing_max_latency", "0");
		wakeup_before.at =
			arch_clock() + ns_to_clock_delta(30 * NSEC_PER_USEC);
		__atomic_store_n(&wakeup_before.wanted, 1, __ATOMIC_RELEASE);
		wake_at(&wakeup_behind,
			wakeup_before.at + ns_to_clock_delta(i % 100 * 300));
		has_beginning =
			!lacks_beginning(wakeup_behind.task->pid, &kept);
	}
	printk("# %u of %u wakeups were kept\n", kept, rounds);
	KEXPECT(t, kept);
	KEXPECT(t, has_beginning);
	WRITE_ONCE(wakeups_end, 1);
	wake_all(&wakeup_before.queue);
	wake_all(&wakeup_behind.queue);
	task_join(wakeup_before.task);
	task_join(wakeup_behind.task);
	task_join(waker);
	task_set_affinity(current_task(), ~0u);
	trace_test_reset();
}
