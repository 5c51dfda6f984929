/* SPDX-License-Identifier: MIT */
/*
 * Events against the kernel's own counts: allocations that a test makes, interrupts, timers, and
 * the steps of a batch.
 */
#include <tracer/events/testing.h>
#include <tracer/testing.h>

#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/time.h>
#include <tracer/events/events.h>
#include <tracer/patch/keys.h>
#include <tracer/ring/ring_control.h>
#include <kernel/test/again.h>

/* ---- Labels ------------------------------------------------------------------------ */

/* Each event's place has a label, but for the two on the patching path. */
KTEST(events_labels, "events.have_labels")
{
	struct event *e;

	for_each_event (e) {
		bool found = false;

		for (unsigned int i = 0; i < jump_count; i++)
			found |= jump_key(i) == e->key;
		KEXPECT_EQ(t, found,
			   strcmp(e->name, "patch_sync") &&
				   strcmp(e->name, "patch_trap"));
		KEXPECT(t, !e->key->on);
		KEXPECT(t, event_by_id(event_id(e)) == e);
	}
	KEXPECT(t, !event_by_id(EVENT_FIRST_ID - 1));
	KEXPECT(t, !event_by_id(event_id(__stop_events)));
}

/* Each name in braces in an event's text is one of its fields. */
KTEST(events_texts, "events.texts_name_fields")
{
	struct event *e;

	for_each_event (e) {
		for (const char *p = e->text; (p = strchr(p, '{')); p++) {
			size_t n = 1;

			while (!strchr("}:-", p[n]))
				n++;
			KEXPECT(t, event_field_find(e->fields, p + 1, n - 1));
		}
	}
}

/* ---- kmem -------------------------------------------------------------------------- */

#define BLOCKS 100u
#define BLOCK_SIZE(i) (700 + (i))

static struct {
	void *block[BLOCKS];
	unsigned int made, freed, others;
} kmem;

static void look_kmem(struct ktest_run *t, const struct ring_entry *r)
{
	unsigned int i;

	if (event_test_is(r, "kmalloc")) {
		i = kmem.made++;
		KASSERT(t, i < BLOCKS);
		KEXPECT_EQ(t, (unsigned long)event_test_value(r, "ptr"),
			   (unsigned long)kmem.block[i]);
		KEXPECT_EQ(t, event_test_value(r, "bytes_req"), BLOCK_SIZE(i));
		KEXPECT(t, event_test_value(r, "bytes_alloc") >= BLOCK_SIZE(i));
		KEXPECT_EQ(t, r->pid, current_task()->pid);
	} else if (event_test_is(r, "kfree")) {
		kmem.freed++;
	} else {
		kmem.others++;
	}
}

/* A filter lets this task's allocations of these sizes pass, and nothing else. */
KTEST(events_kmem, "events.kmem")
{
	char filter[80];

	memset(&kmem, 0, sizeof(kmem));
	event_test_begin("");
	snprintf(filter, sizeof(filter),
		 "common_pid == %d && bytes_req >= 700 && bytes_req < 800",
		 current_task()->pid);
	KEXPECT_EQ(t, trace_test_put("events/kmem/kmalloc/filter", filter), 0);
	KEXPECT_EQ(t, trace_test_put("set_event", "kmem:kmalloc kmem:kfree"),
		   0);
	for (unsigned int i = 0; i < BLOCKS; i++)
		kmem.block[i] = kmalloc(BLOCK_SIZE(i));
	for (unsigned int i = 0; i < BLOCKS; i++)
		kfree(kmem.block[i]);
	trace_test_put("tracing_on", "0");
	event_test_each(t, look_kmem);
	KEXPECT_EQ(t, kmem.made, BLOCKS);
	KEXPECT(t, kmem.freed >= BLOCKS);
	KEXPECT_EQ(t, kmem.others, 0);
	KEXPECT_EQ(t, trace_test_put("events/kmem/kmalloc/filter", "0"), 0);
	event_test_end();
}

/* ---- irq and timer -------------------------------------------------------------------- */

static struct {
	unsigned int cpu;
	u64 from, to;
	u32 entries, exits, expired, over;
	const void *timer;
} irq;

static void look_irq(struct ktest_run *t, const struct ring_entry *r)
{
	if (r->cpu != irq.cpu || r->clock < irq.from || r->clock > irq.to)
		return;
	if (event_test_is(r, "irq_handler_entry") &&
	    event_test_value(r, "irq") == IRQ_TIMER) {
		KEXPECT_EQ(t, irq.entries++, irq.exits);
		KEXPECT(t, r->context & RING_CONTEXT_IRQS_OFF);
	}
	if (event_test_is(r, "irq_handler_exit") &&
	    event_test_value(r, "irq") == IRQ_TIMER)
		KEXPECT_EQ(t, ++irq.exits, irq.entries);
	if (event_test_is(r, "timer_expire_entry") &&
	    (unsigned long)event_test_value(r, "timer") ==
		    (unsigned long)irq.timer)
		irq.expired++;
	if (event_test_is(r, "timer_expire_exit") &&
	    (unsigned long)event_test_value(r, "timer") ==
		    (unsigned long)irq.timer)
		irq.over++;
}

static u32 fired;

static void fire_often(struct timer *timer)
{
	if (++fired < 20)
		timer_start(timer, NSEC_PER_MSEC / 2);
}

/* Timer interrupts as the CPU counts them, and each timer's expiry between two events. */
KTEST(events_irq, "events.irq_and_timer")
{
	struct timer timer;
	irq_state_t state;
	u64 count, end_ns;

	memset(&irq, 0, sizeof(irq));
	fired = 0;
	timer_setup(&timer, fire_often);
	event_test_begin("irq:* timer:*");
	preempt_disable();
	state = arch_irq_save();
	irq.cpu = cpu_index();
	irq.timer = &timer;
	count = cpus[irq.cpu].irq_counts[IRQ_TIMER];
	irq.from = arch_clock();
	arch_irq_restore(state);
	timer_start(&timer, NSEC_PER_MSEC / 2);
	end_ns = time_ns() + KWAIT_NS;
	while (READ_ONCE(fired) < 20 && time_ns() < end_ns)
		arch_cpu_relax();
	state = arch_irq_save();
	irq.to = arch_clock();
	count = cpus[irq.cpu].irq_counts[IRQ_TIMER] - count;
	arch_irq_restore(state);
	preempt_enable();
	timer_cancel(&timer);
	trace_test_put("tracing_on", "0");
	event_test_each(t, look_irq);
	KEXPECT_EQ(t, irq.entries, count);
	KEXPECT_EQ(t, irq.exits, count);
	KEXPECT_EQ(t, fired, 20);
	KEXPECT_EQ(t, irq.expired, 20);
	KEXPECT_EQ(t, irq.over, 20);
	event_test_end();
}

/* ---- nopl ------------------------------------------------------------------------------ */

static struct {
	unsigned int batches, steps, syncs[MAX_CPUS], on;
} patch;

static void look_patch(struct ktest_run *t, const struct ring_entry *r)
{
	if (event_test_is(r, "patch_batch") && event_test_value(r, "on")) {
		patch.batches++;
		patch.on = event_test_value(r, "on");
	}
	if (patch.batches != 1)
		return;
	patch.steps += event_test_is(r, "patch_step");
	if (event_test_is(r, "patch_sync")) {
		/* A CPU synchronises after the step that it is for. */
		KEXPECT_EQ(t, ++patch.syncs[r->cpu], patch.steps);
		KEXPECT(t, event_test_value(r, "sites") > 0);
	}
}

/* A batch by breakpoint: its steps, and after each of them every CPU once. */
KTEST(events_patch, "events.patching_is_visible")
{
	const char *before;
	unsigned int cpu;

	memset(&patch, 0, sizeof(patch));
	before = patch_strategy_name();
	if (trace_test_put("patch_strategy", "breakpoint"))
		KSKIP(t, "`breakpoint` is refused");
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_call"), 0);
	event_test_begin("nopl:*");
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_call"), 0);
	mutex_lock(&trace_mutex);
	trace_test_ops(&trace_ops_off);
	{
		struct patch_batch b;
		int site = trace_test_site(victim_call);

		KEXPECT_EQ(t, patch_site(&b, site, true), 0);
		KEXPECT_EQ(t, patch_site(&b, site, false), 0);
	}
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	trace_test_put("tracing_on", "0");
	event_test_each(t, look_patch);
	KEXPECT_EQ(t, patch.batches, 1);
	KEXPECT_EQ(t, patch.on, 1);
	for_each_online_cpu (cpu)
		KEXPECT_EQ(t, patch.syncs[cpu], patch.steps);
	event_test_end();
	KEXPECT_EQ(t, trace_test_put("patch_strategy", before), 0);
}

static void switch_kfree_label(void)
{
	struct patch_batch b;
	struct static_key *key = NULL;
	struct event *e;

	for_each_event (e)
		if (!strcmp(e->name, "kfree"))
			key = e->key;
	BUG_ON(!key);
	mutex_lock(&trace_mutex);
	BUG_ON(static_key_set(&b, key, true) || static_key_set(&b, key, false));
	mutex_unlock(&trace_mutex);
}

static void switch_kfree_event(void)
{
	trace_test_put("events/kmem/kfree/enable", "1");
	trace_test_put("events/kmem/kfree/enable", "0");
}

/* A borrower of trace_ops may have left the rings open to its calls: this is seen and ended. */
KTEST(events_mode, "events.mode_is_compared")
{
	event_test_begin("kmem:kmalloc");
	mutex_lock(&trace_mutex);
	ring_set_mode(ring_mode | RING_CALLS);
	mutex_unlock(&trace_mutex);
	switch_kfree_event();
	KEXPECT(t, !(ring_mode & RING_CALLS));
	event_test_end();
}

/* Beside another event, CPUs are interrupted for the jump label alone. */
KTEST(events_second, "events.second_event")
{
	if (nr_cpus < 2)
		KSKIP(t, "one CPU interrupts no other");
	event_test_begin("kmem:kmalloc");
	KEXPECT_EQ(t, trace_test_ipis(switch_kfree_event),
		   trace_test_ipis(switch_kfree_label));
	event_test_end();
}
