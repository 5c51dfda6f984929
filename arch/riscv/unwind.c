/*
 * Stack walk by frame pointer: s0 points past a frame whose last two words are
 * the return address (s0 - 8) and the caller's s0 (s0 - 16). A leaf function
 * saves only s0, at s0 - 8, and before its prologue has run a function has saved
 * nothing; both can only be the innermost function of a trap frame, where the
 * return address is still in ra.
 *
 * What a tracer has taken is told by where it stands: u->returns[].sp is the end
 * of a function's frame or, behind a prologue, its s0. So of the functions whose
 * record is at fp none is lower, nor more than VARIADIC_MOST higher.
 */
#include <arch/arch_trace.h>
#include <kernel/symbols.h>
#include <kernel/sched/task.h>

/* trampoline.S */
extern const char trampoline_end[];

static bool is_text(unsigned long a)
{
	return a >= (unsigned long)_text && a < (unsigned long)_etext;
}

static bool on_stack(const struct arch_unwind *u, unsigned long a,
		     unsigned long size)
{
	return a % 8 == 0 && a >= u->lo && a <= u->hi && u->hi - a >= size;
}

/*
 * What lies further in than `at` has been passed. Some may be left: an address is
 * counted before it is replaced, and no longer when its function is yet to return.
 */
static void pass_returns(struct arch_unwind *u, unsigned long at)
{
	while (u->nr_returns && u->returns[u->nr_returns - 1].sp < at)
		u->nr_returns--;
}

/* The return address that the record at fp, or its function's ra, stands for. */
static unsigned long record_return(struct arch_unwind *u, unsigned long fp,
				   unsigned long ra)
{
	pass_returns(u, fp);
	/* Given back, and trace_return not yet told: the next one is another's. */
	if (u->nr_returns &&
	    u->returns[u->nr_returns - 1].sp > fp + VARIADIC_MOST)
		return ra;
	return unwind_return(u, ra);
}

/*
 * Where ra is not what step_interrupted() takes it for: a trampoline that has
 * records of its own has the traced function in t0.
 */
static void from_trampoline(struct arch_unwind *u, const struct trap_frame *f)
{
	const unsigned long *fp = (const unsigned long *)u->fp;

	if (!on_stack(u, u->fp - 16, 16))
		return;
	if (u->fp == u->sp + ENTRY_RECORD && fp[-1] == f->reg[REG_T0])
		u->ra = 0;
}

static void from_frame(struct arch_unwind *u, const struct trap_frame *f)
{
	u->pc = f->reg[0];
	u->sp = f->reg[REG_SP];
	u->fp = f->reg[REG_FP];
	u->ra = f->reg[REG_RA];
	pass_returns(u, u->sp - VARIADIC_MOST);
	if (u->pc >= (unsigned long)trace_entry &&
	    u->pc < (unsigned long)trampoline_end)
		from_trampoline(u, f);
}

noinline void arch_unwind_start(struct arch_unwind *u,
				const struct trap_frame *f,
				const struct task *t)
{
	u->depth = 0;
	if (f) {
		from_frame(u, f);
		return;
	}
	u->ra = 0;
	if (t) {
		u->pc = t->context.ra;
		u->sp = t->context.sp;
		u->fp = t->context.s[0];
	} else {
		unsigned long *frame = __builtin_frame_address(0);

		/* The clobber makes the compiler save ra, so this is no leaf. */
		asm volatile("" ::: "ra", "memory");
		u->pc = frame[-1];
		u->sp = (unsigned long)frame;
		u->fp = frame[-2];
	}
}

/*
 * Has an `auipc ra` between start and pc made this value, the first half of a far
 * call? The second half may be a nop: a site that is off. Any halfword is taken
 * for an instruction, but few would make just this value.
 */
static bool auipc_made(unsigned long start, unsigned long pc, unsigned long ra)
{
	for (; start < pc; start += 2)
		if (insn_auipc(REG_RA, (long)(ra - start)) ==
			    arch_live_read(start) &&
		    (ra - start) % 4096 == 0)
			return true;
	return false;
}

/*
 * Has the function that was interrupted not yet saved ra, or already restored it?
 * Then ra is in its caller; otherwise it points into the function itself, after
 * its last call, or is half a call's target, or equals what the frame holds. A
 * caller may hold trace_return too: then it is where its frame is that tells.
 */
static bool ra_is_caller(const struct arch_unwind *u, unsigned long ra)
{
	bool have_fp = on_stack(u, u->fp - 16, 16);
	struct symbol s;

	if (!is_text(ra))
		return false;
	if (ra == (unsigned long)trace_return)
		return !have_fp || !u->nr_returns ||
		       u->returns[u->nr_returns - 1].sp < u->fp;
	if (have_fp && ra == ((const unsigned long *)u->fp)[-1])
		return false;
	return !symbol_at(u->pc, &s) ||
	       ((ra < s.start || ra > s.start + s.size) &&
		!auipc_made(s.start, u->pc, ra));
}

/* One step by u->fp alone. */
static bool step_record(struct arch_unwind *u)
{
	const unsigned long *fp = (const unsigned long *)u->fp;

	if (!on_stack(u, u->fp - 16, 16) || !is_text(fp[-1]))
		return false;
	if (fp[-2] && fp[-2] <= u->fp)
		return false; /* would go round in circles */
	u->pc = record_return(u, u->fp, fp[-1]);
	u->sp = u->fp;
	u->fp = fp[-2];
	return true;
}

/* The step out of the function that a trap interrupted. */
static bool step_interrupted(struct arch_unwind *u)
{
	const unsigned long *fp = (const unsigned long *)u->fp;
	unsigned long ra = u->ra;

	u->ra = 0;
	if (on_stack(u, u->fp - 16, 16) && on_stack(u, fp[-1], 0) &&
	    fp[-1] > u->fp && is_text(ra)) {
		u->pc = record_return(u, u->fp, ra); /* a leaf */
		u->sp = u->fp;
		u->fp = fp[-1];
		return true;
	}
	if (ra_is_caller(u, ra)) {
		u->pc = unwind_return(u, ra); /* s0 is still the caller's */
		return true;
	}
	return step_record(u);
}

bool arch_unwind_next(struct arch_unwind *u)
{
	/* A stack has no more records than this; garbage may pretend to. */
	if (u->depth >= STACK_SIZE / 16)
		return false;
	if (u->depth++ == 0)
		return is_text(u->pc) || is_text(u->ra);
	if (u->pc == (unsigned long)trap_resume ||
	    u->pc == (unsigned long)trap_called) {
		/* s0 is where trap_entry's frame ends. */
		if (!on_stack(u, u->fp - FRAME_SIZE, FRAME_SIZE))
			return false;
		from_frame(u, (struct trap_frame *)(u->fp - FRAME_SIZE));
		return true;
	}
	return u->ra ? step_interrupted(u) : step_record(u);
}
