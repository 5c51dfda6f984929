/* SPDX-License-Identifier: MIT */
/* arm64: the inline half of arch/arch.h. */
#ifndef ARCH_ARM64_ARCH_INLINE_H
#define ARCH_ARM64_ARCH_INLINE_H

#include <frame.h>
#include <layout.h>
#include <regs.h>

#define arch_protects_text true

/* Has the CPU a counter of cycles? Set by arch_clock_init(). */
extern bool arm64_has_cycles;

/* ---- Between the port's own files: nothing else uses these --------------- */

void trap_vectors(void); /* entry.S */
void trap_handler(struct trap_frame *f);
void task_first(void);
void gic_enable(u32 irq); /* irq.c, to the calling CPU */
void gic_interrupt(void);
/* The GIC signals no other interrupt to the calling CPU, or all again. */
void gic_timer_alone(bool alone);
void timer_silence(void);	    /* clock.c */
void arm64_relax(bool deaf);	    /* interrupts off */
extern char boot_stack[STACK_SIZE]; /* start.S. A page below it is its guard */
extern char boot_stack_guard[];
void secondary_start(void); /* secondary.S */
extern u64 arm64_root[];    /* mmu.c: the kernel's page tables */

/* ---- The contract -------------------------------------------------------- */

static inline struct cpu *arch_this_cpu(void)
{
	struct cpu *cpu;

	/* Volatile: after a task switch the answer may be another. */
	asm volatile("mov %0, x28" : "=r"(cpu));
	return cpu;
}

static inline struct task *arch_current(void)
{
	struct task *t;

	asm volatile("ldr %0, [x28, %1]" : "=r"(t) : "i"(CPU_HEAD_CURRENT));
	return t;
}

static inline void arch_set_current(struct task *t)
{
	((struct cpu_head *)arch_this_cpu())->current = t;
}

static inline irq_state_t arch_irq_save(void)
{
	unsigned long old;

	asm volatile("mrs %0, daif\n\tmsr daifset, %1"
		     : "=r"(old)
		     : "i"(DAIF_SET_I)
		     : "memory");
	return (irq_state_t){ old & DAIF_I };
}

static inline void arch_irq_enable(void)
{
	asm volatile("msr daifclr, %0" ::"i"(DAIF_SET_I) : "memory");
}

static inline void arch_irq_restore(irq_state_t state)
{
	if (!state.opaque)
		arch_irq_enable();
	else
		asm volatile("msr daifset, %0" ::"i"(DAIF_SET_I) : "memory");
}

static inline bool arch_irq_was_off(irq_state_t state)
{
	return state.opaque;
}

static inline void arch_cpu_relax(void)
{
	irq_state_t state = arch_irq_save();

	arm64_relax(arch_irq_was_off(state));
	/* Inline, so that the function that waits takes the interrupt that ended it. */
	arch_irq_restore(state);
}

static inline bool arch_irqs_off(void)
{
	return reg_read(daif) & DAIF_I;
}

/* The isb: the counter may otherwise be read before earlier instructions have run. */
static inline u64 arch_clock(void)
{
	insn_sync();
	return reg_read(cntvct_el0);
}

static inline u64 arch_instructions(void)
{
	return arm64_has_cycles ? reg_read(pmccntr_el0) : arch_clock();
}

static inline u64 arch_virt_to_phys(const void *va)
{
	return (u64)va - KERNEL_OFFSET;
}

static inline void *arch_phys_to_virt(u64 pa)
{
	return (void *)(pa + KERNEL_OFFSET);
}

static inline unsigned long arch_frame_pc(const struct trap_frame *f)
{
	return f->pc;
}

static inline unsigned long arch_frame_boundary(const struct trap_frame *f)
{
	return arch_frame_pc(f);
}

static inline void arch_frame_set_pc(struct trap_frame *f, unsigned long pc)
{
	f->pc = pc;
}

static inline void arch_frame_regs(const struct trap_frame *f,
				   struct unwind_regs *r)
{
	*r = (struct unwind_regs){
		.pc = f->pc,
		.sp = f->reg[REG_SP],
		.link = f->reg[REG_LR],
		.alt = f->reg[REG_IP],
	};
}

static inline void arch_context_regs(const struct arch_context *c,
				     struct unwind_regs *r)
{
	r->pc = c->lr;
	r->sp = c->sp;
}

#endif
