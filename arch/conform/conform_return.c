/* SPDX-License-Identifier: MIT */
/*
 * Conformance of a port with arch_trace.h: taking a function's return address and
 * giving it back. What a backtrace shows meanwhile is part of it (H20).
 */
#include <arch/conform/conform.h>

#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/image/unwind.h>
#include <kernel/lock/mutex.h>
#include <tracer/graph/graph.h>
#include <tracer/core/returns.h>
#include <tracer/ring/ring_control.h>
#include <tracer/sites/sites.h>
#include <tracer/testing.h>
#include <tracer/core/tracer.h>

static u32 entered, left, out_of_order;
static struct task *subject;

/* Uses all registers that a called function may change. */
static void use_registers(const struct task_return *r)
{
	char text[40];

	snprintf(text, sizeof(text), "%lx %lx %d", r->ip, r->ret, 12345);
}

static bool conform_return_enter(struct task_return *r, unsigned int depth)
{
	use_registers(r);
	if (current_task() != subject)
		return false;
	r->clock = depth;
	entered++;
	return true;
}

static void conform_return_leave(struct task_return *r, unsigned int depth)
{
	use_registers(r);
	out_of_order += r->clock != depth;
	left++;
}

static struct trace_ops return_ops = {
	.entry = trace_entry_return,
	.enter = conform_return_enter,
	.leave = conform_return_leave,
};

/* Begins a test that calls victims whose returns are taken. */
static void begin_taking_returns(struct ktest_run *t)
{
	entered = left = out_of_order = 0;
	subject = current_task();
	KEXPECT(t, trace_test_site(victim_call) >= 0);
	mutex_lock(&trace_mutex);
	trace_test_ops(&return_ops);
	KEXPECT_EQ(t, conform_switch_victims(true), 0);
}

static void end_taking_returns(struct ktest_run *t)
{
	KEXPECT_EQ(t, conform_switch_victims(false), 0);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
}

/* Every victim, of every shape that ABIs know, interrupts on and off. */
KTEST(entry_return, "arch_trace.trace_entry_return")
{
	u32 depth = current_task()->nr_returns;

	begin_taking_returns(t);
	conform_expect_kept(t);
	end_taking_returns(t);
	KEXPECT(t, entered > CONFORM_ROUNDS * 6);
	KEXPECT_EQ(t, entered, left);
	KEXPECT_EQ(t, out_of_order, 0);
	KEXPECT_EQ(t, current_task()->nr_returns, depth);
}

/*
 * Where a function keeps its return address at its site is as the table says, or
 * where the port's trampoline does. Taken at the wrong place, the function would
 * return without trace_returned() hearing of it.
 */
KTEST(link_below, "arch_trace.arch_link_below")
{
	begin_taking_returns(t);
	conform_expect_values(t);
	KEXPECT_EQ(t, victim_leaf(1), 2);
	KEXPECT_EQ(t, current_task()->nr_returns, 0);
	end_taking_returns(t);
	KEXPECT(t, entered > 6);
	KEXPECT_EQ(t, entered, left);
}

static unsigned long callee_frame, taken_cfa;

static noinline notrace void note_callee_frame(unsigned long x)
{
	const struct task *me = current_task();
	const struct task_return *r = &me->returns[me->nr_returns - 1];

	(void)x;
	callee_frame = (unsigned long)__builtin_dwarf_cfa();
	taken_cfa = r->cfa;
}

/* The taken return's CFA lies between its callee's frame and its caller's. */
KTEST(return_cfa, "returns.cfa")
{
	unsigned long mine = (unsigned long)__builtin_dwarf_cfa();

	begin_taking_returns(t);
	victim_callback(note_callee_frame, 1);
	end_taking_returns(t);
	KEXPECT_EQ(t, entered, 1);
	KEXPECT(t, taken_cfa >= callee_frame);
	KEXPECT(t, taken_cfa <= mine);
}

/* What was taken comes back long after its tracer has gone. */
static noinline notrace void switch_taker_off(unsigned long x)
{
	(void)x;
	trace_test_ops(&trace_ops_off);
}

KTEST(trace_return, "arch_trace.trace_return")
{
	begin_taking_returns(t);
	KEXPECT_EQ(t, victim_callback(switch_taker_off, 5), 6);
	KEXPECT_EQ(t, victim_callback(switch_taker_off, 5), 6);
	KEXPECT_EQ(t, entered, 1);
	KEXPECT_EQ(t, left, 1);
	end_taking_returns(t);
}

/*
 * Where there is no room left, or no return address, the tracer leaves the call alone.
 */
KTEST(take_return, "arch_trace.trace_take_return")
{
	struct task *me = current_task();
	u32 missed = returns_missed, refused = returns_refused, depth;
	irq_state_t state;

	begin_taking_returns(t);
	state = arch_irq_save();
	depth = me->nr_returns;
	me->nr_returns = TASK_RETURNS;
	KEXPECT_EQ(t, victim_outer(1), 5);
	me->nr_returns = depth;
	arch_irq_restore(state);
	trace_take_return(0, (unsigned long)&state, &return_ops, 0);
	trace_take_return(0, (unsigned long)_text, &return_ops, 0);
	end_taking_returns(t);
	KEXPECT_EQ(t, entered, 0);
	KEXPECT_EQ(t, returns_missed - missed, 2);
	KEXPECT_EQ(t, returns_refused - refused, 2);
	KEXPECT_EQ(t, me->nr_returns, depth);
}

/*
 * Taken returns come back from the innermost function outwards, each to its own caller.
 */
KTEST(returned, "arch_trace.trace_returned")
{
	u32 depth = current_task()->nr_returns;

	begin_taking_returns(t);
	for (unsigned int i = 0; i < 100; i++)
		KEXPECT_EQ(t, victim_outer(i), i + 4);
	end_taking_returns(t);
	KEXPECT_EQ(t, entered, 200);
	KEXPECT_EQ(t, left, 200);
	KEXPECT_EQ(t, out_of_order, 0);
	KEXPECT_EQ(t, current_task()->nr_returns, depth);
}

/* ---- function_graph's trampoline ---- */

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
	ring_record(rings, cpus_present(), true);
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

/* Every victim, and nothing is left to C but what finds its page full. */
KTEST(entry_graph, "arch_trace.trace_entry_graph")
{
	struct ring_stats s;

	graph_begin(t);
	conform_expect_kept(t);
	KEXPECT(t, trace_test_books(&s));
	graph_end(t);
	KEXPECT(t, s.written > CONFORM_ROUNDS * 12);
	KEXPECT_EQ(t, s.written % 2, 0);
	/* And what is new: 20 functions at most. */
	KEXPECT(t, asked < s.written / 100 + 20);
}

/* What one call of victim_call() leaves in the ring: its event, and its return. */
static void expect_slots(struct ktest_run *t, u32 context)
{
	unsigned long text = (unsigned long)_text;
	u32 ip = site_address(trace_test_site(victim_call)) + arch_site_length -
		 text;
	const struct ring_place *at = &arch_this_cpu()->head.ring;
	const struct ring_event *e = (const struct ring_event *)at->cur;
	struct task *me = current_task();
	/* A timer may ask for another task at any time. */
	const u32 steady = ~(PREEMPT_RESCHED >> 8);

	me->graph_depth += 3;
	KEXPECT_EQ(t, victim_call(5), 8);
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

/* What does not fit into one slot, C code writes into two: how often the task was too deep, and
 * a long time. C code also looks whether the ring still has the call. */
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

KTEST(graph_long, "arch_trace.trace_entry_graph.long")
{
	const struct ring_event *e;
	struct task *me = current_task();
	irq_state_t state;

	graph_begin(t);
	victim_callback(take_no_time, 1);
	state = arch_irq_save();
	me->returns_missed = 5;
	expect_long(t, take_no_time, 5, 0);
	me->returns_missed = 0;
	expect_long(t, take_long, 0, RING_TICKS_END);
	e = (const struct ring_event *)arch_this_cpu()->head.ring.cur;
	KEXPECT_EQ(t, victim_callback(begin_later, 5), 6);
	KEXPECT_EQ(t, e[1].ip >> 8, RING_RETURN);
	arch_irq_restore(state);
	graph_end(t);
}

KTEST(graph_slots, "arch_trace.trace_entry_graph.slots")
{
	struct ring_place *at;
	irq_state_t state;

	graph_begin(t);
	victim_call(1); /* its frame is known now */
	preempt_disable();
	victim_call(1);
	asked = 0;
	expect_slots(t, 1);
	state = arch_irq_save();
	expect_slots(t, 1 | RING_CONTEXT_IRQS_OFF);
	KEXPECT_EQ(t, asked, 0);
	/* The page's time is 2^32 ticks ago, and more. */
	at = &arch_this_cpu()->head.ring;
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

/* What this CPU keeps at the place of a frame is another function's. */
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

/* What C has to decide: the trampoline is closed, or there is no room for a return. */
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
	.enter = conform_return_enter,
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
	const struct ring_place *at = &arch_this_cpu()->head.ring;
	const char *before;
	irq_state_t state;

	graph_begin(t);
	victim_callback(take_no_time, 1);
	state = arch_irq_save();
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

/* ---- backtraces ---- */

#define DEPTH 24
static struct {
	unsigned long pcs[DEPTH];
	unsigned int n;
} seen[2], *seeing;

static noinline notrace void look_at_backtrace(unsigned long x)
{
	(void)x;
	seeing->n = backtrace_get(NULL, NULL, seeing->pcs, DEPTH);
}

static noinline void look_from_victim(bool on)
{
	seeing = &seen[on];
	victim_callback(look_at_backtrace, 1);
}

static unsigned long function_of(unsigned long pc)
{
	struct symbol s;

	return symbol_at(pc - 1, &s) ? s.start : 0;
}

KTEST(unwind_taken, "unwind.taken_returns")
{
	unsigned int same = 0;

	look_from_victim(false);
	begin_taking_returns(t);
	look_from_victim(true);
	end_taking_returns(t);
	KEXPECT_EQ(t, entered, 1);
	KEXPECT(t, seen[0].n >= 4);
	KEXPECT_EQ(t, seen[0].n, seen[1].n);
	while (same < seen[0].n &&
	       function_of(seen[0].pcs[same]) == function_of(seen[1].pcs[same]))
		same++;
	KEXPECT_EQ(t, same, seen[0].n);
}
