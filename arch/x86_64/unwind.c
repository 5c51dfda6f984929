/*
 * Walking a stack by frame pointers. A function keeps [rbp] = the caller's rbp,
 * [rbp+8] = return address, but only between its `push %rbp; mov %rsp,%rbp` and
 * its `pop %rbp` or `leave`. An interrupt may come outside of that; then the
 * return address is found from rsp, told by the instructions around the pc.
 */
#include <arch/arch_trace.h>
#include <kernel/symbols.h>
#include <kernel/sched/task.h>

#define PUSH_RBP 0x55
#define POP_RBP 0x5d
#define LEAVE 0xc9
#define RET 0xc3
#define JMP 0xe9
#define PROLOGUE_MAX 32	  /* bytes in which the prologue ends */
#define TRAMPOLINE_MAX 16 /* words that a trampoline pushes */

extern const char trampoline_begin[], trampoline_end[];

static bool in_text(unsigned long pc)
{
	return pc >= (unsigned long)_text && pc < (unsigned long)_etext;
}

/* Read a word of the stack; false outside its bounds. */
static bool stack_read(const struct arch_unwind *u, unsigned long at,
		       unsigned long *word)
{
	if (at % 8 || at < u->lo || at >= u->hi || u->hi - at < 8)
		return false;
	*word = *(const unsigned long *)at;
	return true;
}

/* mov %rsp,%rbp, in the encoding that GCC uses */
static bool is_mov_rsp_rbp(const u8 *p)
{
	return p[0] == 0x48 && p[1] == 0x89 && p[2] == 0xe5;
}

/*
 * pc in a prologue: how far above rsp the return address lies, or -1 when rbp
 * is set up. GCC may schedule other instructions in between, so the end of the
 * prologue is searched for.
 */
static int prologue_offset(unsigned long pc)
{
	struct symbol s;
	unsigned long push, end;

	if (!symbol_at(pc, &s))
		return -1;
	push = s.start;
	end = min(s.start + s.size, s.start + PROLOGUE_MAX);
	if (*(const u8 *)push != PUSH_RBP)
		push += SITE_LENGTH;
	if (pc < push || pc == s.start)
		return 0;
	if (push >= end || *(const u8 *)push != PUSH_RBP)
		return -1;
	if (pc == push)
		return 0;
	for (unsigned long p = push + 1; p + 3 <= end; p++)
		if (is_mov_rsp_rbp((const u8 *)p))
			return pc <= p ? 8 : -1;
	return -1;
}

/* pc behind the `pop %rbp` or `leave` of an epilogue, on its ret or jmp? */
static bool in_epilogue(unsigned long pc)
{
	const u8 *p = (const u8 *)pc;

	return pc > (unsigned long)_text && (p[0] == RET || p[0] == JMP) &&
	       (p[-1] == POP_RBP || p[-1] == LEAVE);
}

static bool is_site_return(unsigned long word)
{
	unsigned long site = arch_site_from_return(word);

	return in_text(site) && in_text(word) &&
	       (arch_live_read(site) == arch_live_on(site) ||
		arch_site_recognise(site));
}

/*
 * In a trampoline: the return address into the traced function stands above
 * what has been pushed, copied once more below when frames for C were made.
 * rbp goes back to the caller's. A saved register that happens to look like
 * one misleads; the walk stays within bounds all the same.
 */
static unsigned long trampoline_slot(struct arch_unwind *u, unsigned long sp)
{
	unsigned long at, word, ip = 0, slot = 0;

	for (at = sp; at < sp + TRAMPOLINE_MAX * 8; at += 8) {
		if (!stack_read(u, at, &word))
			break;
		if (slot ? word == ip : is_site_return(word)) {
			slot = at;
			ip = word;
		}
	}
	for (int frames = 0; frames < 2; frames++)
		if (u->fp >= sp && u->fp < slot)
			stack_read(u, u->fp, &u->fp);
	return slot;
}

/*
 * In trace_return: its place on the stack holds trace_return until it holds the
 * way back. RETURN_GONE: the function has returned, and nothing is on the stack.
 */
#define RETURN_GONE 1

static unsigned long return_slot(struct arch_unwind *u, unsigned long pc,
				 unsigned long sp)
{
	unsigned long word, fp = u->fp;

	if (pc == (unsigned long)trace_return)
		return RETURN_GONE;
	if (fp >= sp && fp <= sp + 16) {
		stack_read(u, fp, &u->fp);
		return fp + 8;
	}
	/* Before `mov %rsp,%rbp` the caller's rbp may lie on top. */
	return stack_read(u, sp, &word) && word == fp ? sp + 8 : sp;
}

/* Where the return address lies if rbp does not lead to it; else 0. */
static unsigned long frameless_slot(struct arch_unwind *u, unsigned long pc,
				    unsigned long sp)
{
	int offset;

	if (!in_text(pc))
		return sp; /* a call through a bad pointer */
	if (pc >= (unsigned long)trace_return &&
	    pc < (unsigned long)trampoline_end)
		return return_slot(u, pc, sp);
	if (pc >= (unsigned long)trampoline_begin &&
	    pc < (unsigned long)trampoline_end)
		return trampoline_slot(u, sp);
	offset = prologue_offset(pc);
	if (offset >= 0)
		return sp + offset;
	return in_epilogue(pc) ? sp : 0;
}

/* u->ra: the slot that holds the next pc, or 0 when u->fp leads to it. */
static void take_frame(struct arch_unwind *u, const struct trap_frame *f)
{
	u->pc = f->rip;
	u->fp = f->rbp;
	u->sp = f->rsp;
	u->ra = frameless_slot(u, u->pc, u->sp);
}

void arch_unwind_start(struct arch_unwind *u, const struct trap_frame *f,
		       const struct task *t)
{
	const unsigned long *here = __builtin_frame_address(0);

	u->depth = 0;
	if (f) {
		take_frame(u, f);
	} else if (t) {
		const struct switch_frame *s = (void *)t->context.sp;

		u->pc = s->ret;
		u->fp = s->rbp;
		u->sp = (unsigned long)(s + 1);
		u->ra = 0;
	} else {
		u->pc = here[1];
		u->fp = here[0];
		u->sp = (unsigned long)(here + 2);
		u->ra = 0;
	}
}

/*
 * The return address that lies in a slot. Who took it is told by the slot: one
 * that has been noted but not yet been taken, or the other way round, is on top of
 * the list for a moment, and an outer function's must not be mistaken for it. Two
 * that share a slot were called one from the other by a jump: the lower one knows.
 */
static unsigned long slot_return(struct arch_unwind *u, unsigned long slot,
				 unsigned long pc)
{
	for (unsigned int i = 0; i < u->nr_returns; i++) {
		if (u->returns[i].sp == slot) {
			u->nr_returns = i + 1;
			return unwind_return(u, pc);
		}
	}
	return pc;
}

/* The return address in a slot at sp or above it; below, the walk went round. */
static bool step_slot(struct arch_unwind *u)
{
	unsigned long slot = u->ra;

	if (slot == RETURN_GONE) {
		slot = u->sp - 8;
		u->pc = (unsigned long)trace_return;
	} else if (slot < u->sp || !stack_read(u, slot, &u->pc)) {
		return false;
	} else {
		u->sp = slot + 8;
	}
	u->pc = slot_return(u, slot, u->pc);
	u->ra = in_text(u->pc) ? frameless_slot(u, u->pc, u->sp) : 0;
	return true;
}

static bool step_frame(struct arch_unwind *u)
{
	unsigned long fp = u->fp;

	if (fp < u->sp || !stack_read(u, fp, &u->fp) ||
	    !stack_read(u, fp + 8, &u->pc))
		return false;
	u->pc = slot_return(u, fp + 8, u->pc);
	u->sp = fp + 16;
	return true;
}

/* Called from trap_dispatch(): go on with what the trap interrupted. */
static bool step_trap(struct arch_unwind *u)
{
	const struct trap_frame *f = (const struct trap_frame *)u->sp;

	if (u->sp < u->lo || u->sp > u->hi || u->hi - u->sp < sizeof(*f) ||
	    f->rsp < u->sp + sizeof(*f))
		return false;
	take_frame(u, f);
	return true;
}

bool arch_unwind_next(struct arch_unwind *u)
{
	if (u->depth++ == 0)
		return true;
	if (!(u->ra ? step_slot(u) : step_frame(u)))
		return false;
	if (u->pc == (unsigned long)trap_return && !step_trap(u))
		return false;
	return in_text(u->pc);
}
