/* SPDX-License-Identifier: MIT */
/*
 * Proves of strategy `bypass`: a batch waits for a task inside a site, and goes on when that has
 * left. One that never leaves is named after a second, and the batch is taken back: its sites are
 * as they were, and so are the calls. No task of a test can stand inside an instruction, so the
 * fault bypass_wide makes the beginning of a function a part of its site.
 */
#include <tracer/testing.h>

#include <kernel/lock/mutex.h>
#include <kernel/time.h>
#include <tracer/patch/patch_log.h>
#include <kernel/test/again.h>

#define LINGERS_NS (30 * NSEC_PER_MSEC)

static struct {
	struct task *task;
	u32 inside, may_leave;
} linger;

static void stay_inside(unsigned long x)
{
	(void)x;
	WRITE_ONCE(linger.inside, 1);
	while (!READ_ONCE(linger.may_leave))
		task_sleep(NSEC_PER_MSEC);
}

/* It will return to within 256 bytes of the site of victim_callback(). */
static void linger_main(void *arg)
{
	(void)arg;
	victim_callback(stay_inside, 1);
}

static void let_leave(void *arg)
{
	(void)arg;
	task_sleep(LINGERS_NS);
	WRITE_ONCE(linger.may_leave, 1);
}

/* A task inside. False: the test has failed. */
static bool linger_begin(struct ktest_run *t)
{
	trace_test_reset();
	KEXPECT(t, trace_test_site(victim_call) >= 0);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_callback"),
		   0);
	linger.inside = linger.may_leave = 0;
	linger.task =
		task_create("lingers", PRIO_NORMAL, ~0u, linger_main, NULL);
	if (linger.task && KWAIT(READ_ONCE(linger.inside))) {
		fault_plant(&fault_bypass_wide, 1);
		return true;
	}
	ktest_fail(t, __FILE__, __LINE__, "no task lingers");
	return false;
}

static void linger_end(struct ktest_run *t)
{
	WRITE_ONCE(linger.may_leave, 1);
	task_join(linger.task);
	fault_plant(&fault_bypass_wide, 0);
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_count_off(), site_boot.patched);
}

static void bypass_waits(struct ktest_run *t)
{
	struct task *other;

	if (!linger_begin(t))
		return;
	other = task_create("lets leave", PRIO_NORMAL, ~0u, let_leave, NULL);
	KASSERT(t, other);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	KEXPECT_EQ(t, linger.may_leave, 1);
	KEXPECT_EQ(t, trace_test_count_off(), site_boot.patched - 1);
	task_join(other);
	linger_end(t);
}

KTEST(patch_bypass_waits, "patch.bypass_waits_for_tasks")
{
	trace_test_strategy(t, "bypass", bypass_waits);
}

FAULT_DECLARE(quiesce_blind);

static void let_see(void *arg)
{
	(void)arg;
	task_sleep(NSEC_PER_SEC + LINGERS_NS);
	fault_plant(&fault_quiesce_blind, 0);
}

/* A busy machine: for more than a second no task is met, and none is known to be inside. */
static void bypass_sees_nothing(struct ktest_run *t)
{
	struct task *other;

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_callback"),
		   0);
	fault_plant(&fault_quiesce_blind, 1);
	other = task_create("lets see", PRIO_NORMAL, ~0u, let_see, NULL);
	KASSERT(t, other);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	KEXPECT(t, !READ_ONCE(fault_quiesce_blind.from));
	task_join(other);
	trace_test_reset();
}

KTEST(patch_bypass_blind, "patch.bypass_refuses_by_what_it_saw")
{
	trace_test_strategy(t, "bypass", bypass_sees_nothing);
}

static void bypass_goes_back(struct ktest_run *t)
{
	struct patch_check c;
	u64 start;

	if (!linger_begin(t))
		return;
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, patch_log_start(), 0);
	mutex_unlock(&trace_mutex);
	start = time_ns();
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), -EBUSY);
	KEXPECT(t, time_ns() - start >= NSEC_PER_SEC);
	KEXPECT(t, strstr(trace_test_error, ", lingers, has stood in a site"));
	KEXPECT_EQ(t, trace_test_count_off(), site_boot.patched);
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, patch_log_check(&c), 0);
	patch_log_stop();
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, c.broken, 0);
	KEXPECT_EQ(t, c.batches, 1);
	WRITE_ONCE(linger.may_leave, 1);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	linger_end(t);
}

KTEST(patch_bypass_back, "patch.bypass_is_taken_back")
{
	trace_test_strategy(t, "bypass", bypass_goes_back);
}
