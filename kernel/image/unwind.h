/* SPDX-License-Identifier: MIT */
/*
 * Stack walks by a table. The compiler describes at each instruction where the
 * function's stack frame ends and where its return address is. After the link,
 * tools/mksites makes one sorted table of that. Nothing is guessed: no frame
 * pointer, no prologue is looked at.
 *
 * Words: the CFA (canonical frame address, DWARF's term) of a function is the
 * stack pointer that its caller had when the call returned. The link register is
 * where a call leaves its return address, if the machine has one. The alternate
 * register is where a site does, if that is another.
 */
#ifndef KERNEL_UNWIND_H
#define KERNEL_UNWIND_H

#include <kernel/types.h>

struct arch_context;
struct task;
struct trap_frame;

/* Where a value is that the caller had. */
enum unwind_where {
	UNWIND_NONE,  /* no function: the table has nothing for this address */
	UNWIND_END,   /* there is no caller */
	UNWIND_LOST,  /* in a register that a walk does not follow */
	UNWIND_LINK,  /* in the link register */
	UNWIND_ALT,   /* in the alternate register */
	UNWIND_STACK, /* in memory, at the CFA + an offset */
	UNWIND_TAKEN, /* with the tracer: among the task's taken returns */
	UNWIND_TRAP,  /* in the trap frame, which lies at the CFA */
};

/* Where a range of instructions finds its caller's values. */
struct unwind_rule {
	s16 cfa;     /* the CFA less the stack pointer */
	s16 pc_at;   /* for UNWIND_STACK: from the CFA */
	s16 link_at; /* likewise */
	u8 pc;	     /* enum unwind_where of the return address */
	u8 link;     /* enum unwind_where of the caller's link register */
	u8 exact;    /* the caller was interrupted, it did not call */
	u8 unused;
};

/*
 * Made by tools/mksites. The rows are ascending: bits 8..31 are the offset from
 * _text, bits 0..7 the rule. A row holds up to the next one. The index says of
 * each UNWIND_BLOCK bytes of text which row its first byte belongs to.
 */
#define UNWIND_BLOCK 256
#define UNWIND_ENTRY 1 /* the rule at the entry of any function */
extern const u32 unwind_count, unwind_index[], unwind_rows[];
extern const struct unwind_rule unwind_rules[];

/* The registers that a walk follows. */
struct unwind_regs {
	unsigned long pc, sp;
	unsigned long link, alt; /* valid if pc is exact */
};

struct unwind {
	struct unwind_regs regs;
	/* pc is the next instruction. Otherwise it is a return address, and the
	 * call stands before it. */
	bool exact;
	bool has_link;	    /* regs.link is this function's link register */
	unsigned int depth; /* steps made */
	unsigned long lo,
		hi; /* the bounds of the stack, which is all it reads */
	const struct task *task; /* whose taken returns and stack these are */
};

/*
 * Begin a walk outwards from a trap frame, from task t that does not run, or
 * (both NULL) from the caller of unwind_start(). With f, t is the task that the
 * trap interrupted, or NULL for the running one. Any context.
 */
void unwind_start(struct unwind *u, const struct trap_frame *f,
		  const struct task *t);

/*
 * Go to the next function: true, and u->regs.pc is the address that it goes on
 * at (the first time: where the walk began). false: the walk has ended, by rule
 * or because the stack holds something else than frames. Reads no memory outside
 * [u->lo, u->hi) and the trap frames in it. Any context, no site.
 */
bool unwind_next(struct unwind *u);

/*
 * The frame of a function that is at address pc with stack pointer sp: its CFA,
 * and where its return address lies, or 0 if that is in a register. false: the
 * table has no such function. Any context, no site.
 */
bool unwind_frame(unsigned long pc, unsigned long sp, unsigned long *cfa,
		  unsigned long *slot);

/*
 * A function's own __builtin_return_address(0), or the real one if a tracer has
 * taken it. Any context, no site.
 */
unsigned long unwind_caller(unsigned long ret);

/* Store up to max addresses of the walk, innermost first, and return how many. */
unsigned int backtrace_get(const struct trap_frame *f, const struct task *t,
			   unsigned long *pcs, unsigned int max);

/* Print the walk with printk(), a line a function. */
void backtrace_print(const struct trap_frame *f, const struct task *t);

#endif
