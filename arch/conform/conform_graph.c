/* SPDX-License-Identifier: MIT */
/* Conformance of a port with arch_trace.h: function_graph's trampoline, and the calls that it
 * leaves to C. */
#include <arch/conform/conform.h>

#include <kernel/lock/mutex.h>
#include <tracer/graph/graph.h>
#include <tracer/ops/returns.h>
#include <tracer/ring/ring_control.h>
#include <tracer/sites/sites.h>
#include <tracer/testing.h>
#include <tracer/core/tracer.h>

static u32 asked; /* calls that the trampoline has left to C */

static bool graph_asked(struct task_return *r, unsigned int depth)
{
	asked++;
	return graph_enter(r, depth);
}

static struct trace_ops graph_ops = {
	.entry = trace_entry_graph,
	.enter = graph_asked,
	.leave = graph_leave,
};

/* From now on the rings are empty, and the trampoline may write them or not. */
static void open_rings(bool graph)
{
	ring_record(rings, cpus_present(), true, NULL);
	ring_let_graph(graph);
}

static void graph_begin(struct ktest_run *t)
{
	KEXPECT(t, trace_test_site(victim_call) >= 0);
	trace_test_reset();
	mutex_lock(&trace_mutex);
	graph_session_begin();
	trace_test_ops(&graph_ops);
	KEXPECT_EQ(t, conform_switch_victims(true), 0);
	open_rings(true);
	victim_call(1); /* the task takes part in the session now */
	ring_clear(rings, ~0u);
	asked = 0;
}

static void graph_end(struct ktest_run *t)
{
	KEXPECT_EQ(t, conform_switch_victims(false), 0);
	trace_test_ops(NULL);
	open_rings(false);
	graph_session_end();
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, current_task()->nr_returns, 0);
	KEXPECT_EQ(t, current_task()->graph_depth, 0);
}

/* The trampoline leaves the victims' calls to C where their page is full. */
KTEST(entry_graph, "arch_trace.trace_entry_graph")
{
	struct ring_stats s;

	graph_begin(t);
	conform_expect_kept(t);
	KEXPECT(t, trace_test_books(&s));
	graph_end(t);
	KEXPECT(t, s.written > CONFORM_ROUNDS * 12);
	KEXPECT_EQ(t, s.written % 2, 0);
	/* It also leaves the first call of each function to C: 20 functions at most. */
	KEXPECT(t, asked < s.written / 100 + 20);
}

#define CALLS_MAX 20u

/*
 * Call victim_call(), and return its event. A host that stops the machine for a moment makes the
 * call as long as one that is left to C, or the page too old: then again, a few times. If none is
 * short enough, the test fails.
 */
static const struct ring_event *call_at_once(struct ktest_run *t)
{
	const struct ring_place *at = &arch_this_cpu()->head.ring;
	const struct ring_event *e;
	unsigned int tries = 0;
	u64 start, base;

	do {
		e = (const struct ring_event *)at->cur;
		base = at->base;
		asked = 0;
		start = arch_clock();
		KEXPECT_EQ(t, victim_call(5), 8);
	} while (++tries < CALLS_MAX &&
		 (arch_clock() - start >= RING_TICKS_END ||
		  (arch_clock() - base) >> 32));
	KEXPECT_EQ(t, asked, 0);
	return e;
}

/* One call of victim_call() leaves its event and its return in the ring. */
static void expect_slots(struct ktest_run *t, u32 context)
{
	unsigned long text = (unsigned long)_text;
	u32 ip = site_address(trace_test_site(victim_call)) + arch_site_length -
		 text;
	const struct ring_place *at = &arch_this_cpu()->head.ring;
	const struct ring_event *e;
	struct task *me = current_task();
	/* While interrupts are on, a timer may ask for another task. */
	const int steady =
		context & RING_CONTEXT_IRQS_OFF ? -1 : ~(PREEMPT_RESCHED >> 8);

	me->graph_depth += 3;
	e = call_at_once(t);
	KEXPECT_EQ(t, me->graph_depth, 3);
	KEXPECT_EQ(t, at->cur - (const char *)e, 2 * RING_EVENT_SIZE);
	KEXPECT_EQ(t, e[0].ip, ip << 8 | (context & 0xff));
	KEXPECT_EQ(t, e[0].parent & steady, RING_ENTRY(3) << 8 | context >> 8);
	KEXPECT_EQ(t, e[1].ip, e[0].ip);
	KEXPECT_EQ(t, e[1].parent & steady & 0xff,
		   context >> 8 | RING_RETURNED);
	KEXPECT_EQ(t, RING_RETURN_DEPTH(e[1].parent), 3);
	KEXPECT_EQ(t, RING_RETURN_TICKS(e[1].parent), e[1].delta - e[0].delta);
	me->graph_depth -= 3;
}

/* C code writes a return into two slots where one is too small for it: with a count of calls at
 * which the task was too deep, or with a long time. It also looks whether the ring still has the
 * call. */
static void expect_long(struct ktest_run *t, void (*fn)(unsigned long x),
			u32 missed, u32 least)
{
	const struct ring_place *at = &arch_this_cpu()->head.ring;
	const struct ring_event *e = (const struct ring_event *)at->cur;

	KEXPECT_EQ(t, victim_callback(fn, 5), 6);
	KEXPECT_EQ(t, at->cur - (const char *)e, 3 * RING_EVENT_SIZE);
	KEXPECT_EQ(t, e[1].ip >> 8, RING_RETURN);
	/* C code reads the clock once more for the entry. */
	KEXPECT(t, e[2].delta >= least);
	KEXPECT(t, e[2].delta <= e[1].delta - e[0].delta);
	KEXPECT_EQ(t, e[2].parent, missed << 8);
}

static notrace void take_no_time(unsigned long x)
{
	(void)x;
}

static notrace void take_long(unsigned long x)
{
	u64 start = arch_clock();

	(void)x;
	while (arch_clock() - start < RING_TICKS_END)
		;
}

/* As if the page had been begun after the call. */
static notrace void begin_later(unsigned long x)
{
	u64 start = arch_clock();

	(void)x;
	while (arch_clock() == start)
		;
	arch_this_cpu()->head.ring.base = arch_clock();
}

/* As if the page had been begun 2^33 ticks before. */
static notrace void age_page(unsigned long x)
{
	(void)x;
	arch_this_cpu()->head.ring.base -= 1ull << 33;
}

KTEST(graph_long, "arch_trace.trace_entry_graph.long")
{
	const struct ring_event *e;
	struct task *me = current_task();
	irq_state_t state;

	graph_begin(t);
	state = arch_irq_save();
	victim_callback(take_no_time, 1);
	me->returns_missed = 5;
	expect_long(t, take_no_time, 5, 0);
	me->returns_missed = 0;
	expect_long(t, take_long, 0, RING_TICKS_END);
	e = (const struct ring_event *)arch_this_cpu()->head.ring.cur;
	KEXPECT_EQ(t, victim_callback(begin_later, 5), 6);
	KEXPECT_EQ(t, e[1].ip >> 8, RING_RETURN);
	KEXPECT_EQ(t, victim_callback(age_page, 5), 6);
	/* C has begun another page for the return. */
	KEXPECT(t, arch_clock() - arch_this_cpu()->head.ring.base < 1ull << 32);
	arch_irq_restore(state);
	graph_end(t);
}

KTEST(graph_slots, "arch_trace.trace_entry_graph.slots")
{
	struct cpu_head *head;
	struct ring_place *at;
	irq_state_t state;
	u32 count;

	graph_begin(t);
	victim_call(1); /* its frame is known now */
	preempt_disable();
	victim_call(1);
	expect_slots(t, 1);
	state = arch_irq_save();
	head = &arch_this_cpu()->head;
	count = head->preempt_count;
	for (unsigned int i = 0; i < ARRAY_SIZE(conform_contexts); i++) {
		head->preempt_count = conform_contexts[i];
		expect_slots(t, conform_contexts[i] | RING_CONTEXT_IRQS_OFF);
	}
	head->preempt_count = count;
	asked = 0;
	/* The page's time is 2^32 ticks ago, and more. */
	at = &head->ring;
	at->base -= 1ull << 33;
	KEXPECT_EQ(t, victim_call(5), 8);
	KEXPECT_EQ(t, asked, 1);
	arch_irq_restore(state);
	preempt_enable();
	graph_end(t);
}

/* Each call has its event, and its return. */
KTEST(graph_interrupts, "arch_trace.trace_entry_graph.interrupts")
{
	struct ring_stats s;
	u64 calls;

	graph_begin(t);
	calls = conform_interrupted_calls();
	KEXPECT(t, trace_test_books(&s));
	graph_end(t);
	KEXPECT_EQ(t, s.written, 2 * calls);
}

/* This CPU keeps another function's frame at the place of victim_call()'s. */
KTEST(graph_frame, "arch_trace.trace_entry_graph.frame")
{
	u32 ip = site_address(trace_test_site(victim_call)) + arch_site_length;
	struct frame_kept *f;
	irq_state_t state;

	graph_begin(t);
	state = arch_irq_save();
	f = &arch_this_cpu()->head.frames[ip / FRAME_KEPT_SIZE % FRAMES_KEPT];
	*f = (struct frame_kept){ ip + FRAME_KEPT_SIZE * FRAMES_KEPT, 64, 32 };
	KEXPECT_EQ(t, victim_call(5), 8);
	KEXPECT_EQ(t, (u32)current_task()->returns[0].ip, ip);
	KEXPECT(t, !asked || (f->ip == ip && f->cfa < 64));
	arch_irq_restore(state);
	graph_end(t);
}

/* C decides where the trampoline is closed, or where there is no room for a return. */
KTEST(graph_asks, "arch_trace.trace_entry_graph.asks")
{
	struct task *me = current_task();
	irq_state_t state;

	graph_begin(t);
	state = arch_irq_save();
	me->nr_returns = TASK_RETURNS;
	KEXPECT_EQ(t, victim_call(5), 8);
	me->nr_returns = 0;
	arch_irq_restore(state);
	KEXPECT_EQ(t, me->returns_missed, 1);
	me->returns_missed = 0;
	KEXPECT_EQ(t, asked, 0);
	open_rings(false);
	KEXPECT_EQ(t, victim_call(5), 8);
	KEXPECT_EQ(t, asked, 1);
	graph_end(t);
}

/* A depth from an earlier session counts no more: C forgets it. */
KTEST(graph_session, "arch_trace.trace_entry_graph.session")
{
	struct task *me = current_task();

	graph_begin(t);
	me->graph_session--;
	me->graph_depth = 7;
	me->returns_missed = 7;
	KEXPECT_EQ(t, victim_call(5), 8);
	KEXPECT_EQ(t, asked, 1);
	KEXPECT_EQ(t, me->graph_session, graph_session);
	KEXPECT_EQ(t, me->returns_missed, 0);
	graph_end(t);
}

static u32 others_left; /* returns that ops of others have heard of */

static void leave_other(struct task_return *r, unsigned int depth)
{
	(void)r, (void)depth;
	others_left++;
}

static struct trace_ops other_ops = {
	.entry = trace_entry_return,
	.leave = leave_other,
};

/* As if other ops had taken this call, while function_graph's may write. */
static notrace void give_to_others(unsigned long x)
{
	struct task *me = current_task();

	(void)x;
	me->returns[me->nr_returns - 1].ops = &other_ops;
	me->graph_depth--;
}

KTEST(graph_others, "arch_trace.trace_return.others")
{
	const struct ring_place *at;
	const char *before;
	irq_state_t state;

	graph_begin(t);
	state = arch_irq_save();
	at = &arch_this_cpu()->head.ring;
	victim_callback(take_no_time, 1);
	others_left = 0;
	before = at->cur;
	KEXPECT_EQ(t, victim_callback(give_to_others, 5), 6);
	KEXPECT_EQ(t, others_left, 1);
	KEXPECT_EQ(t, at->cur - before, RING_EVENT_SIZE);
	arch_irq_restore(state);
	graph_end(t);
}

static notrace void enter_nmi(unsigned long x)
{
	(void)x;
	arch_this_cpu()->head.preempt_count |= PREEMPT_NMI;
}

/* A call and a return in an NMI, which may have interrupted a writer of the ring, are lost. */
KTEST(graph_nmi, "arch_trace.trace_entry_graph.nmi")
{
	struct ring_stats s;
	irq_state_t state;

	if (conform_nmi() == -ENOSYS)
		KSKIP(t, "this machine has no NMI");
	graph_begin(t);
	state = arch_irq_save();
	enter_nmi(0);
	KEXPECT_EQ(t, victim_call(5), 8);
	arch_this_cpu()->head.preempt_count &= ~PREEMPT_NMI;
	KEXPECT_EQ(t, victim_callback(enter_nmi, 5), 6);
	arch_this_cpu()->head.preempt_count &= ~PREEMPT_NMI;
	arch_irq_restore(state);
	KEXPECT(t, trace_test_books(&s));
	graph_end(t);
	KEXPECT_EQ(t, s.held, 1);
	KEXPECT_EQ(t, s.dropped, 2);
}
