/* SPDX-License-Identifier: MIT */
/* Stack walks by the table that tools/mksites makes: unwind.h. */
#include <kernel/image/unwind.h>

#include <arch/arch_trace.h>
#include <kernel/cpu/cpu.h>
#include <kernel/printk.h>
#include <kernel/sched/task.h>
#include <kernel/image/symbols.h>

#define BACKTRACE_MAX 32
/* A walk of more steps than any stack has frames goes round in garbage. */
#define STEPS_MAX 1024
/* The most of a stack outside of any task's that is walked. */
#define OTHER_STACK 16384ul

#ifndef UNWIND_HOST /* tests/unwind/walker.c has other memory */
extern char _data[];
#define UNWIND_LOAD(at) (*(const unsigned long *)(at))
#endif

/* ---- The table ------------------------------------------------------------ */

static notrace const struct unwind_rule *rule_at(unsigned long pc)
{
	unsigned long offset = pc - (unsigned long)_text, rows, half;
	const u32 last =
		offset << 8 | 0xff; /* no row at or before it is more */
	const u32 *index, *row;

	if (offset >= (unsigned long)_etext - (unsigned long)_text)
		return &unwind_rules[0];
	index = &unwind_index[offset / UNWIND_BLOCK];
	row = &unwind_rows[index[0]];
	/* Bisection: the last row that does not begin behind it. */
	for (rows = index[1] + 1 - index[0]; rows > 1; rows -= half) {
		half = rows / 2;
		if (row[half] <= last)
			row += half;
	}
	return &unwind_rules[*row & 0xff];
}

notrace bool unwind_frame(unsigned long pc, unsigned long sp,
			  unsigned long *cfa, unsigned long *slot)
{
	const struct unwind_rule *r = rule_at(pc);

	*cfa = sp + r->cfa;
	*slot = r->pc == UNWIND_STACK ? *cfa + r->pc_at : 0;
	return r->pc == UNWIND_STACK || r->pc == UNWIND_LINK;
}

/* ---- One step ------------------------------------------------------------- */

static notrace bool on_stack(const struct unwind *u, unsigned long at,
			     unsigned long size)
{
	return at % sizeof(long) == 0 && at >= u->lo && at <= u->hi &&
	       u->hi - at >= size;
}

static notrace bool read_word(const struct unwind *u, unsigned long at,
			      unsigned long *word)
{
	if (!on_stack(u, at, sizeof(long)))
		return false;
	*word = UNWIND_LOAD(at);
	return true;
}

/*
 * The value that is `where`. A register holds it only in the function that runs,
 * because a called function may overwrite it.
 */
static notrace bool value_of(const struct unwind *u, enum unwind_where where,
			     unsigned long at, unsigned long *value)
{
	switch (where) {
	case UNWIND_STACK:
		return read_word(u, at, value);
	case UNWIND_LINK:
		*value = u->regs.link;
		return u->has_link;
	case UNWIND_ALT:
		*value = u->regs.alt;
		return u->exact;
	case UNWIND_TAKEN:
		*value = (unsigned long)trace_return;
		return true;
	default:
		return false;
	}
}

/*
 * The bounds of the stack that sp lies in: the task's own, or one of the port's,
 * for boot and for emergencies, in the image's data. The bounds of these are not
 * known, but their memory is mapped. A task's guard page counts as its stack,
 * since the stack pointer of an overflow stands there.
 */
static notrace void set_bounds(struct unwind *u)
{
	unsigned long sp = u->regs.sp, stack = (unsigned long)u->task->stack;

	if (stack && sp >= stack - PAGE_SIZE && sp <= stack + TASK_STACK_SIZE) {
		u->lo = stack;
		u->hi = stack + TASK_STACK_SIZE;
	} else if (sp >= (unsigned long)_data && sp < (unsigned long)_end) {
		u->lo = sp;
		u->hi = min(sp + OTHER_STACK, (unsigned long)_end);
	} else {
		u->lo = u->hi = 0;
	}
}

/* Go on in the code that a trap has interrupted, which may be on another stack. */
static notrace bool step_trap(struct unwind *u, unsigned long at)
{
	if (!on_stack(u, at, sizeof(struct trap_frame)))
		return false;
	arch_frame_regs((const struct trap_frame *)at, &u->regs);
	u->exact = u->has_link = true;
	if (u->regs.sp < u->lo || u->regs.sp > u->hi)
		set_bounds(u);
	return true;
}

/*
 * The return address of the function whose frame ended at `cfa`, if the tracer
 * has taken it. A tail call enters the second function with trace_return already
 * as its return address, so several taken returns can have the same CFA. The
 * outermost one, which was taken first, has the real address.
 */
static notrace unsigned long taken_return(const struct unwind *u,
					  unsigned long cfa)
{
	const struct task *t = u->task;
	u32 n = min(READ_ONCE(t->nr_returns), (u32)TASK_RETURNS);

	for (u32 i = 0; i < n; i++)
		if (t->returns[i].cfa == cfa)
			return t->returns[i].ret;
	return (unsigned long)trace_return;
}

/*
 * A call of a wrong pointer: pc is in no function, but the call itself was made,
 * so the frame looks as at the first instruction of any function.
 */
static notrace const struct unwind_rule *rule_now(const struct unwind *u)
{
	unsigned long pc = u->regs.pc;

	if (u->exact &&
	    (pc < (unsigned long)_text || pc >= (unsigned long)_etext))
		return &unwind_rules[UNWIND_ENTRY];
	return rule_at(u->exact ? pc : pc - 1);
}

static notrace bool walk_step(struct unwind *u)
{
	const struct unwind_rule *r = rule_now(u);
	unsigned long cfa = u->regs.sp + r->cfa, pc, link = 0;
	bool has_link;

	if (r->pc == UNWIND_TRAP)
		return step_trap(u, cfa);
	if (cfa < u->regs.sp || !on_stack(u, cfa, 0) ||
	    !value_of(u, r->pc, cfa + r->pc_at, &pc))
		return false;
	has_link = value_of(u, r->link, cfa + r->link_at, &link);
	if (pc == (unsigned long)trace_return)
		pc = taken_return(u, cfa);
	u->regs.pc = pc;
	u->regs.sp = cfa;
	u->regs.link = link;
	u->has_link = has_link;
	u->exact = r->exact;
	return pc >= (unsigned long)_text && pc < (unsigned long)_etext;
}

notrace bool unwind_next(struct unwind *u)
{
	if (!u->depth++)
		return true;
	return u->depth < STEPS_MAX && walk_step(u);
}

#ifndef UNWIND_HOST
noinline notrace void unwind_start(struct unwind *u, const struct trap_frame *f,
				   const struct task *t)
{
	*u = (struct unwind){ .task = t ? t : current_task() };
	if (f) {
		arch_frame_regs(f, &u->regs);
		u->exact = u->has_link = true;
	} else if (t) {
		arch_context_regs((const struct arch_context *)t, &u->regs);
	} else {
		u->regs.pc = (unsigned long)__builtin_return_address(0);
		u->regs.sp = (unsigned long)__builtin_dwarf_cfa();
	}
	set_bounds(u);
}

notrace unsigned long unwind_caller(unsigned long ret)
{
	const struct task *t = current_task();
	u32 n = min(READ_ONCE(t->nr_returns), (u32)TASK_RETURNS);

	/* The innermost taken return is that of this function's caller. After
	 * tail calls several stand one behind the other. */
	while (ret == (unsigned long)trace_return && n)
		ret = t->returns[--n].ret;
	return ret;
}

/* ---- Walks ---------------------------------------------------------------- */

/* No tail call: the walk of the caller's own begins behind a call. */
noinline unsigned int backtrace_get(const struct trap_frame *f,
				    const struct task *t, unsigned long *pcs,
				    unsigned int max)
{
	struct unwind u;
	unsigned int n = 0;

	unwind_start(&u, f, t);
	/* The first step out of this function itself. */
	if (!f && !t && !unwind_next(&u))
		return 0;
	while (n < max && unwind_next(&u))
		pcs[n++] = u.regs.pc;
	return n;
}

void backtrace_print(const struct trap_frame *f, const struct task *t)
{
	struct unwind u;
	unsigned int n = 0;

	printk("backtrace:\n");
	unwind_start(&u, f, t);
	for (; n < BACKTRACE_MAX && unwind_next(&u); n++)
		printk(u.exact ? "  %pS\n" : "  %pB\n", (void *)u.regs.pc);
	if (n == BACKTRACE_MAX)
		printk("  ...\n");
}
#endif
