/* SPDX-License-Identifier: MIT */
/*
 * Proves that a function that keeps its return address in a register alone comes
 * back although it was interrupted, at the live call of its own site, and the
 * site then switched: a call that has begun there, and begins again, may already
 * have put another return address into that register.
 */
#include <boot/boot_info.h>
#include <tracer/testing.h>
#include <kernel/lock/mutex.h>
#include <kernel/sched/balance.h>
#include <kernel/sched/hold.h>
#include <kernel/test/again.h>

#define ROUNDS 40
#define EVERY_NS (20 * NSEC_PER_USEC)

static struct {
	struct task *task;
	struct timer timer;
	u32 calls;
	bool wrong;
} leaf;

static void come_again(struct timer *timer)
{
	timer_start(timer, EVERY_NS);
}

/* The loop's length changes, so that the timer finds the task at every instruction. */
static void call_leaf(void *arg)
{
	(void)arg;
	timer_start(&leaf.timer, EVERY_NS);
	for (u32 i = 0; !task_should_stop(); i++) {
		for (u32 n = i % 7; n--;)
			asm volatile("");
		leaf.wrong |= victim_leaf(i) != (unsigned long)i + 1;
		WRITE_ONCE(leaf.calls, leaf.calls + 1);
	}
	timer_cancel(&leaf.timer);
}

static int switch_leaf(int site, bool on)
{
	struct patch_batch b;
	int err;

	mutex_lock(&trace_mutex);
	err = patch_site(&b, site, on);
	mutex_unlock(&trace_mutex);
	return err;
}

/*
 * Hold the task at the live instruction in state `on`, and let it go on in the other
 * state.
 */
static bool leaf_goes_on(struct ktest_run *t, int site, bool on)
{
	struct live live = live_of_site(site_address(site));
	bool held;
	u32 calls;

	KEXPECT_EQ(t, switch_leaf(site, on), 0);
	task_hold(leaf.task, live.at, live.at + 1);
	held = task_wait_held(leaf.task, KWAIT_NS);
	KEXPECT_EQ(t, switch_leaf(site, !on), 0);
	task_hold(leaf.task, 0, 0);
	if (!held && !task_wait_held(leaf.task, NSEC_PER_MSEC))
		return false;
	calls = leaf.calls;
	task_release(leaf.task);
	return KWAIT(READ_ONCE(leaf.calls) - calls > 2);
}

KTEST(leaf_returns, "arch_trace.leaf_keeps_return")
{
	int site = trace_test_site(victim_leaf);
	bool good = true;

	if (!boot_info.icount)
		KSKIP(t, "needs -icount: else no interrupt comes within a "
			 "call");
	KASSERT(t, site >= 0);
	memset(&leaf, 0, sizeof(leaf));
	timer_setup(&leaf.timer, come_again);
	leaf.task = task_create_expendable(
		"leaf", PRIO_LOW, 1u << ktest_last_cpu(), call_leaf, NULL);
	KASSERT(t, leaf.task);
	for (unsigned int i = 0; good && i < ROUNDS; i++)
		good = leaf_goes_on(t, site, i % 4 != 3);
	KEXPECT(t, good);
	KEXPECT(t, !leaf.wrong);
	if (!good) {
		/* Hold the task: it may never ask whether it should stop. */
		task_hold(leaf.task, 0, ~0ul);
		KEXPECT(t, task_wait_held(leaf.task, KWAIT_NS));
		task_bury(leaf.task);
		timer_cancel(&leaf.timer);
	}
	task_stop(leaf.task);
	task_join(leaf.task);
	KEXPECT_EQ(t, switch_leaf(site, false), 0);
}
