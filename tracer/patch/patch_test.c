/* SPDX-License-Identifier: MIT */
/*
 * Proves of switching sites: that text which is not as it should be stops a
 * batch before its first byte is written, with the site and the bytes named,
 * that many switches under load lose no task and no call, that a tracer's
 * function never sees another's data (H24).
 */
#include <boot/boot_info.h>
#include <tracer/testing.h>
#include <kernel/lock/mutex.h>

/* Where CPUs take turns, by -icount or because the host has fewer, a rendezvous costs
 * seconds of patience. */
#define TOGGLES (boot_info.icount || nr_cpus > 4 ? 20u : 60u)

PATCH_TEST(patch_refuses, "patch.refuses_unexpected_bytes")
{
	int site = trace_test_site(victim_other);
	struct patch_batch b;
	struct live live;
	char text[160];

	KASSERT(t, site >= 0);
	trace_test_reset();
	live = live_of_site(site_address(site));
	mutex_lock(&trace_mutex);
	trace_test_overwrite(live, arch_live_bytes(live, true));
	KEXPECT_EQ(t, trace_test_switch_all(&b, true), -EIO);
	KEXPECT_EQ(t, b.bad_site, site);
	KEXPECT_EQ(t, b.found, arch_live_bytes(live, true));
	KEXPECT_EQ(t, b.expected, arch_live_bytes(live, false));
	KEXPECT_EQ(t, trace_test_count_off(), site_boot.patched - 1);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
	mutex_unlock(&trace_mutex);
	/* The same through the control file: one line, and nothing changes. */
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), -EIO);
	KEXPECT(t, strstr(trace_test_error, "victim_other"));
	KEXPECT(t, trace_test_read("current_tracer", text, sizeof(text), 99));
	KEXPECT(t, !strcmp(text, "nop\n"));
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_call"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	KEXPECT_EQ(t, trace_test_add("set_ftrace_filter", "victim_o*"), -EIO);
	trace_test_read("set_ftrace_filter", text, sizeof(text), 99);
	KEXPECT(t, !strcmp(text, "victim_call\n"));
	trace_test_overwrite(live, arch_live_bytes(live, false));
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_count_off(), site_boot.patched);
}

/* An option that wants calls stays off. */
KTEST(patch_refuses_option, "patch.refuses_unexpected_bytes.option")
{
	int site = trace_test_site(victim_call);
	struct live live;

	KNEED_CLIENT(t, "latency");
	KASSERT(t, site >= 0);
	trace_test_reset();
	live = live_of_site(site_address(site));
	KEXPECT_EQ(t, trace_test_put("options/function-trace", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_call"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "irqsoff"), 0);
	mutex_lock(&trace_mutex);
	trace_test_overwrite(live, arch_live_bytes(live, true));
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, trace_test_put("options/function-trace", "1"), -EIO);
	KEXPECT(t, trace_test_says("options/function-trace", "0\n"));
	mutex_lock(&trace_mutex);
	trace_test_overwrite(live, arch_live_bytes(live, false));
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, trace_test_put("options/function-trace", "1"), 0);
	trace_test_reset();
}

/* A batch with interrupts off is an error, not a hang. Nothing is written. */
PATCH_TEST(patch_irqs_off, "patch.refuses_irqs_off")
{
	struct patch_batch b;
	irq_state_t state;
	int err;

	trace_test_reset();
	mutex_lock(&trace_mutex);
	state = arch_irq_save();
	err = trace_test_switch_all(&b, true);
	arch_irq_restore(state);
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, err, -EDEADLK);
	KEXPECT_EQ(t, trace_test_count_off(), site_boot.patched);
}

/* Sites that `word` leaves to breakpoints, in so many batches of everything. */
static u64 expected_fallback(unsigned int batches)
{
	u64 n = 0;

	if (strcmp(patch_strategy_name(), "word"))
		return 0;
	for (unsigned int i = 0; i < site_count; i++)
		n += site_test(live_calls.patchable, i) &&
		     !arch_live_word(live_of_site(site_address(i)));
	return n * batches;
}

/* Every CPU busy, tasks preempted wherever they are, all sites on and off. */
PATCH_TEST(patch_toggle, "patch.toggle_under_load")
{
	struct trace_worker *w = trace_workers;
	unsigned long before[MAX_CPUS];
	struct patch_stats old, new;
	unsigned int i, cpu;

	trace_test_reset();
	patch_stats(&old);
	KASSERT(t, trace_workers_start(w, 0));
	for (i = 0; i < TOGGLES; i++)
		KEXPECT_EQ(t,
			   trace_test_put("current_tracer",
					  i % 2 ? "nop" : "function"),
			   0);
	for_each_online_cpu (cpu)
		before[cpu] = READ_ONCE(w[cpu].done);
	for_each_online_cpu (cpu) {
		KEXPECT(t, KWAIT(READ_ONCE(w[cpu].done) > before[cpu]));
		KEXPECT_EQ(t, w[cpu].wrong, 0);
		KEXPECT(t, !w[cpu].task->killed);
	}
	trace_workers_join(w);
	patch_stats(&new);
	KEXPECT_EQ(t, new.batches - old.batches, TOGGLES);
	KEXPECT_EQ(t, new.sites_written - old.sites_written,
		   (u64)TOGGLES * site_boot.patched);
	KEXPECT_EQ(t, new.fallback - old.fallback, expected_fallback(TOGGLES));
	if (!strcmp(new.strategy, "stop"))
		KEXPECT(t, new.held_ns_max > 0);
	KEXPECT_EQ(t, trace_test_count_off(), site_boot.patched);
	trace_test_reset();
}

/* With one function on, each of its calls is an event and nothing else is. */
PATCH_TEST(patch_calls, "patch.every_call_is_an_event")
{
	struct trace_worker *w = trace_workers;
	struct ring_stats sum;
	unsigned long calls;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	KASSERT(t, trace_workers_start(w, 3000));
	calls = trace_workers_join(w);
	KEXPECT(t, trace_test_books(&sum));
	KEXPECT_EQ(t, sum.written, calls);
	trace_test_reset();
}

/* ---- H24 ---------------------------------------------------------------------- */

static struct counted {
	struct trace_ops ops;
	u32 magic;
	u32 calls, mixed; /* atomic */
} pair[2];

static void count_checked(struct counted *c, u32 magic)
{
	count_up(&c->calls);
	if (c->magic != magic)
		count_up(&c->mixed);
}

static void call_first(unsigned long ip, unsigned long parent,
		       struct trace_ops *ops)
{
	(void)ip, (void)parent;
	count_checked(container_of(ops, struct counted, ops), 1);
}

static void call_second(unsigned long ip, unsigned long parent,
			struct trace_ops *ops)
{
	(void)ip, (void)parent;
	count_checked(container_of(ops, struct counted, ops), 2);
}

PATCH_TEST(patch_pair, "patch.function_and_its_data")
{
	int site = trace_test_site(victim_call);
	struct trace_worker *w = trace_workers;
	struct patch_batch b;
	unsigned long calls;
	unsigned int i;

	KASSERT(t, site >= 0);
	trace_test_reset();
	pair[0] = (struct counted){
		{ .entry = trace_entry_call, .func = call_first }, 1, 0, 0
	};
	pair[1] = (struct counted){
		{ .entry = trace_entry_call, .func = call_second }, 2, 0, 0
	};
	mutex_lock(&trace_mutex);
	trace_test_ops(&pair[0].ops);
	KEXPECT_EQ(t, patch_site(&b, site, true), 0);
	KASSERT(t, trace_workers_start(w, 0));
	for (i = 0; i < TOGGLES; i++) {
		trace_test_ops(&pair[i % 2].ops);
		task_sleep(NSEC_PER_MSEC / 10);
	}
	calls = trace_workers_join(w);
	KEXPECT_EQ(t, patch_site(&b, site, false), 0);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	KEXPECT(t, pair[0].calls > 0 && pair[1].calls > 0);
	KEXPECT_EQ(t, pair[0].mixed + pair[1].mixed, 0);
	KEXPECT_EQ(t, pair[0].calls + pair[1].calls, calls);
}
