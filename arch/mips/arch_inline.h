/* SPDX-License-Identifier: MIT */
/* The inline half of arch.h: CPU register, interrupts, clock, addresses. */
#ifndef ARCH_INLINE_H
#define ARCH_INLINE_H

#include <frame.h>
#include <layout.h>
#include <regs.h>

/* The registers that a call preserves, less gp (cpu_head.h): s0..s7, s8, sp, ra. */
struct arch_context {
	u32 s[9];
	u32 sp, ra;
};

static_assert(offsetof(struct arch_context, s[8]) == CONTEXT_S(8), "asm");
static_assert(offsetof(struct arch_context, sp) == CONTEXT_SP, "asm");
static_assert(offsetof(struct arch_context, ra) == CONTEXT_RA, "asm");

/* The register itself, so that a field of the CPU's costs one load from it and no copy. */
static inline struct cpu *arch_this_cpu(void)
{
	register struct cpu *cpu asm("$28");

	asm volatile("" : "=r"(cpu));
	return cpu;
}

static inline struct task *arch_current(void)
{
	struct task *task;

	asm volatile("lw %0, %1($28)" : "=r"(task) : "i"(CPU_HEAD_CURRENT));
	return task;
}

static inline void arch_set_current(struct task *t)
{
	((struct cpu_head *)arch_this_cpu())->current = t;
}

/* ehb: no interrupt comes at an instruction behind it. */
static inline irq_state_t arch_irq_save(void)
{
	irq_state_t state;

	asm inline volatile(WITH_EHB("di %0")
			    : "=r"(state.opaque)
			    :
			    : "memory");
	return state;
}

static inline void arch_irq_enable(void)
{
	asm inline volatile(WITH_EHB("ei") : : : "memory");
}

static inline void arch_irq_restore(irq_state_t state)
{
	if (state.opaque & STATUS_IE)
		arch_irq_enable();
	else
		arch_irq_save();
}

static inline bool arch_irq_was_off(irq_state_t state)
{
	return !(state.opaque & STATUS_IE);
}

static inline bool arch_irqs_off(void)
{
	return !(read_c0(C0_STATUS) & STATUS_IE);
}

/*
 * The clock: 32 bits from the GIC's shared counter, or from Count where there is no
 * GIC, and a high word in memory. Bit 31 of that word says which half of the low word's
 * range it was last seen with. A CPU that reads the other half carries. That is right
 * as long as some CPU reads the clock in every half (21 s of the GIC's at 100 MHz), and
 * every CPU's timer makes it (clock.c). While the host stops the machine no CPU does. Then the
 * clock may lack whole turns, but it does not go back.
 */
struct clock_words {
	u32 high;
	/*
	 * The low word that a CPU has read last. The host may stop the whole machine for longer
	 * than half a turn, and no CPU looks meanwhile. A low word that is less, in the same half,
	 * shows that, to the trampolines too. They do not store theirs.
	 */
	u32 seen;
	volatile u32 *counter; /* NULL: Count */
	u32 turns;	       /* high without its first bit, for trampolines */
};
/* One struct, so that the compiler needs one base for all that a reading loads and stores. */
extern struct clock_words arch_clock_words;

/* The clock where the high word is out of date: stores the new one. Any context. */
u64 arch_clock_carry(void);

static inline u32 arch_clock_low(void)
{
	volatile u32 *counter = arch_clock_words.counter;

	return counter ? *counter : read_c0(C0_COUNT);
}

static inline u64 arch_clock(void)
{
	/* In this order: the low word is later than the one that was seen. */
	u32 seen = READ_ONCE(arch_clock_words.seen);
	u32 high = READ_ONCE(arch_clock_words.high);
	u32 low = arch_clock_low();
	u32 turns = high & 0x7fffffff;

	/* Either sign: another half than that of the high word, or less than a CPU has seen. */
	if (__builtin_expect((s32)((high ^ low) | (low - seen)) < 0, 0))
		return arch_clock_carry();
	WRITE_ONCE(arch_clock_words.seen, low);
	return (u64)turns << 32 | low;
}

extern u32 arch_ns_per_tick; /* a whole number, set by boot/mips */

#define READ_COUNT(to) READ_C0(to, C0_COUNT)
#define READ_C0(to, reg) "mfc0 " to ", " C0_STRING(reg) "\n\t"

/*
 * Under icount shift=0 one instruction is 1 ns, but the clock ticks every 6 ns
 * (Count) or 10 ns (GIC). Reads of Count one instruction apart show how far the
 * tick is: that many of them still give the first one's value. With more than
 * one CPU the clock is the GIC's, and this goes in steps of a tick.
 */
static inline u64 arch_instructions(void)
{
	u32 a, b, c, d, e, f;
	u64 ticks;

	asm volatile(READ_COUNT("%0") READ_COUNT("%1") READ_COUNT("%2")
			     READ_COUNT("%3") READ_COUNT("%4") READ_COUNT("%5")
		     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d), "=&r"(e),
		       "=&r"(f));
	ticks = arch_clock();
	if (arch_clock_words.counter)
		return ticks * arch_ns_per_tick;
	ticks -= (u32)ticks - a;
	return (ticks + 1) * arch_ns_per_tick - 1 - (a == b) - (a == c) -
	       (a == d) - (a == e) - (a == f);
}

void arch_relax_nap(u32 status); /* clock.c */

/* Interrupts come back on inline, so that the function that waits takes the interrupt
 * that ended the nap. */
static inline void arch_cpu_relax(void)
{
	irq_state_t state = arch_irq_save();

	arch_relax_nap(state.opaque);
	arch_irq_restore(state);
}

static inline u64 arch_virt_to_phys(const void *va)
{
	return (u32)va - KSEG0;
}

static inline void *arch_phys_to_virt(u64 pa)
{
	return (void *)((u32)pa + KSEG0);
}

static inline unsigned long arch_frame_pc(const struct trap_frame *f)
{
	return f->epc;
}

static inline unsigned long arch_frame_boundary(const struct trap_frame *f)
{
	return f->cause & CAUSE_BD ? f->epc + 4 : f->epc;
}

/* EPC alone: with Cause.BD it is the branch, which the return runs again. */
static inline void arch_frame_set_pc(struct trap_frame *f, unsigned long pc)
{
	f->epc = pc;
}

static inline void arch_frame_regs(const struct trap_frame *f,
				   struct unwind_regs *r)
{
	*r = (struct unwind_regs){
		.pc = f->epc,
		.sp = f->reg[REG_SP],
		.link = f->reg[REG_RA],
		.alt = f->reg[REG_AT],
	};
}

static inline void arch_context_regs(const struct arch_context *c,
				     struct unwind_regs *r)
{
	r->pc = c->ra;
	r->sp = c->sp;
}

/* Between files of this port. */
void trap_handle(struct trap_frame *f);	 /* trap.c, from entry.S */
void irq_dispatch(struct trap_frame *f); /* irq.c: Cause.ExcCode 0 */
void clock_interrupt(void);		 /* clock.c */
u64 clock_measure(void);		 /* clock.c: ticks a second, or 0 */
extern char idle_window[], idle_window_end[];
extern char relax_window[], relax_window_end[];
void relax_wait(void);
extern u32 trap_stack_span;
void task_entry(void);

/* Where the VPs that arch_cpu_start() starts find themselves: secondary.S. */
struct secondary_boot {
	struct cpu *cpu;
	u32 sp;
	u32 config; /* the boot CPU's: cache attribute of kseg0 */
	u32 pad;
};
static_assert(sizeof(struct secondary_boot) == 16, "asm: index << 4");
extern struct secondary_boot secondary_boot[]; /* by VP number */
void secondary_entry(void);

#endif
