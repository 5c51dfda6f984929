/* SPDX-License-Identifier: MIT */
/*
 * Proves of RECORD=runtime, under -icount: a task that is preempted at ANY instruction
 * boundary of a compiled call can be held there while the call is converted into a
 * site, and goes on rightly. Its stack meanwhile shows its caller. Every boundary was
 * in fact held. (Sites that boot converts have no task in them. Switching them is the
 * lab's subject.)
 *
 * The victim sets a one-shot timer a fixed time ahead, counts down, and calls. One turn
 * more of a loop of two or three instructions moves the deadline by as many across the
 * call. First the countdown is found that makes the timer arrive near the call, then
 * the neighbourhood is swept. task_hold() catches the victim where it is wanted.
 */
#include <boot/boot_info.h>
#include <tracer/testing.h>
#include <tracer/record/record.h>

#include <kernel/test/record_victim.h>
#include <kernel/image/unwind.h>
#include <kernel/sched/balance.h>
#include <kernel/sched/hold.h>
#include <kernel/test/again.h>

#define BEFORE 64 /* turns fewer than bring the timer to the call */
#define AFTER 192 /* and more: a clock that ticks in 100 ns, a trampoline */
#define AHEAD_NS (30 * NSEC_PER_USEC)
#define HOLD_NS (4 * NSEC_PER_SEC)

enum phase { COUNTING, CALLED };

static struct victim {
	struct task *task;
	unsigned long (*call)(unsigned long x); /* returns x + adds */
	unsigned long adds;
	struct timer timer;
	enum phase phase, hit; /* now, when the timer came */
	bool pause, paused;
	unsigned long trials, wrong;
	u32 calls;  /* traced calls, atomic */
	u32 traced; /* of the latest trial */
	unsigned long site;
} v;

static void note_sweep_call(unsigned long ip, unsigned long parent,
			    struct trace_ops *ops)
{
	(void)parent, (void)ops;
	if (ip - arch_site_length == v.site)
		count_up(&v.calls);
}
static struct trace_ops note_ops = { .entry = trace_entry_call,
				     .func = note_sweep_call };

static void note_sweep_hit(struct timer *timer)
{
	(void)timer;
	v.hit = READ_ONCE(v.phase);
}

/* `two` turns of two instructions, `three` of three, before the call. */
static noinline void try_sweep(unsigned long two, unsigned long three)
{
	u32 before = v.calls;
	unsigned long x = v.trials, spread = x * 37 % 101;

	/* The clock's tick is several instructions: begin anywhere in it. */
	while (spread--)
		asm volatile("");
	WRITE_ONCE(v.phase, COUNTING);
	timer_start(&v.timer, AHEAD_NS);
	while (two--)
		asm volatile("");
	while (three--)
		asm volatile("nop");
	v.wrong += v.call(x) != x + v.adds;
	WRITE_ONCE(v.phase, CALLED);
	timer_cancel(&v.timer);
	v.traced = v.calls - before;
	WRITE_ONCE(v.trials, v.trials + 1);
	while (READ_ONCE(v.pause) && !task_should_stop()) {
		WRITE_ONCE(v.paused, true);
		task_sleep(NSEC_PER_MSEC / 10);
	}
	WRITE_ONCE(v.paused, false);
}

/* The fewest turns with which the timer comes before the call's end. */
static unsigned int find_middle(void)
{
	unsigned int lo = 0, hi = 2 * AHEAD_NS, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		v.hit = CALLED;
		try_sweep(mid, 0);
		if (v.hit == COUNTING)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static void sweep_victims(void *arg)
{
	(void)arg;
	while (!task_should_stop()) {
		unsigned int i, turns = find_middle();

		turns -= min(turns, BEFORE + 0u);
		for (i = 0; i < 4 * (BEFORE + AFTER) && !task_should_stop();
		     i++)
			try_sweep(turns + i / 4, i % 4);
	}
}

/* Let the held victim finish its call, then no trial runs until unpause(). */
static bool finish_held(void)
{
	WRITE_ONCE(v.pause, true);
	task_hold(v.task, 0, 0);
	task_release(v.task);
	return KWAIT(READ_ONCE(v.paused));
}

/* The held victim's stack shows its caller in each state of the site. */
static void expect_caller(struct ktest_run *t, unsigned long pc)
{
	unsigned long pcs[2] = { 0 };
	struct symbol s = { 0 };

	KEXPECT_EQ(t, backtrace_get(v.task->frame, v.task, pcs, 2), 2);
	KEXPECT_EQ(t, pcs[0], pc);
	KEXPECT(t, symbol_at(pcs[1] - 1, &s));
	KEXPECT_EQ(t, s.start, (unsigned long)try_sweep);
}

static void start_victim(struct ktest_run *t,
			 unsigned long (*call)(unsigned long x),
			 unsigned long adds)
{
	v = (struct victim){ .call = call, .adds = adds, .pause = true };
	timer_setup(&v.timer, note_sweep_hit);
	mutex_lock(&trace_mutex);
	trace_test_ops(&note_ops);
	mutex_unlock(&trace_mutex);
	v.task = task_create_expendable("victim", PRIO_LOW,
					1u << ktest_last_cpu(), sweep_victims,
					NULL);
	KASSERT(t, v.task);
	KEXPECT(t, KWAIT(READ_ONCE(v.paused)));
}

static void stop_sweep_victim(struct ktest_run *t)
{
	task_stop(v.task);
	WRITE_ONCE(v.pause, false);
	task_join(v.task);
	KEXPECT_EQ(t, v.wrong, 0);
}

/* Hold the victim in the compiled call, `at` bytes into it, and convert it. */
static bool hold_and_convert(struct ktest_run *t, unsigned int n,
			     unsigned long offset, unsigned long at)
{
	unsigned long pc;
	bool held;

	v.call = record_victim[n];
	v.adds = n;
	v.site = (unsigned long)v.call + offset;
	pc = v.site + at;
	KEXPECT(t, site_find(v.site) < 0);
	task_hold(v.task, pc, pc + 1);
	WRITE_ONCE(v.pause, false);
	held = task_wait_held(v.task, HOLD_NS);
	if (held) {
		/* In a delay slot, it goes on with the jump. */
		unsigned long resumes = arch_frame_pc(v.task->frame);

		KEXPECT_EQ(t, arch_frame_boundary(v.task->frame), pc);
		expect_caller(t, resumes);
		site_recorder.learn();
		KEXPECT(t, site_find(v.site) >= 0);
		expect_caller(t, resumes);
	}
	KEXPECT(t, finish_held());
	KEXPECT_EQ(t, v.traced, 0);
	return held;
}

/* Is it inside the live instruction, whose live part may be shorter? No task stands there. */
static bool lies_inside(unsigned long site, unsigned long at)
{
	struct live l = live_of_site(site);
	struct trap_frame f = { 0 };

	arch_frame_set_pc(&f, l.at);
	arch_break_resume(&f, l, false);
	return at > l.at && at < arch_frame_pc(&f);
}

KTEST(record_sweep, "record.converts_under_held_task")
{
	unsigned long length = arch_site_length, offset, at;
	unsigned int n = 1, held = 0, boundaries = 0;
	int site;

	if (!boot_info.icount || sites_all_known)
		KSKIP(t, "needs -icount and RECORD=runtime");
	if (trace_test_site(record_victim[n + 1]) >= 0)
		KSKIP(t, "already met in this boot");
	trace_test_reset();
	record_victim[n](1);
	site_recorder.learn();
	site = trace_test_site(record_victim[n]);
	KASSERT(t, site >= 0);
	/* All of them are the same up to the number that they add. */
	offset = site_address(site) - (unsigned long)record_victim[n];
	start_victim(t, record_victim[n], n);
	for (at = 0; at <= length; at += arch_live_length) {
		if (lies_inside(site_address(site), site_address(site) + at))
			continue;
		boundaries++;
		held += hold_and_convert(t, ++n, offset, at);
	}
	stop_sweep_victim(t);
	KEXPECT_EQ(t, held, boundaries);
	printk("# %u of %u boundaries held while converted\n", held,
	       boundaries);
	mutex_lock(&trace_mutex);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	trace_test_reset();
}
