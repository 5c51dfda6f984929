/* SPDX-License-Identifier: MIT */
/*
 * Proves of everything that takes returns, or could take them for its own, that one can follow
 * another at any moment: a task is held in the trampolines with the ops of the first, and goes
 * on under the second. Its depth is right afterwards, each return in the buffer belongs to a call
 * there, and no call of the first is recorded for the second. And a recording stops at once.
 */
#include <tracer/testing.h>

#include <boot/boot_info.h>
#include <kernel/image/symbols.h>
#include <kernel/sched/balance.h>
#include <kernel/sched/hold.h>
#include <kernel/time.h>
#include <tracer/graph/graph.h>
#include <tracer/ring/ring_read.h>
#include <kernel/test/again.h>

/* The takers of calls and returns. The sites of the victims are on for each of them, and for no
 * other function. */
static const struct taker {
	const char *name, *tracer, *profile, *stack, *depth;
	void (*entry)(void);
	bool takes; /* returns */
} takers[] = {
	{ "graph", "function_graph", "0", "0", "0", trace_entry_graph, true },
	{ "graph in C", "function_graph", "0", "1", "0", trace_entry_return,
	  true },
	{ "graph with a limit", "function_graph", "0", "0", "9",
	  trace_entry_graph, true },
	{ "profiler", "nop", "1", "0", "0", trace_entry_return, true },
	{ "profiler, function", "function", "1", "0", "0", trace_entry_return,
	  true },
	{ "function", "function", "0", "0", "0", trace_entry_ring, false },
	{ "stack tracer", "nop", "0", "1", "0", trace_entry_call, false },
}, nothing = { "nothing", "nop", "0", "0", "0", trace_entry_off, false };

#define STACK "/proc/sys/kernel/stack_tracer_enabled"
#define SMALL_KB 16
#define VICTIMS "victim_outer victim_call"

/* From any of them to another. */
static void select_taker(struct ktest_run *t, const struct taker *taker)
{
	char error[160];

	if (*taker->profile == '0')
		KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "0"),
			   0);
	KEXPECT_EQ(t, ctl_echo(STACK, taker->stack, false, error, 160), 0);
	KEXPECT_EQ(t, trace_test_put("max_graph_depth", taker->depth), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", taker->tracer), 0);
	if (*taker->profile == '1')
		KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "1"),
			   0);
}

/* ---- The task that calls ---- */

static struct {
	struct task *task;
	bool masks; /* interrupts, while it calls */
	u32 calls, wrong, deep;
} caller;

static void call_at_random_times(void *arg)
{
	struct task *me = current_task();
	irq_state_t state;
	u32 seed = 3;

	(void)arg;
	while (!task_should_stop()) {
		/* So that interrupts come at another instruction each time. */
		for (u32 n = ktest_random(&seed) % 64; n; n--)
			asm volatile("");
		state = caller.masks ? arch_irq_save() : (irq_state_t){ 0 };
		caller.wrong += victim_outer(5) != 9;
		if (caller.masks)
			arch_irq_restore(state);
		caller.deep +=
			me->nr_returns ||
			(me->graph_depth && me->graph_session == graph_session);
		count_up(&caller.calls);
	}
}

/* Calls that began after this. */
static bool makes_calls(void)
{
	u32 now = READ_ONCE(caller.calls);

	return KWAIT(READ_ONCE(caller.calls) - now > 3);
}

/* ---- Contents of the buffer ---- */

static bool is_outer(const struct ring_entry *e)
{
	struct symbol s;

	return symbol_at(e->ip, &s) && s.start == (unsigned long)victim_outer;
}

/* Each call but the last has its return, and each return its call, which took no longer than the
 * clock says. The outer one has the inner one. The oldest call of all may have been overwritten. */
static u32 odd_entries(bool functions)
{
	struct trace_iter *it = trace_iter_open(rings, cpus_present(), true);
	const struct ring_entry *e;
	u64 began[2] = { 0 };
	u32 odd = 0, inner = 0;
	bool begun = false;

	for (; it && (e = trace_iter_peek(it)); trace_iter_next(it)) {
		if (e->pid != caller.task->pid)
			continue;
		odd += !e->graph && !functions;
		begun |= e->graph == RING_GRAPH_ENTRY && is_outer(e);
		if (!e->graph || !begun)
			continue;
		if (e->depth > 1)
			odd++;
		else if (e->graph == RING_GRAPH_ENTRY) {
			odd += began[e->depth] != 0;
			began[e->depth] = e->clock;
			inner = e->depth ? inner + 1 : 0;
		} else if (!began[e->depth] ||
			   e->ticks > e->clock - began[e->depth])
			odd++;
		else {
			odd += !e->depth && inner != 1;
			began[e->depth] = 0;
		}
	}
	trace_iter_close(it);
	return odd;
}

/* Hold the caller at a pc in [lo, hi) under `from`, and let it go on under `to`. */
static void follow_takers(struct ktest_run *t, const struct taker *from,
			  const struct taker *to, unsigned long lo,
			  unsigned long hi)
{
	u32 failures = t->failures;

	caller.deep = caller.wrong = 0;
	select_taker(t, from);
	KEXPECT_EQ(t, trace_test_put("trace", ""), 0);
	KEXPECT(t, makes_calls());
	task_hold(caller.task, lo, hi);
	KASSERT(t, trace_test_wait_held(caller.task));
	task_hold(caller.task, 0, 0);
	lo = arch_frame_pc(caller.task->frame);
	select_taker(t, to);
	task_release(caller.task);
	KEXPECT(t, makes_calls());
	KEXPECT_EQ(t, trace_test_put("tracing_on", "0"), 0);
	KEXPECT_EQ(t, odd_entries(!strcmp(to->tracer, "function")), 0);
	KEXPECT_EQ(t, trace_test_put("tracing_on", "1"), 0);
	KEXPECT_EQ(t, caller.deep, 0);
	KEXPECT_EQ(t, caller.wrong, 0);
	if (t->failures != failures)
		printk("# from %s at %pS to %s\n", from->name, (void *)lo,
		       to->name);
}

/* ---- Each after each other ---- */

/* Bytes of a trampoline's first instructions, which an interrupt meets soon. */
#define FIRST_BYTES 64

/* The caller is held at the first instructions of `from`, or of the return's trampoline, or at
 * any one of all trampolines: another place for the next pair. */
static void follow_pair(struct ktest_run *t, unsigned int a, unsigned int b)
{
	const struct taker *from = &takers[a];
	unsigned long lo = (unsigned long)trace_entry,
		      hi = (unsigned long)trampoline_end;

	/* Without -icount QEMU interrupts between blocks only, which are few. */
	if (boot_info.icount && (a + b) % 3 == 0) {
		lo = (unsigned long)from->entry;
		hi = lo + FIRST_BYTES;
	} else if (boot_info.icount && (a + b) % 3 == 1 && from->takes) {
		lo = (unsigned long)trace_return;
		hi = lo + FIRST_BYTES;
	}
	follow_takers(t, from, &takers[b], lo, hi);
}

static bool begin_takers(struct ktest_run *t, bool masks)
{
	caller.masks = masks;
	trace_test_reset();
	trace_test_size(SMALL_KB); /* for all of it is read each time */
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", VICTIMS), 0);
	KEXPECT_EQ(t, trace_test_put("stack_trace_filter", VICTIMS), 0);
	caller.task = task_create_expendable("caller", PRIO_LOW,
					     1u << ktest_last_cpu(),
					     call_at_random_times, NULL);
	return caller.task;
}

static void end_takers(struct ktest_run *t)
{
	task_stop(caller.task);
	KEXPECT_EQ(t, task_join(caller.task), 0);
	select_taker(t, &nothing);
	KEXPECT_EQ(t, trace_test_put("stack_trace_filter", ""), 0);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}

KTEST(takers_pairs, "returns.each_taker_after_each")
{
	KNEED_CLIENT(t, "profiler");
	KASSERT(t, begin_takers(t, false));
	for (unsigned int a = 0; a < ARRAY_SIZE(takers); a++)
		for (unsigned int b = 0; b < ARRAY_SIZE(takers); b++)
			if (a != b && !t->failures)
				follow_pair(t, a, b);
	end_takers(t);
}

/* The caller's CPU hears that the recording stops when it has made some more calls. */
KTEST(takers_stop, "returns.recording_stops_at_once")
{
	KNEED_CLIENT(t, "profiler");
	KASSERT(t, begin_takers(t, true));
	for (unsigned int i = 0; i < 3; i++) {
		select_taker(t, &takers[i]);
		for (unsigned int turn = 0; turn < 20; turn++) {
			KEXPECT_EQ(t, trace_test_put("trace", ""), 0);
			KEXPECT_EQ(t, trace_test_put("tracing_on", "1"), 0);
			KEXPECT(t, makes_calls());
			KEXPECT_EQ(t, trace_test_put("tracing_on", "0"), 0);
			KEXPECT_EQ(t, odd_entries(false), 0);
		}
	}
	KEXPECT_EQ(t, trace_test_put("tracing_on", "1"), 0);
	end_takers(t);
}
