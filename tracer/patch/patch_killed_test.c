/* SPDX-License-Identifier: MIT */
/*
 * Proves of the strategies that stop no CPU: a task that dies at any step of a batch, inside the
 * function whose site changes, held there, or of a breakpoint that belongs to no batch, takes
 * nothing with it. The batch ends, the next call is as the new state demands, and the next batch
 * works. Under `stop` no task runs between the steps.
 */
#include <tracer/testing.h>

#include <kernel/lock/mutex.h>
#include <kernel/sched/hold.h>
#include <tracer/patch/patch_break.h>
#include <kernel/test/again.h>

#define STEPS_MOST 16u

static u32 entries; /* atomic: calls of victim_callback() that were seen */

static void count_entry_seen(unsigned long ip, unsigned long parent,
			     struct trace_ops *ops)
{
	(void)ip, (void)parent, (void)ops;
	count_up(&entries);
}
static struct trace_ops entry_ops = { .entry = trace_entry_call,
				      .func = count_entry_seen };

static void store_to_nothing(unsigned long x)
{
	*(volatile unsigned long *)x = x;
}

static void die_inside(void *arg)
{
	victim_callback(store_to_nothing, (unsigned long)arg);
}

static void stand_inside(unsigned long x)
{
	(void)x;
	task_hold_self();
}

static void be_held_inside(void *arg)
{
	(void)arg;
	victim_callback(stand_inside, 0);
}

static void meet_stray_break(void *arg)
{
	victim_other((unsigned long)arg);
}

/* ---- The ways to die, each within a step ---- */

static struct {
	unsigned int way, at; /* which step: hooks so far */
	unsigned int steps;
	unsigned int deaths, wrong;
	struct task *held; /* since before the batch */
	struct live stray; /* the site of victim_other() */
} death;

static void expect_death(struct task *t)
{
	death.deaths++;
	death.wrong += !t || task_join(t) != -EFAULT;
}

static void die_of_fault(void)
{
	struct task_fault fault = { 0 };

	expect_death(task_create_watched("dies", die_inside, &fault));
	death.wrong += !fault.what;
}

static void die_of_break(void)
{
	u64 off = arch_live_bytes(death.stray, false);
	struct task_fault fault = { 0 };

	trace_test_overwrite(death.stray,
			     off - patch_break_unit(off) + arch_break_insn);
	expect_death(task_create_watched("dies", meet_stray_break, &fault));
	trace_test_overwrite(death.stray, off);
	death.wrong += fault.pc != death.stray.at;
}

static void die_while_held(void)
{
	if (!death.held)
		return;
	task_bury(death.held);
	expect_death(death.held);
	death.held = NULL;
}

static void (*const ways[])(void) = { die_of_fault, die_of_break,
				      die_while_held };

static void die_at_step(enum patch_step step, bool synced)
{
	(void)step, (void)synced;
	if (death.steps++ == death.at)
		ways[death.way]();
}

static void hold_one_inside(struct ktest_run *t)
{
	death.held = task_create_expendable("held", PRIO_NORMAL,
					    1u << ktest_last_cpu(),
					    be_held_inside, NULL);
	KASSERT(t, death.held);
	KEXPECT(t, task_wait_held(death.held, KWAIT_NS));
}

static void ignore_call(unsigned long x)
{
	(void)x;
}

/* One batch. False: it has no such step. */
static bool switch_and_die(struct ktest_run *t, int site, bool on)
{
	struct patch_batch b;
	u32 before;

	if (ways[death.way] == die_while_held)
		hold_one_inside(t);
	death.steps = death.deaths = 0;
	patch_step_hook = die_at_step;
	KEXPECT_EQ(t, patch_site(&b, site, on), 0);
	patch_step_hook = NULL;
	before = entries;
	victim_callback(ignore_call, 1);
	KEXPECT_EQ(t, entries - before, on);
	KEXPECT_EQ(t, death.deaths, death.steps > death.at);
	die_while_held();
	return death.steps > death.at;
}

PATCH_TEST(patch_killed, "patch.killed_at_each_step")
{
	int other = trace_test_site(victim_other);
	int site = site_lower_bound((unsigned long)victim_callback);
	unsigned int n = 0;

	KASSERT(t, other >= 0);
	trace_test_reset();
	memset(&death, 0, sizeof(death));
	death.stray = live_of_site(site_address(other));
	mutex_lock(&trace_mutex);
	trace_test_ops(&entry_ops);
	for (; death.way < ARRAY_SIZE(ways); death.way++)
		for (death.at = 0; death.at < STEPS_MOST; death.at++)
			for (int on = 1; on >= 0; on--)
				n += switch_and_die(t, site, on);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, death.wrong, 0);
	KEXPECT_EQ(t, n == 0, !strcmp(patch_strategy_name(), "stop"));
	KEXPECT_EQ(t, trace_test_count_off(), site_boot.patched);
}

/* ---- The task that patches ---- */

static struct {
	int site, err;
	u32 steps,
		mortal; /* of these, where a fault would only have killed it */
	bool before, behind;
} patcher_seen;

static void see_patcher(enum patch_step step, bool synced)
{
	(void)step, (void)synced;
	patcher_seen.steps++;
	patcher_seen.mortal += current_task()->expendable;
}

static void patch_twice(void *arg)
{
	struct patch_batch b;

	(void)arg;
	patcher_seen.before = current_task()->expendable;
	mutex_lock(&trace_mutex);
	patch_step_hook = see_patcher;
	patcher_seen.err = patch_site(&b, patcher_seen.site, true) ?:
				   patch_site(&b, patcher_seen.site, false);
	patch_step_hook = NULL;
	mutex_unlock(&trace_mutex);
	patcher_seen.behind = current_task()->expendable;
}

/* An expendable task is none while it patches: a fault would leave the batch half written. */
PATCH_TEST(patch_by_expendable, "patch.by_an_expendable_task")
{
	struct task_fault fault = { 0 };
	struct task *task;

	trace_test_reset();
	memset(&patcher_seen, 0, sizeof(patcher_seen));
	patcher_seen.site = trace_test_site(victim_other);
	KASSERT(t, patcher_seen.site >= 0);
	task = task_create_watched("patches", patch_twice, &fault);
	KASSERT(t, task);
	KEXPECT_EQ(t, task_join(task), 0);
	KEXPECT_EQ(t, patcher_seen.err, 0);
	KEXPECT(t, patcher_seen.before && patcher_seen.behind);
	KEXPECT_EQ(t, patcher_seen.mortal, 0);
	KEXPECT_EQ(t, !patcher_seen.steps,
		   !strcmp(patch_strategy_name(), "stop"));
}
