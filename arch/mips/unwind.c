/*
 * Stack walk without frame pointers: the prologue says what a function did to sp
 * and where it put ra. GCC makes a frame by one `addiu sp, sp, -n` and one `sw
 * ra, m(sp)` before the first branch's delay slot is over (-fno-shrink-wrap; no
 * alloca or VLA), and takes it away right before it leaves, or in that jump's slot.
 */
#include <arch/arch.h>
#include <arch/arch_trace.h>
#include <kernel/symbols.h>
#include <kernel/sched/task.h>

#define PROLOGUE_MAX 64 /* instructions looked at */
#define DEPTH_MAX 256

extern char trampoline_begin[];

static bool is_text(unsigned long a)
{
	return a % 4 == 0 && a >= (unsigned long)_text &&
	       a < (unsigned long)_etext;
}

static bool on_stack(const struct arch_unwind *u, unsigned long a,
		     unsigned long size)
{
	return a % 4 == 0 && a >= u->lo && a <= u->hi && u->hi - a >= size;
}

/* addiu sp, sp, n: n, else 0. */
static int sp_change(u32 insn)
{
	return insn >> 16 == 0x27bd ? (s16)insn : 0;
}

/* Does the instruction have a delay slot? */
static bool is_branch(u32 insn)
{
	u32 op = insn >> 26;

	return (op == 0 && (insn & 0x3e) == 8) || /* jr, jalr */
	       (op >= 1 && op <= 7) ||		  /* REGIMM .. bgtz */
	       (op >= 20 && op <= 23);		  /* branch likely */
}

static bool is_call(u32 insn)
{
	return insn >> 26 == 3 || (insn >> 26 == 0 && (insn & 0x3f) == 9);
}

/* What the instructions from start up to, not including, pc have done; what
 * comes after the first branch's delay slot is not prologue, nor that of a call:
 * there the compiler's sites have 8 bytes for the stub. */
static struct stack_use prologue(const u32 *start, const u32 *pc)
{
	struct stack_use use = { 0, 0 };
	const u32 *end = min(pc, start + PROLOGUE_MAX);

	for (const u32 *p = start; p < end; p++) {
		int change = sp_change(*p);

		if (change < 0 && !use.size)
			use.size = -change;
		if (*p >> 16 == 0xafbf) /* sw ra, m(sp) */
			use.ra_at = (u16)*p;
		if (is_branch(*p))
			end = min(end, p + (is_call(*p) ? 1 : 2));
	}
	return use;
}

struct stack_use site_stack_use(unsigned long ip)
{
	unsigned long site = arch_site_from_return(ip);
	struct symbol s;

	if (!symbol_at(site, &s))
		return (struct stack_use){ 0, 0 };
	return prologue((const u32 *)s.start, (const u32 *)site);
}

/*
 * Is pc in an epilogue, the frame gone already? Then sp was put back on the way
 * straight here: not in the delay slot of a jump that led away.
 */
static bool frame_is_gone(const u32 *start, const u32 *pc)
{
	while (--pc > start && !is_branch(pc[-1]))
		if (sp_change(*pc))
			return sp_change(*pc) > 0;
	return false;
}

static void take_frame(struct arch_unwind *u, const struct trap_frame *f)
{
	u->pc = f->epc;
	u->sp = f->reg[REG_SP];
	u->ra = f->reg[REG_RA];
	u->fp = f->reg[REG_AT]; /* for the trampolines */
}

noinline void arch_unwind_start(struct arch_unwind *u,
				const struct trap_frame *f,
				const struct task *t)
{
	u->depth = 0;
	u->ra = u->fp = 0;
	if (f) {
		take_frame(u, f);
	} else if (t) {
		u->pc = t->context.ra;
		u->sp = t->context.sp;
	} else {
		const u32 *self = (const u32 *)arch_unwind_start;
		unsigned long sp;

		/* The clobber makes the compiler save ra. */
		asm volatile("move %0, $sp" : "=r"(sp) : : "$31", "memory");
		u->pc = (unsigned long)__builtin_return_address(0);
		u->sp = sp + prologue(self, self + PROLOGUE_MAX).size;
	}
}

/* What trap_entry saved, from the innermost frame outwards. */
static bool step_trap(struct arch_unwind *u)
{
	const struct trap_frame *f = (const struct trap_frame *)u->sp;

	if (!on_stack(u, u->sp, sizeof(*f)) || f->reg[REG_SP] < u->sp)
		return false;
	take_frame(u, f);
	return is_text(u->pc);
}

/*
 * Out of a trampoline into the traced function, whose own return address was in
 * at: without a frame in ra (the site's return) and at, else on the stack.
 */
static bool step_trampoline(struct arch_unwind *u, struct stack_use use)
{
	const u32 *saved = (const u32 *)u->sp;

	if (use.ra_at) {
		if (!on_stack(u, u->sp, TRACE_FRAME_SIZE))
			return false;
		u->ra = saved[TRACE_FRAME_RA / 4];
		u->fp = saved[TRACE_FRAME_AT / 4];
	}
	u->sp += use.size;
	if (u->pc == (unsigned long)trace_stub)
		u->sp += 8; /* which it is about to give back */
	u->pc = u->ra;
	u->ra = u->fp;
	u->fp = 0;
	return is_text(u->pc);
}

/*
 * What u->ra stands for in the function whose frame ended at u->sp: there it ended
 * for the function that took it, too. An address is counted before it is replaced,
 * and after it has been put back, so that some may be left of frames that have been
 * passed.
 */
static unsigned long frame_return(struct arch_unwind *u)
{
	for (; u->nr_returns; u->nr_returns--) {
		const struct task_return *r = &u->returns[u->nr_returns - 1];

		if (arch_return_end(r->ip, r->sp) >= u->sp)
			break;
	}
	return unwind_return(u, u->ra);
}

/*
 * u->ra != 0: pc is exact, and ra is what the register holds. Otherwise pc is a
 * return address: its call, two instructions before, tells the function.
 */
static bool step_function(struct arch_unwind *u)
{
	struct stack_use use;
	struct symbol s;
	bool exact = u->ra != 0;

	if (exact && !is_text(u->pc)) {
		/* A call of a wrong pointer. */
		u->pc = frame_return(u);
		u->ra = 0;
		return is_text(u->pc);
	}
	if (!symbol_at(exact ? u->pc : u->pc - 8, &s))
		return false;
	use = prologue((const u32 *)s.start, (const u32 *)u->pc);
	if (exact && use.size &&
	    frame_is_gone((const u32 *)s.start, (const u32 *)u->pc))
		use = (struct stack_use){ 0, 0 };
	if (s.start >= (unsigned long)trampoline_begin &&
	    s.start < (unsigned long)trace_return)
		return step_trampoline(u, use);
	if (use.ra_at) {
		if (!on_stack(u, u->sp + use.ra_at, 4))
			return false;
		u->ra = *(const u32 *)(u->sp + use.ra_at);
	}
	u->sp += use.size;
	u->pc = frame_return(u);
	u->ra = 0;
	/* A step without a frame is the innermost; the rest must go up. */
	return is_text(u->pc) && (use.size || exact) && on_stack(u, u->sp, 0);
}

bool arch_unwind_next(struct arch_unwind *u)
{
	if (u->depth >= DEPTH_MAX)
		return false;
	if (u->depth++ == 0)
		return is_text(u->pc) || is_text(u->ra);
	if (u->pc == (unsigned long)trap_return)
		return step_trap(u);
	return step_function(u);
}
