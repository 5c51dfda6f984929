/* SPDX-License-Identifier: MIT */
/*
 * The latency tracers against sections that the test makes and measures itself. On a busy host
 * some other section may take longer than the test's. Under -icount none does, and then all
 * expectations are exact.
 */
#include <tracer/testing.h>

#include <boot/boot_info.h>
#include <kernel/event/latency.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/string.h>
#include <kernel/lock/wait.h>
#include <kernel/mm/page.h>
#include <kernel/time.h>
#include <tracer/show/output.h>
#include <tracer/latency/latency.h>
#include <tracer/ring/ring_control.h>
#include <tracer/patch/keys.h>
#include <tracer/core/client.h>
#include <kernel/test/again.h>

FAULT_DECLARE(batch_refused);

#define LONG_NS (3 * NSEC_PER_MSEC)

static void spin_for(u64 ns)
{
	u64 end = arch_clock() + ns_to_clock_delta(ns);

	while (arch_clock() < end)
		;
}

/* Each returns how long it took by its own look at the clock, which begins first, or last. */
static noinline u64 hold_irqs(u64 ns)
{
	u64 start = arch_clock();
	irq_state_t state = irq_save(), inner;

	spin_for(ns / 2);
	inner = irq_save();
	irq_restore(inner);
	spin_for(ns / 2);
	irq_restore(state);
	return arch_clock() - start;
}

static noinline u64 hold_preemption(u64 ns)
{
	u64 start = arch_clock();

	preempt_disable();
	spin_for(ns / 2);
	preempt_disable();
	preempt_enable();
	spin_for(ns / 2);
	preempt_enable();
	return arch_clock() - start;
}

/* First with interrupts off, then with preemption off, and in the middle with both. */
static noinline u64 hold_both(u64 ns)
{
	u64 start = arch_clock();
	irq_state_t state = irq_save();

	spin_for(ns / 2);
	preempt_disable();
	irq_restore(state);
	spin_for(ns / 2);
	preempt_enable();
	return arch_clock() - start;
}

/* Interrupts are off all the time, and preemption comes back in the middle. */
static noinline u64 hold_irqs_longer(u64 ns)
{
	u64 start = arch_clock();
	irq_state_t state = irq_save();

	preempt_disable();
	spin_for(ns / 2);
	preempt_enable();
	spin_for(ns / 2);
	irq_restore(state);
	return arch_clock() - start;
}

static bool is_in(unsigned long pc, u64 (*fn)(u64 ns))
{
	struct symbol sym;

	return symbol_at(pc, &sym) && sym.start == (unsigned long)fn;
}

/* The longest one is ours, which took so many ticks by the test's clock and was of ns, or a
 * longer one that the host has made. */
static bool is_ours(const struct latency *l, bool ours, u64 ticks, u64 ns)
{
	printk("# %llu ns, of %llu that the test saw\n",
	       (unsigned long long)clock_delta_to_ns(l->ticks),
	       (unsigned long long)clock_delta_to_ns(ticks));
	if (!ours && !boot_info.icount)
		return l->ticks > ns_to_clock_delta(ns);
	return ours && l->ticks <= ticks && l->ticks >= ns_to_clock_delta(ns);
}

/* No calls, so that a section is as long as it is without a tracer. */
static void begin_latency_test(struct ktest_run *t, const char *tracer)
{
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("options/function-trace", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", tracer), 0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
}

static void expect_section(struct ktest_run *t, const char *tracer,
			   u64 (*hold)(u64 ns), u64 ns)
{
	struct latency l;
	u64 ticks;

	begin_latency_test(t, tracer);
	ticks = hold(LONG_NS);
	trace_test_put("tracing_on", "0");
	l = latency_longest();
	KEXPECT(t, is_ours(&l, is_in(l.began, hold) || is_in(l.ended, hold),
			   ticks, ns));
	/* The section's first call and its last, which `trace` shows, and no other. */
	if (boot_info.icount)
		KEXPECT_EQ(t, trace_test_kept_lines(), 2);
	trace_test_reset();
}

KTEST(latency_irqsoff, "latency.irqsoff")
{
	expect_section(t, "irqsoff", hold_irqs, LONG_NS);
	expect_section(t, "irqsoff", hold_both, LONG_NS / 2);
}

/*
 * preempt_disable() is a function of its own: it is the one that begins. So a section of this task
 * that is longer than the test's has to be another one, which the host has made.
 */
KTEST(latency_preemptoff, "latency.preemptoff")
{
	struct latency l;
	u64 ticks;

	begin_latency_test(t, "preemptoff");
	ticks = hold_preemption(LONG_NS);
	trace_test_put("tracing_on", "0");
	l = latency_longest();
	KEXPECT(t, is_ours(&l, l.pid == current_task()->pid && l.ticks <= ticks,
			   ticks, LONG_NS));
	trace_test_put("tracing_on", "1");
	trace_test_put("tracing_max_latency", "0");
	ticks = hold_irqs(LONG_NS);
	l = latency_longest();
	/* That interrupts are off is nothing to this tracer. */
	if (boot_info.icount)
		KEXPECT(t, l.ticks < ticks / 2);
	trace_test_reset();
}

KTEST(latency_both, "latency.preemptirqsoff")
{
	expect_section(t, "preemptirqsoff", hold_irqs, LONG_NS);
	expect_section(t, "preemptirqsoff", hold_both, LONG_NS);
	expect_section(t, "preemptirqsoff", hold_irqs_longer, LONG_NS);
}

/* ---- Wakeups ------------------------------------------------------------------------ */

static struct {
	struct task *task;
	s32 pid;
	u64 ran_at;
	bool go;
} sleeper;
static struct wait_queue sleepers = WAIT_QUEUE_INIT(sleepers);

static void sleep_once(void *arg)
{
	(void)arg;
	wait_event(&sleepers, READ_ONCE(sleeper.go));
	sleeper.ran_at = arch_clock();
}

/* Wake a task on this CPU, and let it wait for LONG_NS. Ticks, as the test sees them. */
static u64 wake_late(int prio)
{
	u64 woken_at;

	sleeper.go = false;
	preempt_disable();
	sleeper.task = task_create("sleeper", prio, 1u << cpu_index(),
				   sleep_once, NULL);
	sleeper.pid = sleeper.task->pid;
	preempt_enable();
	do
		task_sleep(NSEC_PER_MSEC);
	while (READ_ONCE(sleeper.task->state) != TASK_BLOCKED ||
	       READ_ONCE(sleeper.task->on_cpu));
	trace_test_put("tracing_max_latency", "0");
	task_set_affinity(current_task(), sleeper.task->affinity);
	preempt_disable();
	sleeper.go = true;
	woken_at = arch_clock();
	wake_all(&sleepers);
	spin_for(LONG_NS);
	preempt_enable();
	task_set_affinity(current_task(), ~0u);
	task_join(sleeper.task);
	return sleeper.ran_at - woken_at;
}

KTEST(latency_wakeup, "latency.wakeup")
{
	static const struct {
		const char *tracer;
		int prio;
		bool measured;
	} how[] = {
		{ "wakeup", PRIO_NORMAL + 1, true },
		{ "wakeup", PRIO_HIGH, true },
		/* It would not come before the task that runs. */
		{ "wakeup", PRIO_LOW, false },
		{ "wakeup_rt", PRIO_HIGH, true },
		{ "wakeup_rt", PRIO_HIGH - 1, false },
	};
	struct latency l;
	u64 ticks;

	for (unsigned int i = 0; i < ARRAY_SIZE(how); i++) {
		/* The tracer follows one task at a time. On a busy host another one may be on its
		 * way when ours is woken. */
		for (unsigned int n = boot_info.icount ? 1 : 20; n; n--) {
			begin_latency_test(t, how[i].tracer);
			ticks = wake_late(how[i].prio);
			trace_test_put("tracing_on", "0");
			l = latency_longest();
			if (!how[i].measured || l.pid == sleeper.pid)
				break;
		}
		if (how[i].measured)
			KEXPECT(t, is_ours(&l,
					   l.pid == sleeper.pid &&
						   l.prio == how[i].prio,
					   ticks, LONG_NS));
		else
			KEXPECT(t, !l.until || l.pid != sleeper.pid);
		KEXPECT_EQ(t, l.began, 0);
		/* The wake-up and the switch, and the call of each. */
		if (how[i].measured && boot_info.icount)
			KEXPECT_EQ(t, trace_test_kept_lines(), 4);
	}
	trace_test_reset();
}

/* ---- Kept latencies ---------------------------------------------------------------------- */

KTEST(latency_limits, "latency.limits")
{
	struct latency l;
	char text[24];
	u64 us;

	begin_latency_test(t, "irqsoff");
	/* A minute, which no section of a test takes. */
	KEXPECT_EQ(t, trace_test_put("tracing_max_latency", "60000000"), 0);
	KEXPECT(t, trace_test_says("tracing_max_latency", "60000000\n"));
	KEXPECT_EQ(t, trace_test_put("trace", ""), 0);
	hold_irqs(LONG_NS);
	l = latency_longest();
	KEXPECT_EQ(t, l.until, 0);
	KEXPECT_EQ(t, trace_test_put("tracing_max_latency", "0"), 0);
	hold_irqs(LONG_NS);
	trace_test_put("tracing_on", "0");
	l = latency_longest();
	KEXPECT(t, l.ticks >= ns_to_clock_delta(LONG_NS));
	KEXPECT(t, trace_test_read("tracing_max_latency", text, sizeof(text),
				   1) > 0);
	text[strlen(text) - 1] = '\0';
	KEXPECT_EQ(t, parse_u64(text, &us), 0);
	KEXPECT_EQ(t, us, clock_delta_to_ns(l.ticks) / NSEC_PER_USEC);
	/* Nothing is measured while tracing_on is 0. */
	hold_irqs(4 * LONG_NS);
	KEXPECT_EQ(t, latency_longest().since, l.since);
	/* With a threshold the last one is kept, and not the longest. */
	trace_test_put("tracing_on", "1");
	KEXPECT_EQ(t, trace_test_put("tracing_thresh", "1000"), 0);
	hold_irqs(2 * LONG_NS);
	hold_irqs(LONG_NS);
	trace_test_put("tracing_on", "0");
	if (boot_info.icount)
		KEXPECT(t, latency_longest().ticks <
				   ns_to_clock_delta(2 * LONG_NS));
	/* > trace forgets it. */
	KEXPECT(t, trace_test_kept_lines() > 0);
	KEXPECT_EQ(t, trace_test_put("trace", ""), 0);
	KEXPECT_EQ(t, trace_test_kept_lines(), 0);
	trace_test_reset();
}

KTEST(latency_calls, "latency.function_trace")
{
	unsigned int all = site_weight(live_calls.patchable);

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("current_tracer", "irqsoff"), 0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), all);
	KEXPECT_EQ(t, trace_test_put("options/function-trace", "0"), 0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
	KEXPECT_EQ(t, trace_test_put("trace_options", "function-trace"), 0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), all);
	trace_test_reset();
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
}

/* ---- Errors ----------------------------------------------------------------------------- */

static unsigned int keys_on(void)
{
	return key_irqsoff.on + key_preemptoff.on + key_wakeup.on;
}

KTEST(latency_errors, "latency.bad_input")
{
	unsigned long kb = ring_kb(rings, 0);
	struct mm_stats mm;

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("tracing_max_latency", "x"), -EINVAL);
	KEXPECT(t, strstr(trace_test_error, "no number of microseconds"));
	KEXPECT_EQ(t, trace_test_put("current_tracer", "preemptirqsoff"), 0);
	KEXPECT_EQ(t, keys_on(), 2);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), -EBUSY);
	KEXPECT(t, strstr(trace_test_error, "preemptirqsoff keeps"));
	KEXPECT_EQ(t, trace_test_put("snapshot", "0"), -EBUSY);
	KEXPECT(t, trace_test_read("snapshot", trace_test_error,
				   sizeof(trace_test_error), 10) < 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "nop"), 0);
	KEXPECT_EQ(t, keys_on(), 0);
	/* No memory for a snapshot: the tracer stays as it was. */
	trace_test_memory_take(TRACE_TEST_FEW_PAGES);
	mm_stats(&mm);
	trace_test_size(mm.pages_free / nr_cpus * 2 / 3 * (PAGE_SIZE / 1024));
	KEXPECT_EQ(t, trace_test_put("current_tracer", "irqsoff"), -ENOMEM);
	KEXPECT(t, trace_test_says("current_tracer", "nop\n"));
	KEXPECT_EQ(t, keys_on(), 0);
	trace_test_size(kb);
	trace_test_memory_give();
	trace_test_reset();
}

#define KEPT_TEXT 16384

static void read_kept(char *text)
{
	if (trace_test_read("snapshot", text, KEPT_TEXT, 4096) < 0)
		trace_test_read("trace", text, KEPT_TEXT, 4096);
}

/* The labels are refused, then the calls, if these change. Neither takes what was kept. */
static void refuse_tracer(struct ktest_run *t, const char *name,
			  unsigned int batches)
{
	char *before = kmalloc_zeroed(2 * KEPT_TEXT), *after;
	char most[16], same[16];
	struct mm_stats mm, left;

	KASSERT(t, before);
	after = before + KEPT_TEXT;
	read_kept(before);
	trace_test_read("tracing_max_latency", most, sizeof(most), 16);
	mm_stats(&mm);
	for (unsigned int nth = 1; nth <= batches; nth++) {
		fault_plant_once(&fault_batch_refused, nth);
		KEXPECT_EQ(t, trace_test_put("current_tracer", name), -EIO);
		fault_plant(&fault_batch_refused, 0);
		read_kept(after);
		KEXPECT_EQ(t, strcmp(before, after), 0);
		trace_test_read("tracing_max_latency", same, sizeof(same), 16);
		KEXPECT_EQ(t, strcmp(most, same), 0);
	}
	mm_stats(&left);
	KEXPECT_EQ(t, left.pages_free, mm.pages_free);
	kfree(before);
}

static bool has_latency(void)
{
	char text[16];

	trace_test_read("tracing_max_latency", text, sizeof(text), 16);
	return text[0] != '0';
}

KTEST(latency_refused, "latency.a_refused_tracer_takes_nothing")
{
	trace_test_reset();
	refuse_tracer(t, "irqsoff", 2);
	KEXPECT_EQ(t, trace_test_put("trace_marker", "kept"), 0);
	KEXPECT_EQ(t, trace_test_put("snapshot", "1"), 0);
	refuse_tracer(t, "irqsoff", 2);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "irqsoff"), 0);
	KEXPECT(t, KWAIT(has_latency()));
	KEXPECT_EQ(t, trace_test_put("tracing_on", "0"), 0);
	refuse_tracer(t, "wakeup", 1);
	/* The one that stays measures on. */
	KEXPECT_EQ(t, trace_test_put("tracing_max_latency", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("tracing_on", "1"), 0);
	KEXPECT(t, KWAIT(has_latency()));
	trace_test_reset();
}

static void tell_of_function(void)
{
	const struct tracer *function = trace_find("function");

	mutex_lock(&trace_mutex);
	BUG_ON(clients_prepare(NULL, function));
	clients_selected(function);
	mutex_unlock(&trace_mutex);
}

/* Whichever tracer is selected, no CPU is interrupted for a latency that is not measured. */
KTEST(latency_of_none, "latency.none_is_measured")
{
	if (nr_cpus < 2)
		KSKIP(t, "one CPU interrupts no other");
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_ipis(tell_of_function), 0);
}

/* Every latency tracer after every other one, while tasks run on all CPUs. */
KTEST(latency_toggle, "latency.switching_under_load")
{
	static const char *const tracers[] = { "irqsoff",	 "wakeup",
					       "preemptoff",	 "nop",
					       "preemptirqsoff", "wakeup_rt",
					       "function" };
	struct trace_worker *w = trace_workers;
	struct ring_stats s;

	trace_test_reset();
	KASSERT(t, trace_workers_start(w, 0));
	for (unsigned int i = 0; i < 3 * ARRAY_SIZE(tracers); i++) {
		KEXPECT_EQ(t,
			   trace_test_put("current_tracer",
					  tracers[i % ARRAY_SIZE(tracers)]),
			   0);
		task_sleep(NSEC_PER_MSEC);
		trace_test_walk_eight(i, false);
		KEXPECT(t, trace_test_books(&s));
	}
	trace_workers_join(w);
	trace_test_reset();
	KEXPECT_EQ(t, keys_on(), 0);
	KEXPECT_EQ(t, trace_test_count_off(),
		   site_weight(live_calls.patchable));
}
