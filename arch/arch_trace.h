/*
 * The contract's second half: what a port supplies so that its sites can be
 * found, turned into NOPs, and switched while the machine runs.
 *
 * A site is a fixed part plus ONE live instruction. arch_site_prepare() writes
 * the fixed part once, at boot, alone; from then on the live instruction is all
 * that is ever written. Each port's patch.c begins with its table of sites, one
 * row an instruction: compiled, fixed, off, on.
 *
 * Nothing that these functions call may have a site (the build checks it).
 * They are tested in arch/conform/conform_trace.c and its neighbours.
 */
#ifndef ARCH_ARCH_TRACE_H
#define ARCH_ARCH_TRACE_H

#include <arch/arch.h>

struct task_return; /* kernel/sched/task.h */

/* What the compiler and linker leave at a recorded address. */
struct site_format {
	const char *name; /* as in `make features`: "fentry", "mcount" */
	u8 length;	  /* bytes of the whole site */
	u8 live_offset;	  /* of the live instruction from the site */
	u8 live_length;	  /* bytes of the live instruction */
	u8 live_align;	  /* alignment at which a store of it is atomic;
				  0: never */
};

/*
 * Choose how an instruction is best left out on this CPU, before any site is
 * prepared. `wanted` is the text of nop=, or NULL to choose by CPUID or by
 * measuring. Returns 0, or -EINVAL when wanted is none of arch_nop_names.
 * Boot CPU, interrupts off.
 */
int arch_nop_select(const char *wanted);

/* Names that nop= takes, separated by blanks, for the error line. */
extern const char arch_nop_names[];

/* The choice, for the boot line: "p6 0f1f440000". Valid after select. */
const char *arch_nop_describe(void);

/*
 * The format of the site at `site`, told by the bytes there alone, as the
 * linker left them; NULL when they are none that this port knows. Never guess:
 * a wrong answer is a wild write. Any context.
 */
const struct site_format *arch_site_recognise(unsigned long site);

/* What arch_site_recognise() accepts, for the line that names a bad site:
 * "e8 and the distance to __fentry__". */
extern const char arch_site_expected[];

/*
 * Boot: recognise the site, write its fixed part and its live instruction "off"
 * through the alias site + delta (arch_text_open()). 0; -EINVAL: bytes not
 * recognised; -ERANGE: recognised, but the trampoline is out of its reach.
 * On an error nothing was written. Alone: no other CPU, no other task.
 */
int arch_site_prepare(unsigned long site, long delta);

/*
 * inline: where the live instruction of a prepared site stands, and back from
 * the return address that the live call hands to the trampoline.
 */
static inline unsigned long arch_site_live(unsigned long site);
static inline unsigned long arch_site_from_return(unsigned long ret);

/*
 * inline: the live instruction's bytes, in the low bits, as arch_live_read()
 * would find them: off and on.
 */
static inline u64 arch_live_off(unsigned long live);
static inline u64 arch_live_on(unsigned long live);

/* inline: read the live instruction at `live`; write it at an alias address.
 * One store where the hardware has one. No synchronisation. */
static inline u64 arch_live_read(unsigned long live);
static inline void arch_live_write(unsigned long alias, u64 bytes);

/* inline constants: bytes of the live instruction. */
extern const unsigned int arch_live_length;

/* ---- Without stopping anybody -------------------------------------------- */

/*
 * Strategy `word`. inline: may the live instruction at `live` be replaced by
 * ONE store while other CPUs fetch it, so that each sees the old or the new one
 * whole? And that store, at an alias address: it may write neighbouring bytes as
 * they are. arch_word_refused(): NULL where that can be true on this CPU, else
 * why the architecture promises it for no site.
 */
static inline bool arch_live_word(unsigned long live);
static inline void arch_live_write_word(unsigned long alias, u64 bytes);
const char *arch_word_refused(void);

/*
 * Strategy `breakpoint`. A live instruction is a first unit of arch_break_length
 * bytes, which can be stored at once wherever a site may stand, and a tail, none
 * where the unit is all of it. arch_break_insn: the breakpoint instruction that
 * fits the unit, as arch_live_read() would find it in the low bits.
 * arch_unit_write() stores the first unit, from the low bits of `bytes` (a live
 * instruction, or arch_break_insn); arch_tail_write() stores the tail, from what
 * lies above it. Both at an alias address. inline, all of them.
 */
extern const unsigned int arch_break_length;
extern const u64 arch_break_insn;
static inline void arch_unit_write(unsigned long alias, u64 bytes);
static inline void arch_tail_write(unsigned long alias, u64 bytes);

/*
 * Make f, whose pc is `live`, the frame of a CPU that has just executed the live
 * instruction in state `on` there: a call's return address where the ABI of the
 * site wants it, pc at its target; or pc behind what was left out. Context: the
 * breakpoint's trap, an NMI's too. No site.
 */
void arch_break_resume(struct trap_frame *f, unsigned long live, bool on);

/*
 * Supplied by the tracer. The port's trap calls it first of all for every
 * breakpoint exception, interrupts off, from code that has no site, with
 * arch_frame_pc(f) at the breakpoint itself. True: dealt with, return to f.
 * False: no breakpoint of the tracer's: a fault like any other.
 */
bool patch_trap(struct trap_frame *f);

/*
 * Make kernel text writable for this CPU alone: returns delta, so that the
 * alias of text address a is a + delta. Until arch_text_close() interrupts stay
 * off and nothing else is mapped differently. Where text is not protected the
 * delta is 0. No other CPU may ever see the alias.
 */
long arch_text_open(void);
void arch_text_close(void);

/*
 * inline: after the store to the text at address `a`: what THIS CPU must do for
 * each changed site before it may trust its instruction fetch (MIPS: synci).
 * arch_sync_each_site is false where it is empty, so callers need no loop.
 */
static inline void arch_text_sync_site(unsigned long a);
extern const bool arch_sync_each_site;

/*
 * Last step on each CPU after new text was written anywhere, and after its
 * arch_text_sync_site() calls: afterwards this CPU executes what memory says
 * (fence.i, a serialising instruction, sync and a hazard barrier). Also the
 * first thing that a CPU does when it comes up. Any context, no site.
 */
void arch_text_sync(void);

/*
 * The trampolines, in the port's trampoline.S. All keep every register that
 * the ABI may carry at a function's entry.
 *
 * trace_stub     what compiled calls reach before boot conversion: returns as
 *                if the site were not there (on MIPS it also gives back the 8
 *                bytes of stack). Also called __fentry__ or _mcount.
 * trace_entry    what live calls reach: loads trace_ops ONCE and jumps to its
 *                ->entry; one of the three below.
 * trace_entry_off   returns at once: at most 15 instructions site to return.
 * trace_entry_ring  records one 12-byte event (struct ring_event) with
 *                interrupts off, by itself; ring_cur is stored last, after the
 *                event's words (a store-store fence where stores may pass each
 *                other): pairs with the reader's acquire in ring_read.c, which
 *                else prints what is not there yet. When ring_cur >= ring_end or the
 *                clock is 2^32 ticks or more past ring_base, it calls
 *                trace_ring_slow(ip, parent, flags) instead.
 * trace_entry_call  saves all, interrupts as they were, and calls
 *                ops->func(ip, parent, ops).
 * trace_entry_return  saves all likewise and calls trace_take_return(ip, parent,
 *                ops, sp), which may have the function return to trace_return.
 * ip is the return address of the live call, parent that of the function.
 *
 * trace_return   where such a function returns to: keeps every register that a
 *                result may be in, calls trace_returned() and goes on where that
 *                says. It stands between trace_entry and trampoline_end. A stack
 *                walk that finds its address where a return address should be
 *                looks among the task's taken returns (kernel/unwind.c).
 */
struct trace_ops {
	void (*entry)(void); /* first: the trampoline jumps through it */
	void (*func)(unsigned long ip, unsigned long parent,
		     struct trace_ops *ops);
	/* With trace_entry_return: tracer/graph/returns.h. */
	bool (*enter)(struct task_return *r, unsigned int depth);
	void (*leave)(struct task_return *r, unsigned int depth);
};
extern struct trace_ops *trace_ops;

void trace_stub(void);
void trace_entry(void);
void trace_entry_off(void);
void trace_entry_ring(void);
void trace_entry_call(void);
void trace_entry_return(void);
void trace_return(void);
/* Behind the last of them; trace_entry is the first. */
extern const char trampoline_end[];

/*
 * inline constant: where trace_entry_return keeps the link register of the function
 * that it was called from, in bytes below the stack pointer that it hands to
 * trace_take_return(). The trampoline loads the register from there before it goes
 * back, so a return address stored there is the one that the function returns to.
 * Used for a function that has its return address in the link register at its
 * site; 0 where the machine has no link register.
 */
#ifndef arch_link_below
extern const unsigned long arch_link_below;
#endif

/*
 * Supplied by the tracer, called by the trampolines: tracer/graph/returns.c. The second
 * stores the way back at *place, where a walk has found the address of
 * trace_return until then. At every instruction, either the stack slot or the
 * task's taken returns hold the real address.
 */
void trace_take_return(unsigned long ip, unsigned long parent,
		       struct trace_ops *ops, unsigned long sp);
void trace_returned(unsigned long *place);

/*
 * Supplied by the tracer, called by trace_entry_ring with interrupts off. Where
 * the machine has NMIs, one may interrupt anything that writes the ring, this
 * too: with PREEMPT_NMI in the context it may only count the loss.
 * context: preempt_count's low 16 bits with bit 15 (RESCHED) as is, and
 * RING_CONTEXT_IRQS_OFF set if interrupts were off at the site.
 */
void trace_ring_slow(unsigned long ip, unsigned long parent, u32 context);

/*
 * Supplied by the tracer where RECORD=runtime (RECORD_RUNTIME is then defined):
 * trace_stub calls it for every call that boot has not converted, with the
 * compiled call's return address and every register kept that the ABI may carry
 * at a site. Any context but NMI, where the stub returns at once; no site.
 */
void site_seen(unsigned long ip);

#include <arch_trace_inline.h>

#endif
