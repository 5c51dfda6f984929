/* SPDX-License-Identifier: MIT */
/*
 * Proves of the order log: each strategy keeps the rules of patch_check.h, with CPUs that run the
 * sites all the time and with one that goes and comes. The rules notice when the code is broken on
 * purpose: a CPU that does not synchronise, CPUs that do so too early, a leader of a rendezvous
 * that waits for another CPU, a rendezvous that holds no CPU, a bypass that waits for no task, and
 * a CPU that comes online as if nothing had been written.
 */
#include <tracer/testing.h>

#include <kernel/cpu/hotplug.h>
#include <kernel/lock/mutex.h>
#include <tracer/patch/patch_log.h>

static unsigned int site; /* victim_call()'s */

/* An empty log, calls logged, trace_mutex taken. */
static bool begin_logged(struct ktest_run *t)
{
	int i = trace_test_site(victim_call);

	trace_test_reset();
	mutex_lock(&trace_mutex);
	if (i < 0 || patch_log_start()) {
		ktest_fail(t, __FILE__, __LINE__, "no site, or no memory");
		mutex_unlock(&trace_mutex);
		return false;
	}
	site = i;
	trace_test_ops(&patch_log_ops);
	return true;
}

static void end_logged(struct ktest_run *t, struct patch_check *c)
{
	trace_test_ops(NULL);
	KEXPECT_EQ(t, patch_log_check(c), 0);
	KEXPECT(t, c->n > 0);
	patch_log_stop();
	mutex_unlock(&trace_mutex);
}

/* The broken rules must be these. Else print the first one in words. */
static void expect_broken(struct ktest_run *t, const struct patch_check *c,
			  u32 rules)
{
	KEXPECT_EQ(t, c->broken, rules);
	if (c->broken != rules && c->rule)
		printk("# entry %u, CPU %u: %s\n", c->at, c->cpu,
		       patch_rule_words[c->rule]);
}

static void call_logged(void *arg)
{
	(void)arg;
	victim_call(1);
}

static void call_logged_on(unsigned int cpu)
{
	cpu_call(1u << cpu, call_logged, NULL);
}

static void flip_logged(struct ktest_run *t, bool on)
{
	struct patch_batch b;

	KEXPECT_EQ(t, patch_site(&b, site, on), 0);
}

/* ---- As it should be ------------------------------------------------------------ */

#define FLIPS 10u

PATCH_TEST(order_kept, "patch.order_is_kept")
{
	struct trace_worker *w = trace_workers;
	struct patch_check c;
	struct patch_batch b;

	if (!begin_logged(t))
		return;
	KASSERT(t, trace_workers_start(w, 200));
	for (unsigned int i = 0; i < FLIPS; i++) {
		flip_logged(t, i % 2 == 0);
		call_logged_on(ktest_last_cpu());
	}
	trace_workers_join(w);
	trace_test_ops(NULL);
	KEXPECT_EQ(t, trace_test_switch_all(&b, true), 0);
	KEXPECT_EQ(t, trace_test_switch_all(&b, false), 0);
	end_logged(t, &c);
	expect_broken(t, &c, 0);
	KEXPECT_EQ(t, c.batches, FLIPS + 2);
	KEXPECT(t, c.runs >= FLIPS / 2);
	KEXPECT(t, c.syncs >= c.batches);
}

/* ---- Broken on purpose ----------------------------------------------------------- */

/* On and off, and the victim runs on the CPU in question after each. */
static void flip_broken(struct ktest_run *t, struct fault *how)
{
	unsigned int cpu = ktest_last_cpu();

	how->cpu = cpu;
	fault_plant(how, 1);
	flip_logged(t, true);
	call_logged_on(cpu);
	flip_logged(t, false);
	fault_plant(how, 0);
}

static bool by_word(void)
{
	return !strcmp(patch_strategy_name(), "word") &&
	       arch_live_word(live_of_site(site_address(site)));
}

/* A wait for tasks while a breakpoint may be missed. */
static u32 unsynced_wait(void)
{
	return strcmp(patch_strategy_name(), "bypass") ? 0 : 1u << RULE_INSIDE;
}

/* The rules that a CPU breaks when it leaves out its synchronisation: patch_check.h. */
static u32 unsynced_rules(void)
{
	if (!strcmp(patch_strategy_name(), "stop"))
		return 1u << RULE_FREE | 1u << RULE_DONE | 1u << RULE_RUN |
		       1u << RULE_STORE;
	/* One store in one piece may be run unsynchronised, a second not. */
	return 1u << RULE_DONE | 1u << RULE_STORE |
	       (by_word() ? 0 : 1u << RULE_RUN) | unsynced_wait();
}

PATCH_TEST(order_skip, "patch.order_sees_skipped_sync")
{
	struct patch_check c;

	if (!begin_logged(t))
		return;
	flip_broken(t, &fault_sync_skipped);
	end_logged(t, &c);
	expect_broken(t, &c, unsynced_rules());
	KEXPECT_EQ(t, c.cpu, ktest_last_cpu());
	KEXPECT_EQ(t, c.runs, 1);
}

/*
 * Synchronised between any two stores, because the second's comes before it, but
 * not after the last, when the batch is declared done and a CPU is let go.
 */
PATCH_TEST(order_early, "patch.order_sees_early_sync")
{
	bool stop = !strcmp(patch_strategy_name(), "stop");
	struct patch_check c;

	if (!begin_logged(t))
		return;
	flip_broken(t, &fault_sync_early);
	end_logged(t, &c);
	expect_broken(t, &c,
		      1u << RULE_DONE | unsynced_wait() |
			      stop * (1u << RULE_FREE | 1u << RULE_RUN));
}

KTEST(order_wait, "patch.order_sees_waiting_leader")
{
	struct patch_check c;

	KNEED_TWO(t);
	if (!begin_logged(t))
		return;
	flip_broken(t, &fault_stop_waits);
	end_logged(t, &c);
	expect_broken(t, &c,
		      strcmp(patch_strategy_name(), "stop") ? 0 :
							      1u << RULE_WAIT);
}

static void bypass_loosely(struct ktest_run *t)
{
	struct patch_check c;

	if (!begin_logged(t))
		return;
	flip_broken(t, &fault_bypass_loose);
	end_logged(t, &c);
	expect_broken(t, &c, 1u << RULE_INSIDE);
}

KTEST(order_bypass, "patch.order_sees_missing_wait")
{
	trace_test_strategy(t, "bypass", bypass_loosely);
}

static void stop_loosely(struct ktest_run *t)
{
	struct patch_check c;

	if (!begin_logged(t))
		return;
	flip_broken(t, &fault_stop_loose);
	end_logged(t, &c);
	expect_broken(t, &c, 1u << RULE_HELD);
}

KTEST(order_loose, "patch.order_sees_missing_rendezvous")
{
	trace_test_strategy(t, "stop", stop_loosely);
}

/* ---- A CPU that goes and comes ---------------------------------------------------- */

static void away_and_back(struct ktest_run *t, bool unsynced)
{
	unsigned int cpu = ktest_last_cpu();

	KEXPECT_EQ(t, cpu_down(cpu), 0);
	flip_logged(t, true);
	fault_plant(&fault_cpu_join_unsynced, unsynced);
	KEXPECT_EQ(t, cpu_up(cpu), 0);
	fault_plant(&fault_cpu_join_unsynced, 0);
	call_logged_on(cpu);
	flip_logged(t, false);
}

static void come_back(struct ktest_run *t, bool unsynced, u32 rules)
{
	struct patch_check c;

	KNEED_TWO(t);
	if (!begin_logged(t))
		return;
	away_and_back(t, unsynced);
	end_logged(t, &c);
	expect_broken(t, &c, rules);
	KEXPECT_EQ(t, c.runs, 1);
}

PATCH_TEST(order_joins, "patch.order_of_cpu_that_comes")
{
	come_back(t, false, 0);
}

PATCH_TEST(order_joined, "patch.order_sees_unsynced_cpu")
{
	come_back(t, true, 1u << RULE_JOINED);
}

/* ---- The log itself ---------------------------------------------------------------- */

KTEST(order_full, "patch.order_log_counts_lost")
{
	struct patch_log_stats s;
	struct patch_check c;
	unsigned int i;

	if (!begin_logged(t))
		return;
	for (i = 0; i < 50000; i++)
		patch_log(LOG_SYNC, 0, 0);
	patch_log_stats(&s);
	KEXPECT(t, s.lost > 0);
	KEXPECT(t, s.entries + s.lost > i);
	KEXPECT_EQ(t, patch_log_check(&c), -ENOSPC);
	KEXPECT_EQ(t, patch_log_start(), 0);
	patch_log_stats(&s);
	KEXPECT_EQ(t, s.lost, 0);
	end_logged(t, &c);
}
