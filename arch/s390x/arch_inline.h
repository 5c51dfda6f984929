/* SPDX-License-Identifier: MIT */
/* s390x: the inline half of arch/arch.h. */
#ifndef ARCH_S390X_ARCH_INLINE_H
#define ARCH_S390X_ARCH_INLINE_H

#include <frame.h>
#include <layout.h>
#include <regs.h>

#define arch_protects_text true

/* ---- Between the port's own files: nothing else uses these --------------- */

void trap_vectors(void); /* entry.S: program interruptions, and the others */
void trap_external(void);
void trap_machine(void);
void trap_handler(struct trap_frame *f);
void task_first(void);
void external_interrupt(const struct trap_frame *f); /* irq.c */
bool irq_may_end(void);
void timer_silence(void); /* clock.c */
void s390_relax(void);
extern char boot_stack[STACK_SIZE]; /* start.S. A page below it is its guard */
extern char boot_stack_guard[];
extern u64 kernel_root[], image_segments[], image_pages[];
void secondary_start(void); /* secondary.S */
extern char lowcores[][LOWCORE_SIZE];
extern u64 s390_asce; /* the kernel's page tables */

/* The CPU's own assigned storage: a PSW there. */
static inline struct psw *low_psw(unsigned int at)
{
	return (struct psw *)(KERNEL_OFFSET + at);
}

/* ---- The contract -------------------------------------------------------- */

static inline struct cpu *arch_this_cpu(void)
{
	struct cpu *cpu;

	/* Volatile: after a task switch the answer may be another. */
	asm volatile("lg %0,%1" : "=d"(cpu) : "i"(LC_CPU));
	return cpu;
}

static inline struct task *arch_current(void)
{
	struct task *t;

	asm volatile("lg %0,%1" : "=d"(t) : "i"(LC_CURRENT));
	return t;
}

static inline void arch_set_current(struct task *t)
{
	((struct cpu_head *)arch_this_cpu())->current = t;
	asm volatile("stg %0,%1" ::"d"(t), "i"(LC_CURRENT) : "memory");
}

static inline irq_state_t arch_irq_save(void)
{
	u8 old;

	asm volatile("stnsm %0,%1"
		     : "=Q"(old)
		     : "i"(PSW_EXTERNAL_OFF)
		     : "memory");
	return (irq_state_t){ !(old & PSW_EXTERNAL_BIT) };
}

static inline void arch_irq_enable(void)
{
	u8 old;

	asm volatile("stosm %0,%1"
		     : "=Q"(old)
		     : "i"(PSW_EXTERNAL_BIT)
		     : "memory");
}

static inline void arch_irq_restore(irq_state_t state)
{
	if (!state.opaque)
		arch_irq_enable();
	else
		arch_irq_save();
}

static inline void arch_cpu_relax(void)
{
	irq_state_t state = arch_irq_save();

	s390_relax();
	/* Inline, so that the function that waits takes the interrupt that ended it. */
	arch_irq_restore(state);
}

static inline bool arch_irq_was_off(irq_state_t state)
{
	return state.opaque;
}

static inline bool arch_irqs_off(void)
{
	u32 high;

	asm volatile("epsw %0,0" : "=d"(high)::"memory");
	return !(high & PSW_EXTERNAL >> 32);
}

static inline u64 arch_clock(void)
{
	u64 now;

	asm volatile("stckf %0" : "=Q"(now)::"cc");
	return now;
}

/* Under -icount an instruction takes a nanosecond, of which the clock counts 4.096 parts. */
static inline u64 arch_instructions(void)
{
	return (unsigned __int128)arch_clock() * 125 >> 9;
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
		.sp = f->reg[REG_SP] + SAVE_AREA,
		.link = f->reg[REG_LINK],
		.alt = f->reg[REG_IP],
	};
}

static inline void arch_context_regs(const struct arch_context *c,
				     struct unwind_regs *r)
{
	r->pc = c->reg[REG_LINK - 6];
	r->sp = c->reg[REG_SP - 6] + SAVE_AREA;
}

#endif
