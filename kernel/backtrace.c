/* Who called whom: the port's unwinder, with bounds, and symbols. */
#include <arch/arch_trace.h>
#include <kernel/cpu/cpu.h>
#include <kernel/printk.h>
#include <kernel/symbols.h>
#include <kernel/sched/task.h>

#define BACKTRACE_MAX 32
/* The most of a stack outside of any task's that is walked. */
#define OTHER_STACK 16384ul

extern char _data[];

/*
 * The bounds of the stack that sp lies in: the task's, its guard page counted
 * (an overflow stands there), or one of the port's: for boot, for emergencies,
 * in the image's data, whose bounds are not known, but whose memory is mapped.
 */
static void set_bounds(struct arch_unwind *u, unsigned long sp,
		       const struct task *t)
{
	unsigned long stack = (unsigned long)t->stack;

	if (stack && sp >= stack - PAGE_SIZE && sp < stack + TASK_STACK_SIZE) {
		u->lo = stack;
		u->hi = stack + TASK_STACK_SIZE;
	} else if (sp >= (unsigned long)_data && sp < (unsigned long)_end) {
		u->lo = sp;
		u->hi = min(sp + OTHER_STACK, (unsigned long)_end);
	} else {
		u->lo = u->hi = 0;
	}
}

/* No site: where it returns to is where a walk of the caller's own begins. */
static noinline notrace void
start(struct arch_unwind *u, const struct trap_frame *f, const struct task *t)
{
	unsigned long sp = (unsigned long)__builtin_frame_address(0);

	*u = (struct arch_unwind){ 0 };
	if (f)
		sp = arch_frame_sp(f);
	else if (t)
		sp = (unsigned long)t->stack;
	set_bounds(u, sp, t ? t : current_task());
	arch_unwind_start(u, f, t);
}

/*
 * Those that a walk from sp meets: functions that run further in than sp, on top of
 * a trap's frame, or on another stack, are not on its way. A function about to
 * return may have given its frame back, which is why a little below is not yet
 * further in.
 */
#define TRAP_FRAME_LEAST 64

static void find_returns(struct arch_unwind *u, const struct task *t,
			 unsigned long sp)
{
	const struct task_return *r;

	u->returns = t->returns;
	u->nr_returns = min(READ_ONCE(t->nr_returns), (u32)TASK_RETURNS);
	for (; u->nr_returns; u->nr_returns--) {
		r = &u->returns[u->nr_returns - 1];
		if (r->sp >= u->lo && r->sp <= u->hi &&
		    arch_return_end(r->ip, r->sp) + TRAP_FRAME_LEAST >= sp)
			return;
	}
}

unsigned long unwind_return(struct arch_unwind *u, unsigned long pc)
{
	/* A function that was called by a jump has taken a taken one. */
	while (pc == (unsigned long)trace_return && u->nr_returns)
		pc = u->returns[--u->nr_returns].ret;
	return pc;
}

unsigned int backtrace_get(const struct trap_frame *f, const struct task *t,
			   unsigned long *pcs, unsigned int max)
{
	struct arch_unwind u;
	unsigned int n = 0;

	start(&u, f, t);
	find_returns(&u, t ? t : current_task(), f ? arch_frame_sp(f) : 0);
	while (n < max && arch_unwind_next(&u))
		pcs[n++] = u.pc;
	return n;
}

void backtrace_print(const struct trap_frame *f, const struct task *t)
{
	unsigned long pcs[BACKTRACE_MAX];
	unsigned int n = backtrace_get(f, t, pcs, BACKTRACE_MAX);

	printk("backtrace:\n");
	for (unsigned int i = 0; i < n; i++)
		printk("  %pS\n", (void *)pcs[i]);
	if (n == BACKTRACE_MAX)
		printk("  ...\n");
}
