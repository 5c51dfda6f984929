/* SPDX-License-Identifier: MIT */
/*
 * Proves of the strategies that stop no CPU: a site acts as its new state from the first breakpoint
 * on, or by `bypass` as the old one up to the last step, on every CPU, calls included (H13). The
 * trap finds a batch in any order and of any size (H14). After each step, memory holds the bytes
 * that the table in patch_break.c lists.
 */
#include <tracer/testing.h>

#include <kernel/patch_path.h>
#include <kernel/lock/mutex.h>
#include <tracer/patch/patch_live.h>
#include <tracer/patch/patch_break.h>

/* ---- H13 -------------------------------------------------------------------- */

#define CALLS 50u

static u32 hits;  /* atomic: calls of count_live_hit() */
static u32 wrong; /* atomic: wrong results of victim_other() */

static void count_live_hit(unsigned long ip, unsigned long parent,
			   struct trace_ops *ops)
{
	(void)ip, (void)parent, (void)ops;
	count_up(&hits);
}
static struct trace_ops hit_ops = { .entry = trace_entry_call,
				    .func = count_live_hit };

static struct {
	struct live live;
	bool on;	     /* the state that the site gets */
	unsigned int online; /* CPUs */
	u32 steps;	     /* bit 2 * step + synced */
	u32 lost;	     /* times that calls were not as the new state's */
	u32 strange;	     /* times that memory was not as it should be */
} window;

static void call_other_often(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < CALLS; i++)
		if (victim_other(i) != i + 3)
			count_up(&wrong);
}

static bool memory_is_right(enum patch_step step)
{
	u64 on = arch_live_bytes(window.live, true),
	    off = arch_live_bytes(window.live, false);
	u64 now = arch_live_read(window.live), new = window.on ? on : off;
	u64 old = window.on ? off : on;

	if (step == PATCH_BREAK)
		return patch_break_unit(now) ==
			       patch_break_unit(arch_break_insn) &&
		       now - patch_break_unit(now) ==
			       old - patch_break_unit(old);
	if (step == PATCH_TAIL)
		return patch_break_unit(now) ==
			       patch_break_unit(arch_break_insn) &&
		       now - patch_break_unit(now) ==
			       new - patch_break_unit(new);
	return now == new;
}

/* `bypass` acts as the old state until the new one is there. */
static bool acts_as_on(enum patch_step step)
{
	bool old =
		!strcmp(patch_strategy_name(), "bypass") && step != PATCH_FIRST;

	return window.on != old;
}

/*
 * Every CPU runs the site between any two steps, also before it has synchronised: under QEMU it
 * then sees the bytes in memory, and a real CPU may.
 */
static void run_in_window(enum patch_step step, bool synced)
{
	u32 before = hits;

	/*
	 * Strategy `word` comes here before it leaves some sites to breakpoints, and
	 * this site may be one of them.
	 */
	if (step == PATCH_WORD && !arch_live_word(window.live))
		return;
	window.steps |= 1u << (2 * step + synced);
	window.strange += !memory_is_right(step);
	cpu_call(~0u, call_other_often, NULL);
	if (hits - before != (acts_as_on(step) ? window.online * CALLS : 0))
		window.lost++;
}

static u32 steps_of_strategy(void)
{
	bool word = !strcmp(patch_strategy_name(), "word") &&
		    arch_live_word(window.live);
	u32 both = 3, steps = both << 2 * PATCH_BREAK | both << 2 * PATCH_FIRST;

	if (!strcmp(patch_strategy_name(), "stop"))
		return 0;
	if (word)
		return both << 2 * PATCH_WORD;
	if (arch_break_length < arch_live_length)
		steps |= both << 2 * PATCH_TAIL;
	return steps;
}

static void switch_in_window(struct ktest_run *t, int site, bool on)
{
	struct patch_stats old, new;
	struct patch_batch b;
	bool traps;

	window.on = on;
	window.steps = 0;
	patch_stats(&old);
	KEXPECT_EQ(t, patch_site(&b, site, on), 0);
	patch_stats(&new);
	KEXPECT_EQ(t, window.steps, steps_of_strategy());
	traps = window.steps & 3u << 2 * PATCH_BREAK;
	KEXPECT_EQ(t, new.traps > old.traps, traps);
	KEXPECT_EQ(t, new.late, old.late);
}

PATCH_TEST(patch_window, "patch.window_acts_as_one_state")
{
	int site = trace_test_site(victim_other);
	unsigned int cpu;

	KASSERT(t, site >= 0);
	trace_test_reset();
	window.live = live_of_site(site_address(site));
	window.lost = window.strange = window.online = wrong = 0;
	for_each_online_cpu (cpu)
		window.online++;
	mutex_lock(&trace_mutex);
	trace_test_ops(&hit_ops);
	patch_step_hook = run_in_window;
	for (unsigned int i = 0; i < 6; i++)
		switch_in_window(t, site, i % 2 == 0);
	patch_step_hook = NULL;
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, window.lost, 0);
	KEXPECT_EQ(t, window.strange, 0);
	KEXPECT_EQ(t, wrong, 0);
}

/* ---- H14 ---------------------------------------------------------------------- */

static u32 missed; /* breakpoints that the trap would not have found */

/* Search for every site that holds a breakpoint, as the trap does. */
static void find_all(enum patch_step step, bool synced)
{
	if (step != PATCH_BREAK || !synced)
		return;
	for (unsigned int i = 0; i < site_count; i++) {
		struct live live = live_of_site(site_address(i));
		struct live found;
		bool on = false;

		if (patch_break_unit(arch_live_read(live)) !=
		    patch_break_unit(arch_break_insn))
			continue;
		if (!patch_break_find(live.at, &found, &on) || !on)
			missed++;
	}
}

/*
 * The i-th element of a permutation of n: i times a number that has no factor in common
 * with n.
 */
static unsigned int shuffled_index(unsigned int i, unsigned int n)
{
	unsigned int step = n / 2 + 1, a, b, rest;

	for (;; step++) {
		for (a = n, b = step; b; rest = a % b, a = b, b = rest)
			;
		if (a == 1)
			return (u64)i * step % n;
	}
}

/* Switches sites without patch_apply(), which would take them in the table's order. */
static void switch_shuffled(bool on)
{
	for (unsigned int i = 0; i < site_count; i++) {
		unsigned int n = shuffled_index(i, site_count);

		if (site_test(live_calls.patchable, n))
			patch_break_add(live_of_site(site_address(n)), on);
	}
	patch_break_flush();
}

/* All sites are switched in a random order, in several chunks, while all CPUs call. */
KTEST(patch_shuffled, "patch.shuffled_and_oversized")
{
	struct trace_worker *w = trace_workers;
	unsigned int n;

	trace_test_reset();
	if (!sites_all_known && site_count <= 2 * PATCH_CHUNK)
		KSKIP(t, "the run-time recorder has not met enough functions");
	KASSERT(t, site_count > 2 * PATCH_CHUNK);
	KASSERT(t, trace_workers_start(w, 0));
	missed = 0;
	mutex_lock(&trace_mutex);
	patch_step_hook = find_all;
	switch_shuffled(true);
	patch_step_hook = NULL;
	KEXPECT_EQ(t, trace_test_count_off(), site_count - site_boot.patched);
	switch_shuffled(false);
	mutex_unlock(&trace_mutex);
	trace_workers_join(w);
	for_each_online_cpu (n)
		KEXPECT_EQ(t, w[n].wrong, 0);
	KEXPECT_EQ(t, missed, 0);
	KEXPECT_EQ(t, trace_test_count_off(), site_boot.patched);
}

/* A chunk takes entries in any order. No site is found that is not in it. */
KTEST(patch_vector, "patch.vector_is_sorted")
{
	static struct patch_chunk c;
	unsigned long text = (unsigned long)_text;
	unsigned int i;
	struct live l;
	bool on;

	c.count = 0;
	for (i = 0; i < PATCH_CHUNK; i++) {
		l.at = text + 3 * ((i * 37) % PATCH_CHUNK);
		l.target = i % 2 ? l.at + 1 : LIVE_CALL;
		patch_chunk_add(&c, l, i % 2);
	}
	for (i = 0; i < PATCH_CHUNK; i++) {
		KEXPECT_EQ(t, c.site[i].entry >> 1, 3 * i);
		KASSERT(t,
			patch_chunk_find(&c, c.count, text + 3 * i, &l, &on));
		KEXPECT_EQ(t, l.target, on ? l.at + 1 : LIVE_CALL);
	}
	for (i = 0; i < site_count; i++)
		KEXPECT(t, !patch_break_find(live_of_site(site_address(i)).at,
					     &l, &on));
}

/* ---- Choosing ----------------------------------------------------------------- */

KTEST(patch_choose, "patch.strategy_file")
{
	const struct patch_strategy *p;
	char text[300], name[40];

	KEXPECT(t,
		trace_test_read("patch_strategy", text, sizeof(text), 7) > 0);
	snprintf(name, sizeof(name), "[%s]", patch_strategy_name());
	KEXPECT(t, strstr(text, name));
	KEXPECT_EQ(t, trace_test_put("patch_strategy", "magic"), -EINVAL);
	for_each_registered (p, patch_strategies) {
		KEXPECT(t, strstr(text, p->name));
		if (!patch_refused(p)) {
			KEXPECT(t, strstr(trace_test_error, p->name));
			continue;
		}
		KEXPECT(t, strstr(text, patch_refused(p)));
		KEXPECT_EQ(t, trace_test_put("patch_strategy", p->name),
			   -ENOSYS);
		KEXPECT(t, strstr(trace_test_error, patch_refused(p)));
	}
	KEXPECT(t, strstr(text, name));
}

/* ---- The lab's hook ------------------------------------------------------------ */

static u32 hooked; /* questions to count_trap_hook() */

static bool count_trap_hook(struct trap_frame *f)
{
	hooked += !f;
	return true;
}
PATCH_INDIRECT(patch_trap, count_trap_hook);

KTEST(patch_trap_hook, "patch.trap_hook")
{
	u32 before = hooked;

	mutex_lock(&trace_mutex);
	PATCH_HOOK_SET(patch_trap_hook, patch_trap, count_trap_hook);
	KEXPECT(t, patch_trap(NULL));
	patch_trap_hook = NULL;
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, hooked - before, 1);
}
