/* SPDX-License-Identifier: MIT */
/*
 * The contract's second half: the functions that a port supplies so that its sites can be found,
 * turned into NOPs, and switched while the machine runs. tracer/README.md explains
 * the words.
 *
 * A site is a fixed part plus ONE live instruction. arch_site_prepare() writes the
 * fixed part once, at boot, with no other CPU running. From then on only the live
 * instruction is ever written. So a preempted task either stands on the live
 * instruction, and will execute the new one as a whole, or nothing changes under
 * it. Each port's patch.c begins with the table of its sites, one row an
 * instruction: compiled, fixed, off, on.
 *
 * No function that these functions call may have a site: it could run while that
 * site changes. The build checks this. The tests are in arch/conform.
 */
#ifndef ARCH_ARCH_TRACE_H
#define ARCH_ARCH_TRACE_H

#include <arch/arch.h>

/*
 * NO_LAYOUT: the object is linked into kernels of every front end (Makefile). So it cannot
 * call the inline functions: the linker would not find them.
 */
#ifdef NO_LAYOUT
#define layout_inline extern
#else
#define layout_inline static inline
#endif

struct task_return; /* kernel/sched/task.h */

/*
 * A live instruction. There are two kinds. A function's site calls trace_entry when it
 * is on. A jump label (arch/jump_label.h) jumps to `target` when it is on. Both are
 * one instruction that does nothing when they are off.
 */
struct live {
	unsigned long at;
	unsigned long target; /* LIVE_CALL: a function's site */
};
#define LIVE_CALL 0ul

/*
 * Choose the instruction that costs this CPU least when a site is off, before any
 * site is prepared. `wanted` is the text of nop=, or NULL: then the port chooses by
 * CPUID or by measuring. Returns the choice for the boot line, "p6 0f1f440000", NULL
 * when wanted is none of arch_nop_names. Boot CPU, interrupts off.
 */
const char *arch_nop_select(const char *wanted);

/* The names that nop= takes, separated by blanks, for the error line. */
extern const char arch_nop_names[];

/*
 * The name of the site's format at `site` ("fentry", "mcount", as in make SITES=),
 * told by the bytes there alone, as the linker left them. NULL when they are none
 * that this port knows. The port must never guess, because a wrong answer becomes
 * a wild write. Any context.
 */
const char *arch_site_recognise(unsigned long site);

/* The bytes that arch_site_recognise() accepts, in words, for the line that names a bad site:
 * "e8 and the distance to __fentry__". */
extern const char arch_site_expected[];

/*
 * Boot: recognise the site, and write its fixed part and its live instruction "off"
 * through the alias site + delta (arch_text_open()). 0. -EINVAL: the bytes are not
 * recognised. -ERANGE: they are, but the trampoline is out of reach. On an error
 * nothing has been written. No other CPU and no other task runs. A target other than
 * LIVE_CALL says that this is a jump label, as JUMP_LABEL_INSN (attributes.h) leaves it.
 * It has no fixed part.
 */
int arch_site_prepare(unsigned long site, unsigned long target, long delta);

/* inline: the address of a prepared site's live instruction. */
layout_inline unsigned long arch_site_live(unsigned long site);

/* inline constant: from a site to where its live call returns to, in bytes. */
extern const unsigned int arch_site_length;

/*
 * inline: the bytes of the live instruction, on or off, in the low bits, as
 * arch_live_read() would return them.
 */
layout_inline u64 arch_live_bytes(struct live l, bool on);

/* inline: read the live instruction, or write it through the alias l.at + delta. Where
 * arch_live_word() says yes, it writes with one store. Elsewhere no other CPU may fetch the
 * instruction meanwhile. Neither synchronises. */
layout_inline u64 arch_live_read(struct live l);
layout_inline void arch_live_write(struct live l, long delta, u64 bytes);

/* inline constants: bytes of the live instruction of a site, and of a jump label. */
extern const unsigned int arch_live_length;
extern const unsigned int arch_jump_length;
/* inline constant: instructions of a live part. Where a front end has several, only strategy
 * `bypass` switches its sites. */
extern const unsigned int arch_live_insns;

/* ---- Without stopping any CPU -------------------------------------------- */

/*
 * Strategy `word`. inline: may ONE store replace the live instruction while other
 * CPUs fetch it, so that each of them executes the old or the new one as a whole? The
 * store may write neighbouring bytes with the values that they have.
 * arch_word_refused: NULL where the answer can be yes on this CPU, else why the
 * architecture promises it for no site. It is right from arch_nop_select() on.
 */
layout_inline bool arch_live_word(struct live l);
extern const char *arch_word_refused;

/*
 * Strategy `breakpoint`. A live instruction is a first unit and a tail. The first
 * unit has arch_break_length bytes, which one store can change wherever a site may
 * stand. The tail is empty where the unit is the whole instruction.
 * arch_break_insn: the breakpoint instruction that fits the unit, as arch_live_read()
 * would return it in the low bits. inline constants, both.
 */
extern const unsigned int arch_break_length;
extern const u64 arch_break_insn;

/*
 * Change f, whose pc is l.at, into the frame of a CPU that has just executed the live
 * instruction of state `on`. On: pc is the target, and of a call the return address is
 * where the site's ABI wants it. Off: pc is behind the instruction. Context: the
 * breakpoint's trap, inside an NMI too. No site.
 */
void arch_break_resume(struct trap_frame *f, struct live l, bool on);

/*
 * Supplied by the tracer. The port's trap calls it first, for every breakpoint
 * exception, with interrupts off, from code that has no site, and with
 * arch_frame_pc(f) at the breakpoint itself. true: the tracer has dealt with it, so
 * the port returns to f. false: the breakpoint is none of the tracer's, so it is a
 * fault like any other.
 */
bool patch_trap(struct trap_frame *f);

/*
 * Make kernel text writable for this CPU alone. Returns delta: text address a can be
 * written at a + delta until arch_text_close(). Until then interrupts stay off, and
 * no other mapping changes. Where text is not protected, delta is 0 and interrupts stay
 * as they are. No other CPU may ever be able to use the alias, and this CPU not after
 * the close.
 */
long arch_text_open(void);
void arch_text_close(void);

/*
 * inline: the step that a CPU must take for each changed address before its own instruction
 * fetch can be trusted (MIPS: synci). The CPU that has written the text does it
 * first, before it tells any other CPU to synchronise, because where caches are each
 * CPU's own the others would refill from old memory. A CPU that comes up does it for
 * all text, in steps of 16 bytes. Where this is empty,
 * arch_sync_each_site is false, so that callers need no loop.
 */
layout_inline void arch_text_sync_site(unsigned long a);
extern const bool arch_sync_each_site;

/*
 * The last step of each CPU after text was written anywhere, and after its calls of
 * arch_text_sync_site(). Afterwards this CPU executes the text in memory (fence.i, a
 * serialising instruction, sync and a hazard barrier). It is also the first thing
 * that a starting CPU does. Any context. No site.
 */
void arch_text_sync(void);

/* ---- Trampolines ---------------------------------------------------------- */

/*
 * In the port's trampoline.S. All of them keep every register that may carry
 * something at a function's entry under the ABI.
 *
 * trace_stub     compiled calls reach it before boot converts them. It returns as
 *                if the site were not there (on MIPS it also gives back the 8
 *                bytes of stack). Also called __fentry__ or _mcount.
 * trace_entry    live calls reach it. It loads trace_ops ONCE and jumps to its
 *                ->entry, which is one of the following.
 * trace_entry_off   returns at once: at most 10 instructions from site to return.
 * trace_entry_ring  records one 12-byte event (struct ring_event) with interrupts
 *                off. It stores ring.cur last, after the event's words, with a
 *                store-store fence where stores may pass each other. That pairs
 *                with the reader's acquire in ring_read.c: otherwise the reader
 *                prints the entries that have not been written yet. When ring.cur >= ring.calls,
 *                or the clock is 2^32 ticks or more past ring.base, it calls
 *                trace_ring_slow(ip, parent, flags) instead, but where ring.calls is
 *                RING_PASS it returns at once.
 * trace_entry_call  saves all registers, leaves interrupts as they were, and calls
 *                ops->func(ip, parent, ops).
 * trace_entry_choose  looks the call up in trace_in_c: bit ip / 4 % TRACE_IN_C_BITS. Goes on
 *                as trace_entry_call where the bit is set, else as trace_entry_ring. At most
 *                12 instructions before that.
 * trace_entry_return  saves all registers likewise and calls trace_take_return(ip,
 *                parent, ops, sp), which may let the function return to
 *                trace_return. sp is the stack pointer that the function has when
 *                the trampoline has returned to it.
 * trace_entry_graph  function_graph's call, with interrupts off: fills in the task's next
 *                struct task_return, adds one to nr_returns and graph_depth, writes one event
 *                (ring_event.h) with the same time, and has the function return to
 *                trace_return. When ring.cur >= ring.graph, the clock is 2^32 ticks or more
 *                past ring.base, the task has TASK_RETURNS, its graph_session is not the one
 *                that runs, the frame is not known (cpu_head.frames), or this is an NMI, it
 *                changes nothing and goes on as trace_entry_return. Where sites stand at a
 *                function's entry, each frame is known.
 * ip is the return address of the live call, parent that of the function.
 *
 * trace_return   where such a function returns to. It keeps every register that may
 *                hold a result. It writes function_graph's return, takes one from
 *                graph_depth and nr_returns, and goes on at the real return address, all
 *                with interrupts off. It calls trace_returned() instead, which says where to
 *                go on, when ring.cur >= ring.graph, the innermost taken return is not one of
 *                trace_ops, the clock is 2^32 ticks or more past ring.base, the call began
 *                before ring.base or took RING_TICKS_END ticks or more, returns_missed is not
 *                0, or this is an NMI.
 *                A stack walk that finds the address of trace_return where a
 *                return address should be looks among the task's taken returns
 *                (kernel/image/unwind.c).
 */
struct trace_ops {
	void (*entry)(void); /* first: the trampoline jumps through it */
	void (*func)(unsigned long ip, unsigned long parent,
		     struct trace_ops *ops);
	/* With trace_entry_return and trace_entry_graph: tracer/ops/returns.h. */
	bool (*enter)(struct task_return *r, unsigned int depth);
	void (*leave)(struct task_return *r, unsigned int depth);
};
/*
 * Data that a port's trampolines read beside trace_ops may stand here. All of it is in one block
 * of 32 bytes, aligned to that, so that one register can be the base of each load.
 */
#define DATA_ENTRY __attribute__((section(".data.entry")))
extern struct trace_ops *trace_ops;
/* Supplied by the tracer: the session of function_graph that runs, or 0. */
extern u32 graph_session;

/* Supplied by the tracer: which calls go to C. Bit n is in word n / 32, and changes at any
 * time. */
extern u32 trace_in_c[TRACE_IN_C_BITS / 32];

void trace_stub(void);
void trace_entry(void);
void trace_entry_off(void);
void trace_entry_ring(void);
void trace_entry_call(void);
void trace_entry_choose(void);
void trace_entry_return(void);
void trace_entry_graph(void);
void trace_return(void);
/* Behind the last trampoline. trace_entry is the first. */
extern const char trampoline_end[];

/*
 * inline constant: where trace_entry_return keeps the link register of the function
 * that it was called from, in bytes below the stack pointer that it hands to
 * trace_take_return(). The trampoline loads the register from there before it goes
 * back, so the function returns to the address that is stored there. This is used
 * for functions that have their return address in the link register at the site.
 * 0 where the machine has no link register.
 */
#ifndef arch_link_below
extern const unsigned long arch_link_below;
#endif

/*
 * Supplied by the tracer, called by the trampolines: tracer/ops/returns.c. The
 * second one stores the real return address at *place, where a walk has found
 * trace_return until then. At every instruction, either the stack slot or the task's
 * taken returns hold the real address.
 */
void trace_take_return(unsigned long ip, unsigned long parent,
		       struct trace_ops *ops, unsigned long sp);
void trace_returned(unsigned long *place);

/*
 * Supplied by the tracer, called by trace_entry_ring with interrupts off. Where the
 * machine has NMIs, one may interrupt any code that writes the ring, this function
 * included. So with PREEMPT_NMI in the context it may only count the loss.
 * context: the low 16 bits of preempt_count, with bit 15 (RESCHED) as it is, and
 * RING_CONTEXT_IRQS_OFF set if interrupts were off at the site.
 */
void trace_ring_slow(unsigned long ip, unsigned long parent, u32 context);

/*
 * Supplied by the tracer where RECORD=runtime (RECORD_RUNTIME is then defined for trampoline.S).
 * trace_stub calls it for every call that boot has not converted, with the compiled
 * call's return address, and keeps every register that the ABI may carry at a site.
 * In an NMI the stub returns at once instead. Any other context. No site.
 */
void site_seen(unsigned long ip);

#ifndef NO_LAYOUT
#include <arch_trace_inline.h>

/* The live instruction of a prepared function's site. */
static inline struct live live_of_site(unsigned long site)
{
	return (struct live){ arch_site_live(site), LIVE_CALL };
}

/* How many bytes it has. */
static always_inline unsigned int live_length(struct live l)
{
	return l.target ? arch_jump_length : arch_live_length;
}
#endif

#endif
