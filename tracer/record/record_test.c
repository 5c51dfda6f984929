/* SPDX-License-Identifier: MIT */
/*
 * Proves of the run-time recorder: that a call is recorded once and keeps its
 * argument and result, that the daemon makes a site of it, which is traced and
 * filtered like any other, that without a free record a call is skipped,
 * counted, and found later. Each uses functions that nothing has called before,
 * so that a second run in the same boot has nothing left to prove.
 */
#include <tracer/testing.h>

#include <kernel/test/record_victim.h>
#include <kernel/lock/mutex.h>
#include <kernel/patch_path.h>
#include <tracer/ops/ops.h>
#include <tracer/record/record.h>

static bool victim_is_known(unsigned int victim)
{
	return trace_test_site(record_victim[victim]) >= 0;
}

/* How many of victims [lo, hi) are sites, off or on, that may be switched. */
static unsigned int count_converted(unsigned int lo, unsigned int hi)
{
	unsigned int n = 0;
	int site;

	for (; lo < hi; lo++) {
		site = trace_test_site(record_victim[lo]);
		n += site >= 0 && site_test(live_calls.patchable, site);
	}
	return n;
}

static void call_and_find(struct ktest_run *t, unsigned int lo, unsigned int hi)
{
	for (; lo < hi; lo++)
		KEXPECT_EQ(t, record_victim[lo](5), 5 + lo);
}

static void no_call(unsigned long ip, unsigned long parent,
		    struct trace_ops *ops)
{
	(void)ip, (void)parent, (void)ops;
}
PATCH_INDIRECT(trace_entry_call, no_call);
static struct trace_ops none_ops = { .entry = trace_entry_call,
				     .func = no_call };

static struct record_stats stats_of_record(void)
{
	struct record_stats s;

	record_stats(&s);
	return s;
}

KTEST(site_seen, "arch_trace.site_seen")
{
	struct record_stats before, after;
	unsigned int i;

	if (victim_is_known(0))
		KSKIP(t, "already met in this boot");
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, record_convert(), 0);
	before = stats_of_record();
	for (i = 0; i < 5; i++)
		call_and_find(t, 0, 1);
	KEXPECT_EQ(t, record_victim_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
		   RECORD_VICTIM_SUM(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
	after = stats_of_record();
	/* Others may call something new at the same time. */
	KEXPECT(t, after.waiting - before.waiting >= 2);
	KEXPECT_EQ(t, after.skipped, before.skipped);
	KEXPECT_EQ(t, record_convert(), 0);
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, count_converted(0, 1), 1);
	call_and_find(t, 0, 1);
	KEXPECT_EQ(t, record_victim_arguments(9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
		   RECORD_VICTIM_SUM(9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
}

/* The daemon's own turns, within a test. */
static bool daemon_converts(unsigned int lo, unsigned int hi)
{
	bool done;

	fault_plant(&fault_record_in_tests, 1);
	done = KWAIT(count_converted(lo, hi) == hi - lo);
	fault_plant(&fault_record_in_tests, 0);
	/* Its turn is over, the new sites' states too. */
	mutex_lock(&trace_mutex);
	mutex_unlock(&trace_mutex);
	return done;
}

KTEST(record_daemon, "record.daemon_makes_sites")
{
	struct ring_stats sum;
	unsigned int i, site;
	char text[80];

	if (victim_is_known(8))
		KSKIP(t, "already met in this boot");
	trace_test_reset();
	KEXPECT(t, trace_test_put("set_ftrace_filter", "record_victim_10"));
	call_and_find(t, 8, 16);
	KASSERT(t, daemon_converts(8, 16));
	for (i = 8; i < 16; i++) {
		site = trace_test_site(record_victim[i]);
		KEXPECT_EQ(t, arch_live_read(live_of_site(site_address(site))),
			   arch_live_bytes(live_of_site(site_address(site)),
					   false));
	}
	/* One in the filter: its calls are events, and no others. */
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "record_victim_011"),
		   0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	call_and_find(t, 8, 16);
	call_and_find(t, 8, 16);
	KEXPECT(t, trace_test_books(&sum));
	KEXPECT_EQ(t, sum.written, 2);
	/* Sites found meanwhile do not move the filter to a neighbour. */
	call_and_find(t, 16, 24);
	KASSERT(t, daemon_converts(16, 24));
	trace_test_read("set_ftrace_filter", text, sizeof(text), 7);
	KEXPECT(t, !strcmp(text, "record_victim_011\n"));
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 1);
	KEXPECT_EQ(t, site_weight(site_bits.filter[0]), 1);
	call_and_find(t, 8, 24);
	trace_test_books(&sum);
	KEXPECT_EQ(t, sum.written, 3);
	trace_test_reset();
}

/* A site that the lab has switched on stays on, though no tracer asks for it. */
KTEST(record_borrowed, "record.turn_under_a_borrower")
{
	struct patch_batch b;
	int site;

	if (victim_is_known(7))
		KSKIP(t, "already met in this boot");
	trace_test_reset();
	call_and_find(t, 6, 7);
	KASSERT(t, daemon_converts(6, 7));
	site = trace_test_site(record_victim[6]);
	mutex_lock(&trace_mutex);
	trace_test_ops(&none_ops);
	KEXPECT_EQ(t, patch_site(&b, site, true), 0);
	mutex_unlock(&trace_mutex);
	call_and_find(t, 7, 8);
	KEXPECT(t, daemon_converts(7, 8));
	/* Its number may be another one now. */
	site = trace_test_site(record_victim[6]);
	KEXPECT(t, site_test(live_calls.enabled, site));
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, patch_site(&b, site, false), 0);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	trace_test_reset();
}

/* With a tracer active and no filter, a new site is on as soon as it is one. */
KTEST(record_active, "record.new_sites_are_traced")
{
	unsigned int i;

	if (victim_is_known(24))
		KSKIP(t, "already met in this boot");
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("set_ftrace_notrace", "victim_call"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	call_and_find(t, 24, 32);
	KASSERT(t, daemon_converts(24, 32));
	for (i = 24; i < 32; i++)
		KEXPECT(t, site_test(live_calls.enabled,
				     trace_test_site(record_victim[i])));
	KEXPECT(t,
		!site_test(live_calls.enabled, trace_test_site(victim_call)));
	KEXPECT_EQ(t, site_weight(live_calls.enabled), site_boot.patched - 1);
	trace_test_reset();
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
}

KTEST(record_exhausted, "record.skips_without_a_free_record")
{
	struct record_stats before, after;

	if (victim_is_known(32))
		KSKIP(t, "already met in this boot");
	before = stats_of_record();
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, record_resize(RECORD_PROBES), 0);
	call_and_find(t, 32, 64);
	after = stats_of_record();
	KEXPECT(t, after.skipped - before.skipped >= 32 - RECORD_PROBES);
	/* All 16 are taken. This turn converts them, and makes room. */
	KEXPECT_EQ(t, record_convert(), 0);
	mutex_unlock(&trace_mutex);
	KEXPECT(t, count_converted(32, 64) <= RECORD_PROBES);
	KEXPECT(t, stats_of_record().records > RECORD_PROBES);
	call_and_find(t, 32, 64);
	site_recorder.learn();
	KEXPECT_EQ(t, count_converted(32, 64), 32);
	call_and_find(t, 32, 64);
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, record_resize(before.records), 0);
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, stats_of_record().records, before.records);
}
