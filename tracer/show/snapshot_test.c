/* SPDX-License-Identifier: MIT */
/* Snapshots: exactly the entries that were there are set aside, and none is lost on the way. */
#include <tracer/testing.h>

#include <kernel/cpu/hotplug.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/mm/page.h>
#include <tracer/show/output.h>
#include <tracer/ring/ring_control.h>
#include <tracer/show/snapshot.h>
#include <kernel/test/again.h>
#include <kernel/test/fault.h>

/* Entries in a set of rings, of the CPUs of mask. All ones if one is no call of victim_call(). */
static u64 count_victim_calls(const struct ring *set, cpumask_t mask)
{
	unsigned long ip = site_address(trace_test_site(victim_call));
	struct trace_iter *it = trace_iter_open(set, mask, true);
	const struct ring_entry *e;
	u64 n = 0;

	for (; it && (e = trace_iter_peek(it)); trace_iter_next(it), n++)
		if (e->ip != ip + trace_test_site_length)
			return ~0ull;
	trace_iter_close(it);
	return n;
}

static u64 calls_set_aside(void)
{
	u64 n;

	snapshot_hold(&trace_top);
	n = count_victim_calls(ring_spares, snapshot_cpus(&trace_top));
	snapshot_release(&trace_top);
	return n;
}

static bool status_is(const char *status)
{
	char text[400];

	return trace_test_read("snapshot", text, sizeof(text), 7) > 0 &&
	       strstr(text, status);
}

KTEST(snapshot_file, "snapshot.file")
{
	struct mm_stats before, after;
	char text[1200];

	trace_test_reset();
	mm_stats(&before);
	KEXPECT(t, status_is("* Snapshot is freed *"));
	KEXPECT_EQ(t, trace_test_put("snapshot", "2"), 0);
	KEXPECT(t, status_is("* Snapshot is freed *"));
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	KEXPECT(t, status_is("* Snapshot is allocated *"));
	KEXPECT_EQ(t, trace_test_victim(), 0);
	for (unsigned int i = 0; i < 5; i++)
		victim_call(i);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	KEXPECT_EQ(t, count_victim_calls(rings, cpus_present()), 0);
	KEXPECT_EQ(t, calls_set_aside(), 5);
	victim_call(1);
	KEXPECT_EQ(t, count_victim_calls(rings, cpus_present()), 1);
	KEXPECT_EQ(t, calls_set_aside(), 5);
	/* Its header and its lines are as those of `trace`. */
	KEXPECT(t, trace_test_read("snapshot", text, sizeof(text), 100) > 0);
	KEXPECT(t, strstr(text, "# tracer: function\n"));
	KEXPECT(t, strstr(text, "entries-in-buffer/entries-written: 5/5"));
	KEXPECT(t, strstr(text, ": victim_call <-"));
	/* It has other pages when the buffer's size changes, and the same entries. */
	trace_test_size(12);
	KEXPECT_EQ(t, calls_set_aside(), 5);
	trace_test_size(RING_DEFAULT_KB);
	KEXPECT_EQ(t, calls_set_aside(), 5);
	KEXPECT_EQ(t, trace_test_put("snapshot", "2"), 0);
	KEXPECT_EQ(t, calls_set_aside(), 0);
	KEXPECT(t, status_is("* Snapshot is allocated *"));
	KEXPECT_EQ(t, trace_test_put("snapshot", "0"), 0);
	KEXPECT(t, status_is("* Snapshot is freed *"));
	mm_stats(&after);
	KEXPECT_EQ(t, after.pages_free + after.slab_pages,
		   before.pages_free + before.slab_pages);
	trace_test_reset();
}

KTEST(snapshot_errors, "snapshot.bad_input")
{
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("snapshot", "x"), -EINVAL);
	KEXPECT(t, strstr(trace_test_error, "'x' is no number"));
	KEXPECT_EQ(t, trace_test_put("per_cpu/cpu0/snapshot", "0"), -EINVAL);
	KEXPECT(t, status_is("* Snapshot is freed *"));
	/* While it is read, it stays: no other one is taken. */
	KEXPECT_EQ(t, trace_test_victim(), 0);
	victim_call(1);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	snapshot_hold(&trace_top);
	victim_call(2);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), -EBUSY);
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter", "victim_call:snapshot"),
		   0);
	victim_call(3);
	snapshot_release(&trace_top);
	KEXPECT_EQ(t, calls_set_aside(), 1);
	KEXPECT_EQ(t, count_victim_calls(rings, cpus_present()), 2);
	trace_test_reset();
}

KTEST(snapshot_memory, "snapshot.out_of_memory")
{
	KNEED_CLIENT(t, "events");
	unsigned long kb = ring_kb(rings, 0);
	struct mm_stats mm;

	trace_test_reset();
	trace_test_memory_take(TRACE_TEST_FEW_PAGES);
	mm_stats(&mm);
	/* Two thirds of the free memory: no room for as much again. */
	trace_test_size(mm.pages_free / nr_cpus * 2 / 3 * (PAGE_SIZE / 1024));
	KEXPECT(t, ring_kb(rings, 0) > kb);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), -ENOMEM);
	KEXPECT(t, strstr(trace_test_error, "no memory for a snapshot"));
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter", "victim_call:snapshot"),
		   -ENOMEM);
	KEXPECT(t, trace_test_says("set_ftrace_filter",
				   "#### all functions enabled ####\n"));
	KEXPECT_EQ(t, trace_test_put("events/kmem/kfree/trigger", "snapshot"),
		   -ENOMEM);
	trace_test_size(kb);
	trace_test_memory_give();
	trace_test_reset();
}

KTEST(snapshot_trigger_function, "snapshot.of_functions")
{
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter",
				  "victim_other:snapshot:1"),
		   0);
	KEXPECT(t, status_is("* Snapshot is allocated *"));
	KEXPECT(t, trace_test_says(
			   "set_ftrace_filter",
			   "victim_call\nvictim_other:snapshot:count=1\n"));
	for (unsigned int i = 0; i < 7; i++)
		victim_call(i);
	victim_other(1);
	KEXPECT_EQ(t, calls_set_aside(), 7);
	victim_call(1);
	victim_other(2);
	KEXPECT_EQ(t, calls_set_aside(), 7);
	KEXPECT_EQ(t, count_victim_calls(rings, cpus_present()), 1);
	trace_test_reset();
}

/* Every CPU's part, though the trigger cannot wait for them: a reader does. */
KTEST(snapshot_trigger_all, "snapshot.of_all_cpus")
{
	struct trace_worker *w = trace_workers;
	unsigned long made;

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter", "victim_other:snapshot"),
		   0);
	KASSERT(t, trace_workers_start(w, 100));
	made = trace_workers_join(w);
	victim_other(1);
	KEXPECT_EQ(t, calls_set_aside(), made);
	KEXPECT_EQ(t, count_victim_calls(rings, cpus_present()), 0);
	/* And each of them does its part without a reader. */
	victim_other(1);
	for (unsigned int i = 0;
	     snapshot_cpus(&trace_top) != cpus_present() && i < 20000; i++)
		task_sleep(NSEC_PER_MSEC);
	KEXPECT_EQ(t, snapshot_cpus(&trace_top), cpus_present());
	trace_test_reset();
}

/* A CPU that is away has a part in a trigger's snapshot: its entries from before it left. */
KTEST(snapshot_away, "snapshot.without_a_cpu")
{
	unsigned int c = ktest_last_cpu();

	KNEED_TWO(t);
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter", "victim_other:snapshot"),
		   0);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	KEXPECT_EQ(t, snapshot_cpus(&trace_top), cpus_present());
	task_set_affinity(current_task(), 1u << c);
	victim_call(1);
	task_set_affinity(current_task(), ~0u);
	KEXPECT_EQ(t, cpu_down(c), 0);
	victim_call(1);
	victim_other(1);
	KEXPECT_EQ(t, calls_set_aside(), 2);
	KEXPECT_EQ(t, snapshot_cpus(&trace_top), cpus_present());
	victim_other(2);
	KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT_EQ(t, calls_set_aside(), 0);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	KEXPECT_EQ(t, snapshot_cpus(&trace_top), cpus_present());
	trace_test_reset();
}

/* The call or the event that has the trigger is the last in its snapshot. */
KTEST(snapshot_trigger_event, "snapshot.of_events")
{
	KNEED_CLIENT(t, "events");
	char text[1200];

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("set_event", "kmem:kmalloc"), 0);
	KEXPECT_EQ(t,
		   trace_test_put("events/kmem/kmalloc/trigger",
				  "snapshot:1 if bytes_req == 777"),
		   0);
	trace_test_put("trace", "");
	kfree(kmalloc(778));
	kfree(kmalloc(777));
	kfree(kmalloc(776));
	KEXPECT_EQ(t, trace_test_put("set_event", ""), 0);
	KEXPECT(t, trace_test_read("snapshot", text, sizeof(text), 1) > 0);
	KEXPECT(t, strstr(text, "bytes_req=778"));
	KEXPECT(t, strstr(text, "bytes_req=777"));
	KEXPECT(t, !strstr(text, "bytes_req=776"));
	KEXPECT_EQ(t,
		   trace_test_put("events/kmem/kmalloc/trigger", "!snapshot"),
		   0);
	trace_test_reset();
}

/* Tasks on all CPUs call, and nothing is lost between the snapshots and the buffer. */
KTEST(snapshot_counts, "snapshot.loses_nothing")
{
	struct trace_worker *w = trace_workers;
	struct ring_stats s;
	u64 found = 0;
	unsigned long made;

	trace_test_reset();
	trace_test_size(2048);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KASSERT(t, trace_workers_start(w, 20000));
	for (unsigned int i = 0; i < 30; i++) {
		KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
		found += calls_set_aside();
		KEXPECT(t, trace_test_books(&s));
		KEXPECT_EQ(t, s.overwritten + s.dropped, 0);
	}
	made = trace_workers_join(w);
	found += count_victim_calls(rings, cpus_present());
	KEXPECT_EQ(t, found, made);
	/* One CPU's part alone. */
	KEXPECT_EQ(t, trace_test_put("trace", ""), 0);
	KEXPECT_EQ(t, trace_test_put("snapshot", "2"), 0);
	KASSERT(t, trace_workers_start(w, 100));
	made = trace_workers_join(w);
	KEXPECT_EQ(t, trace_test_put("per_cpu/cpu0/snapshot", "1"), 0);
	found = count_victim_calls(rings, cpus_present());
	KEXPECT_EQ(t, count_victim_calls(rings, 1), 0);
	KEXPECT_EQ(t, calls_set_aside() + found, made);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}

/*
 * Each CPU wants a snapshot again and again, from a trigger. The books add up all the while.
 */
KTEST(snapshot_storm, "snapshot.triggers_on_all_cpus")
{
	struct trace_worker *w = trace_workers;
	struct ring_stats s;

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter", "victim_call:snapshot"),
		   0);
	KASSERT(t, trace_workers_start(w, 0));
	for (unsigned int i = 0; i < 1000 / max(nr_cpus, 2u); i++) {
		KEXPECT(t, calls_set_aside() != ~0ull);
		KEXPECT(t, trace_test_books(&s));
		trace_test_size(i % 2 ? 8 : 64);
	}
	trace_workers_join(w);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++) {
		ring_stats(ring_spares, cpu, &s);
		KEXPECT_EQ(t, s.written,
			   s.read + s.overwritten + s.dropped + s.held);
	}
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}

FAULT_DECLARE(snapshot_late);

static void begin_snapshot(void)
{
	snapshot_trigger(&trace_top, ~0u);
}

static void answer_late(void)
{
	fault_dawdle();
	fault_dawdle();
}

/* Call what arg says with interrupts off, again and again. They are on for a moment between two. */
static void repeat_irqs_off(void *arg)
{
	void (*act)(void) = arg;
	irq_state_t state;

	while (!task_should_stop()) {
		state = arch_irq_save();
		act();
		arch_irq_restore(state);
	}
}

static void end_task(struct task *task)
{
	if (!task)
		return;
	task_stop(task);
	task_join(task);
}

#define HOLDS 100u

/* A CPU has looked whether it may begin, and another has answered the first round: the snapshot
 * that is begun then is whole before snapshot_hold() returns. */
KTEST(snapshot_whole, "snapshot.hold_waits_for_a_late_one")
{
	struct task *begins, *answers;
	unsigned int parts = 0;

	if (nr_cpus < 3)
		KSKIP(t, "needs three CPUs");
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	task_set_affinity(current_task(), 1u << 0);
	fault_plant(&fault_snapshot_late, 1);
	begins = task_create("begins", PRIO_NORMAL, 1u << 1, repeat_irqs_off,
			     begin_snapshot);
	answers = task_create("answers", PRIO_NORMAL, 1u << 2, repeat_irqs_off,
			      answer_late);
	for (unsigned int i = 0; begins && answers && i < HOLDS; i++) {
		snapshot_hold(&trace_top);
		parts += snapshot_cpus(&trace_top) != cpus_present();
		snapshot_release(&trace_top);
		task_sleep(2 * NSEC_PER_MSEC);
	}
	KEXPECT(t, begins && answers);
	end_task(begins);
	end_task(answers);
	fault_plant(&fault_snapshot_late, 0);
	task_set_affinity(current_task(), ~0u);
	KEXPECT_EQ(t, parts, 0);
	trace_test_reset();
}

static void read_snapshot_on(void *arg)
{
	char text[400];

	(void)arg;
	while (!task_should_stop())
		trace_test_read("snapshot", text, sizeof(text), 100);
}

static void trigger_on(void *arg)
{
	(void)arg;
	while (!task_should_stop())
		victim_other(1);
}

/* Give the memory of the snapshot back and take it again, while another task uses it. */
static void free_beside(struct ktest_run *t, void (*user)(void *arg))
{
	struct task *task = task_create("user", PRIO_NORMAL,
					1u << ktest_last_cpu(), user, NULL);

	KASSERT(t, task);
	for (unsigned int i = 0; i < 200; i++) {
		trace_test_put("snapshot", "0");
		victim_call(i);
		trace_test_put("snapshot", "1");
	}
	task_stop(task);
	task_join(task);
}

KTEST(snapshot_freed, "snapshot.freed_under_its_users")
{
	trace_test_reset();
	trace_test_size(8);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter", "victim_other:snapshot"),
		   0);
	free_beside(t, read_snapshot_on);
	free_beside(t, trigger_on);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}
