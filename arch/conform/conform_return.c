/* SPDX-License-Identifier: MIT */
/*
 * Conformance of a port with arch_trace.h: taking a function's return address and
 * giving it back. A backtrace in between must be right, too (H20).
 */
#include <arch/conform/conform.h>

#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/image/unwind.h>
#include <kernel/lock/mutex.h>
#include <tracer/graph/graph.h>
#include <tracer/ops/returns.h>
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

/* The taken return comes back after its tracer has gone. */
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
	u32 missed = returns_lost, refused = returns_refused, depth;
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
	KEXPECT_EQ(t, returns_lost - missed, 2);
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
