/* SPDX-License-Identifier: MIT */
/* RISC-V: the inline half of arch/arch.h. */
#ifndef ARCH_RISCV_ARCH_INLINE_H
#define ARCH_RISCV_ARCH_INLINE_H

#include <frame.h>
#include <layout.h>
#include <regs.h>

#define arch_protects_text true

/* Does the firmware let supervisor mode read instret? Set by arch_clock_init(). */
extern bool riscv_has_instret;

/* ---- Between the port's own files: nothing else uses these --------------- */

void trap_entry(void); /* entry.S */
void trap_handler(struct trap_frame *f, bool stack_lost);
void task_first(void);
bool csr_probe_instret(void);
bool csr_probe_stimecmp(void);
void plic_enable(u32 irq); /* irq.c, to the calling CPU */
void plic_interrupt(void);
void ipi_acknowledge(void);
void timer_silence(void);	    /* clock.c */
void riscv_relax(bool deaf);	    /* interrupts off */
extern char boot_stack[STACK_SIZE]; /* start.S. A page below it is its guard */
extern char boot_stack_guard[];
void secondary_start(void);	   /* secondary.S */
extern struct cpu *riscv_starting; /* cpu.c: the CPU that start.S sends there */
extern u64 riscv_satp; /* mmu.c: the kernel's page tables, for secondary.S */

/* ---- The contract -------------------------------------------------------- */

static inline struct cpu *arch_this_cpu(void)
{
	struct cpu *cpu;

	/* Volatile: after a task switch the answer may be another. */
	asm volatile("mv %0, tp" : "=r"(cpu));
	return cpu;
}

static inline struct task *arch_current(void)
{
	struct task *t;

	asm volatile("ld %0, %1(tp)" : "=r"(t) : "i"(CPU_HEAD_CURRENT));
	return t;
}

static inline void arch_set_current(struct task *t)
{
	((struct cpu_head *)arch_this_cpu())->current = t;
}

static inline irq_state_t arch_irq_save(void)
{
	unsigned long old;

	asm volatile("csrrci %0, sstatus, %1"
		     : "=r"(old)
		     : "i"(SSTATUS_SIE)
		     : "memory");
	return (irq_state_t){ old & SSTATUS_SIE };
}

static inline void arch_irq_enable(void)
{
	csr_set(sstatus, SSTATUS_SIE);
}

static inline void arch_irq_restore(irq_state_t state)
{
	if (state.opaque)
		arch_irq_enable();
	else
		arch_irq_save();
}

static inline bool arch_irq_was_off(irq_state_t state)
{
	return !state.opaque;
}

static inline void arch_cpu_relax(void)
{
	irq_state_t state = arch_irq_save();

	riscv_relax(arch_irq_was_off(state));
	/* Inline, so that the function that waits takes the interrupt that ended it. */
	arch_irq_restore(state);
}

static inline bool arch_irqs_off(void)
{
	return !(csr_read(sstatus) & SSTATUS_SIE);
}

static inline u64 arch_clock(void)
{
	return csr_read(time);
}

static inline u64 arch_instructions(void)
{
	return riscv_has_instret ? csr_read(instret) : csr_read(time);
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
	return f->reg[0];
}

static inline unsigned long arch_frame_boundary(const struct trap_frame *f)
{
	return arch_frame_pc(f);
}

static inline void arch_frame_set_pc(struct trap_frame *f, unsigned long pc)
{
	f->reg[0] = pc;
}

static inline void arch_frame_regs(const struct trap_frame *f,
				   struct unwind_regs *r)
{
	*r = (struct unwind_regs){
		.pc = f->reg[0],
		.sp = f->reg[REG_SP],
		.link = f->reg[REG_RA],
		.alt = f->reg[REG_T0],
	};
}

static inline void arch_context_regs(const struct arch_context *c,
				     struct unwind_regs *r)
{
	r->pc = c->ra;
	r->sp = c->sp;
}

#endif
