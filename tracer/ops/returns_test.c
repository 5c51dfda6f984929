/* SPDX-License-Identifier: MIT */
/*
 * Proves of taken returns that they stay balanced. However often the tracer and the
 * sites are switched under calls many levels deep, on tasks that are preempted and
 * moved, each function returns to its caller, and a task that ends has as many taken
 * returns as when it began. With every site of the kernel taken nothing is lost, while
 * tasks and CPUs come and go. A task with no room left calls as if it were not traced.
 */
#include <boot/boot_info.h>
#include <kernel/sched/task_list.h>
#include <arch/conform/conform.h>
#include <kernel/lib/bits.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/shell/shell.h>
#include <kernel/lock/mutex.h>
#include <tracer/ops/returns.h>
#include <tracer/testing.h>
#include <kernel/test/again.h>

/*
 * Atomic. Counted since boot, because a function in which a task sleeps may return in a
 * later test.
 */
static u32 entered, left, out_of_order, wrong;
static u32 gone; /* of those entered: their tasks ended, or began anew */
static u32 deepest;
static u32 begun; /* tasks: their first functions have no return address */

static bool returns_test_enter(struct task_return *r, unsigned int depth)
{
	count_up(&entered);
	if (depth > deepest)
		deepest = depth;
	r->clock = depth;
	return true;
}

static void returns_test_leave(struct task_return *r, unsigned int depth)
{
	if (r->clock != depth)
		count_up(&out_of_order);
	count_up(&left);
}

static struct trace_ops return_ops = {
	.entry = trace_entry_return,
	.enter = returns_test_enter,
	.leave = returns_test_leave,
};

/* ---- the books ---- */

static u32 returns_held_by(const struct task *t)
{
	u32 n = min(READ_ONCE(t->nr_returns), (u32)TASK_RETURNS), sum = 0;

	while (n--)
		sum += t->returns[n].ops == &return_ops;
	return sum;
}

static bool add_returns_held(struct task *t, void *sum)
{
	*(u32 *)sum += returns_held_by(t);
	return true;
}

/* Do the counts add up? They do as soon as no task is in the middle of a trampoline. */
static bool returns_balanced(void)
{
	u32 held = 0;

	task_for_each(add_returns_held, &held);
	return entered - left == held + gone;
}

/* The functions that the task was in when it ended will not return. */
static void join_and_count(struct ktest_run *t, struct task *task)
{
	KEXPECT(t, KWAIT(READ_ONCE(task->state) == TASK_DEAD &&
			 !READ_ONCE(task->on_cpu)));
	gone += returns_held_by(task);
	KEXPECT_EQ(t, task_join(task), 0);
}

static struct {
	u32 entered, missed, refused;
} before;

static void begin_returns_test(void)
{
	trace_test_reset();
	out_of_order = wrong = deepest = begun = 0;
	before.entered = entered;
	before.missed = returns_lost;
	before.refused = returns_refused;
}

static void end_returns_test(struct ktest_run *t)
{
	KEXPECT(t, KWAIT(returns_balanced()));
	KEXPECT(t, entered - before.entered > 0);
	KEXPECT_EQ(t, out_of_order, 0);
	KEXPECT_EQ(t, wrong, 0);
	KEXPECT(t, returns_refused - before.refused <= begun);
	printk("# %u returns taken, %u were missed, %u deep\n",
	       entered - before.entered, returns_lost - before.missed,
	       deepest + 1);
}

static void set_ops(bool on)
{
	trace_test_ops(on ? &return_ops : NULL);
}

/* ---- calls many levels deep ---- */

#define LEVELS 16

/* Each level has two returns to come, beside those of the victims that it calls. */
static void dive_and_check(unsigned long x)
{
	struct victim_pair p = victim_struct(x);
	bool bad = x && victim_callback(dive_and_check, x - 1) != x;

	bad |= victim_outer(x) != x + 4;
	bad |= p.first != x + 1 || p.second != ~0ull - x || p.third != 2 * x;
	bad |= victim_varargs(3, 1, 2, 3) != 6;
	bad |= victim_arguments(1, x, 3, x, 5, x, 7, x, 9, 10) !=
	       victim_arguments_notrace(1, x, 3, x, 5, x, 7, x, 9, 10);
	if (bad)
		count_up(&wrong);
}

struct diver {
	struct task *task;
	u32 kept;
	cpumask_t seen; /* CPUs that it was on */
};

static void dive_on(void *arg)
{
	struct diver *d = arg;
	u32 depth = current_task()->nr_returns;

	while (!task_should_stop()) {
		victim_callback(dive_and_check, LEVELS);
		WRITE_ONCE(d->seen, d->seen | 1u << cpu_index());
		/*
		 * Under -icount the CPUs take turns, and this one gives its turn away.
		 */
		arch_cpu_relax();
	}
	d->kept = current_task()->nr_returns - depth;
}

/* There are two divers for each CPU, so that they preempt each other as well. */
static struct diver divers[2 * MAX_CPUS];

static void start_divers(struct ktest_run *t)
{
	memset(divers, 0, sizeof(divers));
	for (unsigned int i = 0; i < 2 * nr_cpus; i++) {
		divers[i].task = task_create_expendable("diver", PRIO_LOW, ~0u,
							dive_on, &divers[i]);
		KASSERT(t, divers[i].task);
		begun++;
	}
}

static void move_divers(u32 *seed)
{
	for (unsigned int i = 0; i < 2 * nr_cpus; i++)
		task_set_affinity(divers[i].task,
				  1u << ktest_random(seed) % nr_cpus);
}

/* Has each diver been on at least so many CPUs? */
static bool all_seen(unsigned int least)
{
	for (unsigned int i = 0; i < 2 * nr_cpus; i++)
		if (bit_count(READ_ONCE(divers[i].seen)) < least)
			return false;
	return true;
}

static void end_divers(struct ktest_run *t)
{
	for (unsigned int i = 0; i < 2 * nr_cpus; i++) {
		task_stop(divers[i].task);
		join_and_count(t, divers[i].task);
		KEXPECT_EQ(t, divers[i].kept, 0);
	}
}

#define TOGGLES (boot_info.icount ? 24u : 96u)

/*
 * Switches tracer and sites in all orders: both on, only sites, only tracer, both off.
 */
PATCH_TEST(returns_toggle, "returns.toggle_under_load")
{
	u32 seed = 11, n = 0, least = nr_cpus > 1 ? 2 : 1;
	u64 slept = 0, ns;

	begin_returns_test();
	start_divers(t);
	mutex_lock(&trace_mutex);
	/* Sleeps count, and not the clock, as in KWAIT(). */
	while (n < TOGGLES || (!all_seen(least) && slept < KWAIT_NS)) {
		set_ops(n & 1);
		if (n++ % 2 == 0)
			KEXPECT_EQ(t, conform_switch_victims(n & 2), 0);
		move_divers(&seed);
		ns = ktest_random(&seed) % NSEC_PER_MSEC;
		task_sleep(ns);
		slept += ns;
	}
	KEXPECT(t, all_seen(least));
	set_ops(false);
	KEXPECT_EQ(t, conform_switch_victims(false), 0);
	mutex_unlock(&trace_mutex);
	end_divers(t);
	end_returns_test(t);
	KEXPECT_EQ(t, returns_lost, before.missed);
	KEXPECT_EQ(t, returns_refused, before.refused);
}

/*
 * Calls go deeper than there is room: the innermost calls are not taken, and return as
 * always.
 */
KTEST(returns_too_deep, "returns.deeper_than_room")
{
	u32 depth = current_task()->nr_returns;

	begin_returns_test();
	mutex_lock(&trace_mutex);
	set_ops(true);
	KEXPECT_EQ(t, conform_switch_victims(true), 0);
	for (int i = 0; i < 10; i++)
		victim_callback(dive_and_check, TASK_RETURNS + 10);
	KEXPECT_EQ(t, conform_switch_victims(false), 0);
	set_ops(false);
	mutex_unlock(&trace_mutex);
	end_returns_test(t);
	KEXPECT_EQ(t, deepest, TASK_RETURNS - 1);
	KEXPECT(t, returns_lost - before.missed >= 10 * 10);
	KEXPECT_EQ(t, current_task()->nr_returns, depth);
}

/* ---- everything ---- */

static void switch_all(struct ktest_run *t, bool on)
{
	struct patch_batch b;

	mutex_lock(&trace_mutex);
	if (on)
		set_ops(true);
	KEXPECT_EQ(t, trace_test_switch_all(&b, on), 0);
	if (!on)
		set_ops(false);
	mutex_unlock(&trace_mutex);
}

static void dive_briefly(void *arg)
{
	dive_and_check((unsigned long)arg);
	task_sleep(NSEC_PER_MSEC / 10);
	dive_and_check((unsigned long)arg);
}

/* Tasks begin and end while returns are taken in their first and last functions. */
static void make_tasks(struct ktest_run *t)
{
	struct task *task[8];

	for (unsigned int i = 0; i < ARRAY_SIZE(task); i++) {
		task[i] = task_create("brief", PRIO_NORMAL, ~0u, dive_briefly,
				      (void *)(i % 4ul));
		KASSERT(t, task[i]);
		begun++;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(task); i++)
		join_and_count(t, task[i]);
}

/* A CPU that comes back begins its idle task anew. */
static void cycle_cpu(struct ktest_run *t)
{
	unsigned int c = bit_highest(cpus_online);

	if (!c)
		return;
	KEXPECT_EQ(t, cpu_down(c), 0);
	gone += returns_held_by(cpus[c].idle);
	KEXPECT_EQ(t, cpu_up(c), 0);
	begun++;
}

static int drop_text(struct sink *s, const char *text, size_t len)
{
	(void)s, (void)text, (void)len;
	return 0;
}

static void use_shell(struct ktest_run *t)
{
	static struct sink nowhere = { drop_text };

	KEXPECT_EQ(t, shell_run(&nowhere, "ps; cat /proc/interrupts"), 0);
}

PATCH_TEST(returns_everything, "returns.every_site")
{
	begin_returns_test();
	start_divers(t);
	for (unsigned int i = 0; i < 3; i++) {
		switch_all(t, true);
		make_tasks(t);
		use_shell(t);
		if (i != 1)
			cycle_cpu(t);
		switch_all(t, i == 1);
		make_tasks(t);
		if (i == 1)
			switch_all(t, false);
	}
	KEXPECT(t, KWAIT(all_seen(1)));
	end_divers(t);
	end_returns_test(t);
}

/* ---- NMIs ---- */

static u32 nmis;

static void dive_in_nmi(void)
{
	dive_and_check(1);
	count_up(&nmis);
}

static void end_without_calls(void *arg)
{
	(void)arg;
}

/* NMIs come while tasks and interrupts take returns and give them back. */
KTEST(returns_nmi, "returns.nmi")
{
	u64 until = time_ns() + KWAIT_NS;
	u32 sent = 0;

	if (arch_nmi_send(cpu_index()))
		KSKIP(t, "this machine has no NMI");
	begin_returns_test();
	nmis = 0;
	start_divers(t);
	switch_all(t, true);
	WRITE_ONCE(irq_nmi_hook, dive_in_nmi);
	while (READ_ONCE(nmis) < 1000 && time_ns() < until)
		arch_nmi_send(sent++ % nr_cpus);
	WRITE_ONCE(irq_nmi_hook, NULL);
	/* A CPU that answers an interrupt is in no NMI. */
	cpu_call(~0u, end_without_calls, NULL);
	KEXPECT(t, KWAIT(all_seen(1)));
	switch_all(t, false);
	end_divers(t);
	end_returns_test(t);
	KEXPECT(t, nmis >= 1000);
}
