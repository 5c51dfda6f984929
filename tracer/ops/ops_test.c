/* SPDX-License-Identifier: MIT */
/*
 * Proves that trace_ops has one owner, and that ops are freed only when no task can
 * call them any more: a task is held at the instructions of the trampolines, its
 * ops are retired meanwhile, and the wait does not end before the task has left
 * (H16, H26). Then the ops are poisoned, and the task goes on.
 */
#include <boot/boot_info.h>
#include <tracer/testing.h>

#include <arch/conform/conform.h>
#include <kernel/cpu/cpu.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/lock/mutex.h>
#include <kernel/sched/balance.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/ops/returns.h>
#include <kernel/sched/hold.h>
#include <kernel/test/again.h>

#define TRIALS (boot_info.icount ? 40u : 24u)
#define STAYS_NS (NSEC_PER_MSEC)

static u32 called, called_late;

/* Retired ops are made to call this: no call may come. */
static void call_poisoned(unsigned long ip, unsigned long parent,
			  struct trace_ops *ops)
{
	(void)ip, (void)parent, (void)ops;
	count_up(&called_late);
}

static void count_ops_call(unsigned long ip, unsigned long parent,
			   struct trace_ops *ops)
{
	(void)ip, (void)parent, (void)ops;
	count_up(&called);
}

static bool ops_test_enter(struct task_return *r, unsigned int depth)
{
	(void)r, (void)depth;
	count_up(&called);
	return true;
}

static void ops_test_leave(struct task_return *r, unsigned int depth)
{
	(void)r, (void)depth;
}

static void leave_poisoned(struct task_return *r, unsigned int depth)
{
	(void)r, (void)depth;
	count_up(&called_late);
}

static void call_until_stopped(void *arg)
{
	u32 *wrong = arg, seed = 3;

	while (!task_should_stop()) {
		/*
		 * The loop's length changes, so that interrupts come at another
		 * instruction each time.
		 */
		for (u32 n = ktest_random(&seed) % 64; n; n--)
			asm volatile("");
		*wrong += victim_outer(5) != 9;
	}
}

/* ---- one that retires its ops, as any client of the tracer would ---- */

static struct {
	struct trace_ops *ops;
	u32 done;
} retiring;

static void retire_ops(void *arg)
{
	(void)arg;
	trace_quiesce(retiring.ops);
	retiring.ops->func = call_poisoned;
	retiring.ops->leave = leave_poisoned;
	__atomic_store_n(&retiring.done, 1, __ATOMIC_RELEASE);
}

static struct {
	u32 held, inside, early, wrong;
	u8 at[2048]; /* by distance from trace_entry: held there */
} seen;

static void note_place(const struct task *v)
{
	unsigned long at = arch_frame_pc(v->frame) - (unsigned long)trace_entry;

	if (at < sizeof(seen.at)) {
		seen.inside += !seen.at[at];
		seen.at[at] = 1;
	}
}

/* Hold the caller in a trampoline, and retire the ops. */
static bool try_once(struct ktest_run *t, struct task *v, bool returns)
{
	struct trace_ops *ops = kmalloc_zeroed(sizeof(*ops));
	struct task *r;

	*ops = (struct trace_ops){
		.entry = returns ? trace_entry_return : trace_entry_call,
		.func = count_ops_call,
		.enter = ops_test_enter,
		.leave = ops_test_leave,
	};
	mutex_lock(&trace_mutex);
	trace_test_ops(ops);
	mutex_unlock(&trace_mutex);
	task_hold(v, (unsigned long)trace_entry, (unsigned long)trampoline_end);
	if (!trace_test_wait_held(v)) {
		ktest_fail(t, __FILE__, __LINE__, "held in a trampoline");
		return false;
	}
	task_hold(v, 0, 0);
	note_place(v);
	mutex_lock(&trace_mutex);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	retiring.ops = ops;
	retiring.done = 0;
	r = task_create("retire", PRIO_NORMAL, ~0u, retire_ops, NULL);
	task_sleep(STAYS_NS);
	seen.held++;
	seen.early += READ_ONCE(retiring.done);
	task_release(v);
	task_join(r);
	task_sleep(STAYS_NS); /* time for a call that comes too late */
	kfree(ops);
	return true;
}

static void retire_often(struct ktest_run *t, bool returns)
{
	struct task *v;

	memset(&seen, 0, sizeof(seen));
	called = called_late = 0;
	v = task_create_expendable("caller", PRIO_LOW, 1u << ktest_last_cpu(),
				   call_until_stopped, &seen.wrong);
	KASSERT(t, v);
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, conform_switch_victims(true), 0);
	mutex_unlock(&trace_mutex);
	for (unsigned int i = 0; i < TRIALS; i++)
		if (!try_once(t, v, returns))
			break;
	mutex_lock(&trace_mutex);
	trace_test_ops(NULL);
	KEXPECT_EQ(t, conform_switch_victims(false), 0);
	mutex_unlock(&trace_mutex);
	task_stop(v);
	KEXPECT_EQ(t, task_join(v), 0);
	KEXPECT_EQ(t, seen.held, TRIALS);
	KEXPECT_EQ(t, seen.early, 0);
	KEXPECT_EQ(t, called_late, 0);
	KEXPECT_EQ(t, seen.wrong, 0);
	KEXPECT(t, called > 0);
	KEXPECT(t, !boot_info.icount || seen.inside > 10);
	printk("# retired %u times, at %u instructions of the trampolines\n",
	       seen.held, seen.inside);
}

KTEST(ops_quiesce, "ops.retired_under_calls")
{
	trace_test_reset();
	retire_often(t, false);
}

KTEST(ops_quiesce_returns, "ops.retired_under_returns")
{
	trace_test_reset();
	retire_often(t, true);
}

/* ---- Tasks that are never at rest, and CPUs that are away ---- */

FAULT_DECLARE(quiesce_misses);

static void quiesce_once(void *arg)
{
	static const struct trace_ops unused = { .entry = trace_entry_off };

	trace_quiesce(&unused);
	__atomic_store_n((u32 *)arg, 1, __ATOMIC_RELEASE);
}

/* Each first look comes while a task goes to sleep: the second one of the round meets it. */
KTEST(ops_misses, "ops.quiesce_looks_again")
{
	struct task *waits;
	u32 done = 0;

	trace_test_reset();
	fault_plant(&fault_quiesce_misses, 1);
	waits = task_create("waits", PRIO_NORMAL, ~0u, quiesce_once, &done);
	KEXPECT(t, waits && KWAIT(READ_ONCE(done)));
	KEXPECT(t, READ_ONCE(fault_quiesce_misses.times));
	fault_plant(&fault_quiesce_misses, 0);
	if (waits)
		task_join(waits);
}

/* With `late`, CPU 1 does not arrive, or does not park: the wait leaves it out. */
static void quiesce_beside(struct ktest_run *t, struct fault *late,
			   int (*change)(unsigned int cpu))
{
	u64 usual = cpu_start_ns;
	struct task *waits;
	u32 done = 0;

	late->cpu = 1;
	fault_plant(late, 1);
	cpu_start_ns = 20 * NSEC_PER_MSEC;
	KEXPECT_EQ(t, change(1), -ETIMEDOUT);
	KEXPECT(t, KWAIT(READ_ONCE(late->times)));
	waits = task_create("waits", PRIO_NORMAL, ~0u, quiesce_once, &done);
	KEXPECT(t, waits && KWAIT(READ_ONCE(done)));
	fault_plant(late, 0);
	late->cpu = 0;
	cpu_start_ns = usual;
	KEXPECT_EQ(t, cpu_up(1), 0);
	if (waits)
		task_join(waits);
}

KTEST(ops_away, "ops.quiesce_beside_late_cpus")
{
	KNEED_TWO(t);
	trace_test_reset();
	quiesce_beside(t, &fault_cpu_park_late, cpu_down);
	KEXPECT_EQ(t, cpu_down(1), 0);
	quiesce_beside(t, &fault_cpu_join_late, cpu_up);
}

/* ---- one owner ---- */

KTEST(ops_owner, "ops.one_owner")
{
	static struct trace_ops ops = { .entry = trace_entry_off };
	int site = trace_test_site(victim_call);
	struct patch_batch b;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, trace_ops_borrow(&ops), -EBUSY);
	mutex_unlock(&trace_mutex);
	trace_test_reset();
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, trace_ops_borrow(&ops), 0);
	KEXPECT_EQ(t, patch_site(&b, site, true), 0);
	mutex_unlock(&trace_mutex);
	/*
	 * No tracer takes trace_ops away from the borrower, nor does switching tracers. No
	 * filter takes its sites.
	 */
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_outer"), 0);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", ""), 0);
	KEXPECT(t, site_test(live_calls.enabled, site));
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), -EBUSY);
	KEXPECT_EQ(t, trace_test_put("tracing_on", "1"), 0);
	KEXPECT(t, trace_ops == &ops);
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, patch_site(&b, site, false), 0);
	trace_ops_give_back();
	mutex_unlock(&trace_mutex);
	KEXPECT(t, trace_ops == &trace_ops_off);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	trace_test_reset();
}
