/* SPDX-License-Identifier: MIT */
/* Code in NMIs runs a site on every CPU while a strategy switches it. */
#include <tracer/testing.h>

#include <kernel/patch_path.h>
#include <kernel/lock/mutex.h>
#include <tracer/patch/patch_break.h>

static struct {
	bool on;     /* the state that the site gets */
	bool bypass; /* the strategy acts as the old state until its last step */
	u32 calls[MAX_CPUS]; /* made in NMIs, by that CPU */
	u32 hits, wrong;     /* atomic */
	unsigned int lost,
		steps; /* steps where calls were not as the strategy promises */
} live;

static void note_live(unsigned long ip, unsigned long parent,
		      struct trace_ops *ops)
{
	(void)ip, (void)parent, (void)ops;
	count_up(&live.hits);
}
static struct trace_ops live_ops = { .entry = trace_entry_call,
				     .func = note_live };

static void call_in_nmi(void)
{
	unsigned int c = cpu_index();
	unsigned long x = live.calls[c];

	if (victim_other(x) != x + 3)
		count_up(&live.wrong);
	/* Release: pairs with the acquire in nmi_everywhere(). */
	__atomic_store_n(&live.calls[c], x + 1, __ATOMIC_RELEASE);
}

/*
 * Were so many of the CPUs' calls seen as the strategy promises? `bypass` acts as the old state
 * until the new first units stand, and as either until all CPUs have synchronised.
 */
static bool calls_are_right(enum patch_step step, bool synced, u32 hits,
			    u32 cpus)
{
	bool last = step == PATCH_FIRST;

	if (live.bypass && last && !synced)
		return hits <= cpus;
	return hits == (live.on == (last || !live.bypass) ? cpus : 0);
}

/* Between any two steps every CPU runs the site once, in an NMI. */
static void nmi_everywhere(enum patch_step step, bool synced)
{
	u64 end = arch_clock() + ns_to_clock_delta(KWAIT_NS);
	u32 before = live.hits, n = live.steps + 1;
	unsigned int c, online = 0;

	for_each_online_cpu (c) {
		online++;
		arch_nmi_send(c);
		while (__atomic_load_n(&live.calls[c], __ATOMIC_ACQUIRE) != n &&
		       arch_clock() < end)
			arch_cpu_relax();
	}
	live.steps = n;
	live.lost += !calls_are_right(step, synced, live.hits - before, online);
}

static void switch_under_nmis(struct ktest_run *t, int site)
{
	struct patch_batch b;

	memset(&live, 0, sizeof(live));
	live.bypass = !strcmp(patch_strategy_name(), "bypass");
	mutex_lock(&trace_mutex);
	trace_test_ops(&live_ops);
	patch_step_hook = nmi_everywhere;
	irq_nmi_hook = call_in_nmi;
	for (unsigned int i = 0; i < 6; i++) {
		live.on = i % 2 == 0;
		KEXPECT_EQ(t, patch_site(&b, site, live.on), 0);
	}
	irq_nmi_hook = NULL;
	patch_step_hook = NULL;
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
}

PATCH_TEST(nmi_patch, "nmi.while_patching")
{
	int site = trace_test_site(victim_other);
	bool stop = !strcmp(patch_strategy_name(), "stop");

	if (arch_nmi_send(cpu_index()))
		KSKIP(t, "this machine has no NMI");
	KASSERT(t, site >= 0);
	trace_test_reset();
	switch_under_nmis(t, site);
	KEXPECT_EQ(t, live.steps == 0, stop);
	KEXPECT_EQ(t, live.lost, 0);
	KEXPECT_EQ(t, live.wrong, 0);
}
