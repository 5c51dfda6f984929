/* SPDX-License-Identifier: MIT */
/*
 * Proves that a task that was preempted anywhere in functions whose return addresses are taken, in
 * the trampolines, or in functions that these call has the same backtrace as with no return taken
 * (H20).
 *
 * The victim sets a one-shot timer, counts down, and calls: each trial counts a little
 * more or less, so that under -icount the timer comes at any instruction from the first
 * call to the last return. The victim is held there, and its callers are compared with
 * the one possible chain.
 */
#include <boot/boot_info.h>
#include <tracer/testing.h>

#include <arch/conform/conform.h>
#include <kernel/image/symbols.h>
#include <kernel/image/unwind.h>
#include <kernel/lock/mutex.h>
#include <kernel/sched/balance.h>
#include <tracer/ops/returns.h>
#include <kernel/sched/hold.h>
#include <kernel/test/again.h>

/* When the timer is due. The victim counts turns until then. On a host's clock some of that time is
 * gone before it begins. */
#define AHEAD_NS ((boot_info.icount ? 4 : 30) * NSEC_PER_USEC)
/*
 * This limit finds hangs. Without -icount a busy host lets seconds pass between two
 * hits.
 */
#define HOLD_NS (60 * NSEC_PER_SEC)
#define TRIALS (boot_info.icount ? 1500u : 200u)
#define BEFORE 64 /* turns fewer than bring the timer to the end */
#define AFTER 900 /* and more: all instructions of a trial's calls */

static struct victim {
	struct task *task;
	struct timer timer;
	bool called,
		hit_before; /* the calls are over, were not, at the timer */
	bool hit;	    /* the timer has come */
	u32 wrong, taken;
} v;

static bool walk_test_enter(struct task_return *r, unsigned int depth)
{
	(void)r, (void)depth;
	v.taken += current_task() == v.task;
	return current_task() == v.task;
}

static void walk_test_leave(struct task_return *r, unsigned int depth)
{
	(void)r, (void)depth;
}

static struct trace_ops walk_ops = {
	.entry = trace_entry_return,
	.enter = walk_test_enter,
	.leave = walk_test_leave,
};

/* ---- the victim ---- */

static void note_timer_hit(struct timer *timer)
{
	(void)timer;
	v.hit_before = !READ_ONCE(v.called);
	WRITE_ONCE(v.hit, true);
}

static noinline void walk_middle(unsigned long x)
{
	v.wrong += victim_outer(x) != x + 4;
	v.wrong += victim_leaf(x) != x + 1;
}

/*
 * The victim is held in its calls, and nowhere else. A host's clock is too coarse for one chosen
 * instruction, so there the victim calls until the timer comes.
 */
static noinline void walk_trial(unsigned long turns, unsigned long hold)
{
	struct task *me = current_task();

	WRITE_ONCE(v.called, false);
	WRITE_ONCE(v.hit, false);
	timer_start(&v.timer, AHEAD_NS);
#pragma GCC unroll 1 /* an instruction a turn, at least */
	while (turns--)
		asm volatile("");
	task_hold(me, hold, hold ? (unsigned long)_etext : 0);
	do
		v.wrong += victim_callback(walk_middle, 5) != 6;
	while (hold && !boot_info.icount && !READ_ONCE(v.hit));
	task_hold(me, 0, 0);
	WRITE_ONCE(v.called, true);
	timer_cancel(&v.timer);
}

/* The fewest turns with which the timer comes before the calls' end. */
static unsigned int find_end(void)
{
	unsigned int lo = 0, hi = 2 * AHEAD_NS, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		v.hit_before = false;
		walk_trial(mid, 0);
		if (v.hit_before)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static noinline void walk_main(void *arg)
{
	u32 seed = 5;

	(void)arg;
	while (!task_should_stop()) {
		unsigned int turns = find_end();

		turns -= min(turns, BEFORE + 0u);
		for (int i = 0; i < 256 && !task_should_stop(); i++)
			walk_trial(turns + ktest_random(&seed) %
						   (BEFORE + AFTER),
				   (unsigned long)_text);
	}
}

/* ---- where it is ---- */

/* Innermost first: a task inside one of these has all that follow as its callers. */
static const char *const chain[] = {
	"victim_last_call", "victim_call", "victim_outer", "walk_middle",
	"victim_callback",  "walk_trial",  "walk_main",	   "task_start",
};

static int link_of(unsigned long pc)
{
	struct symbol s;

	if (symbol_at(pc, &s))
		for (unsigned int i = 0; i < ARRAY_SIZE(chain); i++)
			if (!strcmp(s.name, chain[i]))
				return i;
	return -1;
}

/* Functions that the chain calls, and that are no part of it, come first. */
static bool is_chain(const unsigned long *pcs, unsigned int n)
{
	unsigned int i = 0;
	int link = link_of(pcs[0]);

	while (link < 0 && ++i < n)
		link = link_of(pcs[i] - 1);
	if (link < 0)
		return false;
	while (++i < n)
		if (link_of(pcs[i] - 1) != ++link)
			return false;
	return link == ARRAY_SIZE(chain) - 1;
}

#define DEPTH 16
#define PLACES 256

/* The callers that the walk showed when no return was taken, by pc. */
static struct place {
	unsigned long pcs[DEPTH];
	unsigned int n;
} places[PLACES];
static unsigned int nr_places;

static struct {
	bool taken; /* returns are */
	u32 held, compared, inside, bad;
} walk;

static bool same_place(const struct place *a, const struct place *b)
{
	return a->n == b->n && !memcmp(a->pcs, b->pcs, a->n * sizeof(*a->pcs));
}

/*
 * Where the victim was also held with no return taken, the two walks are equal word for
 * word.
 */
static bool is_right(const struct place *p)
{
	for (unsigned int i = 0; i < nr_places; i++) {
		if (places[i].pcs[0] != p->pcs[0])
			continue;
		walk.compared++;
		return same_place(&places[i], p);
	}
	/* In an epilogue the port decides which callers are shown. Elsewhere there is a rule. */
	if (walk.taken)
		return link_of(p->pcs[0]) >= 0 || is_chain(p->pcs, p->n);
	if (nr_places < PLACES)
		places[nr_places++] = *p;
	return true;
}

static void look_at_held_task(const struct task *task)
{
	struct place p = { 0 };
	unsigned long pc = arch_frame_pc(task->frame);

	p.n = backtrace_get(task->frame, task, p.pcs, DEPTH);
	walk.held++;
	walk.inside += pc >= (unsigned long)trace_entry &&
		       pc < (unsigned long)trampoline_end;
	if (is_right(&p) || walk.bad++ >= 3)
		return;
	for (unsigned int i = 0; i < p.n; i++)
		printk("# %u: %pS\n", i, (void *)p.pcs[i]);
}

/* The victim may be held more than once until it ends. */
static void stop_walk_victim(struct ktest_run *t)
{
	task_stop(v.task);
	while (READ_ONCE(v.task->state) != TASK_DEAD)
		if (task_wait_held(v.task, TICK_NS))
			task_release(v.task);
	KEXPECT_EQ(t, task_join(v.task), 0);
}

static void hold_often(struct ktest_run *t, bool taken)
{
	bool held = true;

	memset(&walk, 0, sizeof(walk));
	walk.taken = taken;
	v = (struct victim){ 0 };
	timer_setup(&v.timer, note_timer_hit);
	v.task = task_create_expendable(
		"walked", PRIO_LOW, 1u << ktest_last_cpu(), walk_main, NULL);
	KASSERT(t, v.task);
	while (held && walk.held < TRIALS) {
		held = task_wait_held(v.task, HOLD_NS);
		if (held) {
			look_at_held_task(v.task);
			task_release(v.task);
		}
	}
	KEXPECT(t, held);
	stop_walk_victim(t);
	KEXPECT_EQ(t, v.wrong, 0);
	KEXPECT_EQ(t, walk.bad, 0);
	printk("# held %u times, %u in trampolines, %u compared\n", walk.held,
	       walk.inside, walk.compared);
}

KTEST(returns_walk, "returns.backtrace_of_preempted")
{
	trace_test_reset();
	nr_places = 0;
	hold_often(t, false);
	mutex_lock(&trace_mutex);
	trace_test_ops(&walk_ops);
	KEXPECT_EQ(t, conform_switch_victims(true), 0);
	hold_often(t, true);
	KEXPECT_EQ(t, conform_switch_victims(false), 0);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	KEXPECT(t, v.taken > 0);
	KEXPECT(t, !boot_info.icount || (walk.compared && walk.inside));
}
