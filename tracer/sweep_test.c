/*
 * Proves, under -icount, that a task preempted at ANY instruction boundary of a
 * site, the live instruction's included, can be held there while the site is
 * switched on or off, and goes on rightly: its call is traced exactly if the
 * live instruction, as it then is or was when executed, says so; its result is
 * right; and every boundary was in fact held.
 *
 * The victim sets a one-shot timer a fixed time ahead, counts down, and calls.
 * One turn more of a loop of two or three instructions moves the deadline by as
 * many across the site. First the countdown is found that makes the timer arrive
 * near the call, then the neighbourhood is swept. task_hold() catches the victim
 * where it is wanted.
 */
#include <tracer/testing.h>

#define BEFORE 64 /* turns fewer than what brings the timer to the call */
#define AFTER 192 /* and more: a clock that ticks in 100 ns, a trampoline */
#define AHEAD_NS (30 * NSEC_PER_USEC)
#define HOLD_NS (2 * NSEC_PER_SEC)

enum phase { COUNTING, CALLED };

static struct victim {
	struct task *task;
	struct timer timer;
	enum phase phase, hit; /* now; when the timer came */
	bool pause, paused;
	unsigned long trials, wrong;
	u32 calls;  /* traced calls; atomic */
	u32 traced; /* of the latest trial */
	unsigned long site;
} v;

static void note_call(unsigned long ip, unsigned long parent,
		      struct trace_ops *ops)
{
	(void)parent, (void)ops;
	if (arch_site_from_return(ip) == v.site)
		__atomic_fetch_add(&v.calls, 1, __ATOMIC_RELAXED);
}
static struct trace_ops note_ops = { trace_entry_call, note_call };

static void note_hit(struct timer *timer)
{
	(void)timer;
	v.hit = READ_ONCE(v.phase);
}

/* `two` turns of two instructions, `three` of three, before the call. */
static noinline void trial(unsigned long two, unsigned long three)
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
	v.wrong += victim_call(x) != x + 3;
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
		trial(mid, 0);
		if (v.hit == COUNTING)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static void sweep(void *arg)
{
	(void)arg;
	while (!task_should_stop()) {
		unsigned int i, turns = find_middle();

		turns -= min(turns, BEFORE + 0u);
		for (i = 0; i < 4 * (BEFORE + AFTER) && !task_should_stop();
		     i++)
			trial(turns + i / 4, i % 4);
	}
}

/* Let the held victim finish its call; then no trial runs until unpause(). */
static bool finish_held(void)
{
	WRITE_ONCE(v.pause, true);
	task_hold(v.task, 0, 0);
	task_release(v.task);
	return KWAIT(READ_ONCE(v.paused));
}

static int switch_site(int site, bool on)
{
	struct patch_batch b;
	int err;

	mutex_lock(&trace_mutex);
	err = patch_site(&b, site, on);
	mutex_unlock(&trace_mutex);
	return err;
}

/* The held victim's stack shows who called it, whatever state its site is in. */
static void expect_caller(struct ktest_run *t, unsigned long pc)
{
	unsigned long pcs[2] = { 0 };
	struct symbol s = { 0 };

	KEXPECT_EQ(t, backtrace_get(v.task->frame, v.task, pcs, 2), 2);
	KEXPECT_EQ(t, pcs[0], pc);
	KEXPECT(t, symbol_at(pcs[1] - 1, &s));
	KEXPECT_EQ(t, s.start, (unsigned long)trial);
}

/*
 * Hold the victim at pc, with the site in state `on`; switch it; release. False
 * if it never stood there: in this state that is no boundary.
 */
static bool hold_and_switch(struct ktest_run *t, int site, unsigned long pc,
			    bool on)
{
	unsigned long live = arch_site_live(site_address(site));
	bool held, traced = pc <= live ? !on : on;

	KEXPECT_EQ(t, switch_site(site, on), 0);
	task_hold(v.task, pc, pc + 1);
	WRITE_ONCE(v.pause, false);
	held = task_wait_held(v.task, HOLD_NS);
	if (!held) {
		task_hold(v.task, 0, 0);
		if (task_wait_held(v.task, NSEC_PER_MSEC))
			held = true;
	}
	if (held) {
		KEXPECT_EQ(t, arch_frame_pc(v.task->frame), pc);
		expect_caller(t, pc);
		KEXPECT_EQ(t, switch_site(site, !on), 0);
		KEXPECT(t, finish_held());
		KEXPECT_EQ(t, v.traced, traced);
	} else {
		WRITE_ONCE(v.pause, true);
		KEXPECT(t, KWAIT(READ_ONCE(v.paused)));
	}
	return held;
}

/*
 * Boundaries are one live instruction's length apart, from the site to what
 * follows it. The one after a call that is on is where the call returns to; a
 * boundary that a jump or a delay slot hides in one state must show in the
 * other, or is none (MIPS's delay slot while off: shown).
 */
static void sweep_site(struct ktest_run *t, int site)
{
	unsigned long start = site_address(site);
	unsigned long length = 0 - arch_site_from_return(0), at;
	unsigned int held = 0, directions = 0, boundaries = 0;

	for (at = 0; at <= length; at += arch_live_length) {
		bool off = hold_and_switch(t, site, start + at, false);
		bool on = hold_and_switch(t, site, start + at, true);

		if (arch_site_hidden >> at / arch_live_length & 1) {
			KEXPECT(t, !off && !on);
			continue;
		}
		boundaries++;
		held += off || on;
		directions += off + on;
		if (start + at == arch_site_live(start))
			KEXPECT(t, off && on);
	}
	KEXPECT_EQ(t, held, boundaries);
	printk("# %u of %u boundaries held, %u switches under a held task\n",
	       held, boundaries, directions);
}

KTEST(sweep_held, "sweep.held_on_the_site")
{
	int site = trace_test_site(victim_call);

	if (!ktest_icount)
		KSKIP(t, "needs -icount: else no interrupt comes between two "
			 "instructions of a block");
	KASSERT(t, site >= 0);
	trace_test_reset();
	v = (struct victim){ .site = site_address(site) };
	timer_setup(&v.timer, note_hit);
	trace_ops = &note_ops;
	v.pause = true;
	v.task = task_create_expendable("victim", PRIO_LOW, 1u << (nr_cpus - 1),
					sweep, NULL);
	KASSERT(t, v.task);
	KEXPECT(t, KWAIT(READ_ONCE(v.paused)));
	sweep_site(t, site);
	task_stop(v.task);
	WRITE_ONCE(v.pause, false);
	task_join(v.task);
	KEXPECT_EQ(t, v.wrong, 0);
	KEXPECT_EQ(t, switch_site(site, false), 0);
	trace_ops = &trace_ops_off;
	trace_test_reset();
}
