/* SPDX-License-Identifier: MIT */
/* The inline part of the contract in arch.h. */
#ifndef X86_64_ARCH_INLINE_H
#define X86_64_ARCH_INLINE_H

#include <boot/boot_info.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

static inline struct cpu *arch_this_cpu(void)
{
	struct cpu *cpu;

	asm volatile("movq %%gs:%c1, %0" : "=r"(cpu) : "i"(CPU_HEAD_SELF));
	return cpu;
}

static inline struct task *arch_current(void)
{
	struct task *t;

	asm volatile("movq %%gs:%c1, %0" : "=r"(t) : "i"(CPU_HEAD_CURRENT));
	return t;
}

static inline void arch_set_current(struct task *t)
{
	((struct cpu_head *)arch_this_cpu())->current = t;
}

/* For this port: point the calling CPU's GS at its struct. */
static inline void set_this_cpu(struct cpu *cpu)
{
	struct cpu_head *head = (struct cpu_head *)cpu;

	head->self = head; /* arch_this_cpu() reads it */
	wrmsr(MSR_GS_BASE, (u64)cpu);
}

/*
 * An interrupt may come between the two, where the stack pointer is not where the
 * compiler thinks: the frame information has to say so (kernel/image/unwind.h).
 */
#define PUSH(insn) insn "\n\t.cfi_adjust_cfa_offset 8\n\t"
#define POP(insn) insn "\n\t.cfi_adjust_cfa_offset -8\n\t"

static inline irq_state_t arch_irq_save(void)
{
	irq_state_t state;

	asm volatile(PUSH("pushfq") POP("popq %0") "cli"
		     : "=r"(state.opaque)
		     :
		     : "memory");
	return state;
}

static inline void arch_irq_restore(irq_state_t state)
{
	asm volatile(PUSH("pushq %0") POP("popfq")
		     :
		     : "r"(state.opaque)
		     : "memory", "cc");
}

static inline void arch_irq_enable(void)
{
	asm volatile("sti" : : : "memory");
}

static inline bool arch_irq_was_off(irq_state_t state)
{
	return !(state.opaque & RFLAGS_IF);
}

static inline bool arch_irqs_off(void)
{
	unsigned long flags;

	asm volatile(PUSH("pushfq") POP("popq %0") : "=r"(flags) : : "memory");
	return !(flags & RFLAGS_IF);
}

extern bool clock_naps; /* these three: clock.c */
void clock_icount_yield(void);
bool clock_nap(void);

static inline void arch_cpu_relax(void)
{
	if (boot_info.icount)
		clock_icount_yield();
	else if (!clock_naps || !clock_nap())
		asm volatile("pause" : : : "memory");
}

static inline u64 rdtsc(void)
{
	u32 lo, hi;

	asm volatile("rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return (u64)hi << 32 | lo;
}

/* LFENCE: else the counter may be read before earlier loads, and a time taken
 * on another CPU and handed over in memory would seem to lie in the future. */
static inline u64 arch_clock(void)
{
	asm volatile("lfence" : : : "memory");
	return rdtsc();
}

/* Under -icount QEMU's TSC is guest time in nanoseconds: one an instruction. */
static inline u64 arch_instructions(void)
{
	return rdtsc();
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
	return f->rip;
}

static inline unsigned long arch_frame_boundary(const struct trap_frame *f)
{
	return arch_frame_pc(f);
}

static inline void arch_frame_set_pc(struct trap_frame *f, unsigned long pc)
{
	f->rip = pc;
}

static inline void arch_frame_regs(const struct trap_frame *f,
				   struct unwind_regs *r)
{
	*r = (struct unwind_regs){ .pc = f->rip, .sp = f->rsp };
}

static inline void arch_context_regs(const struct arch_context *c,
				     struct unwind_regs *r)
{
	const struct switch_frame *s = (const struct switch_frame *)c->sp;

	r->pc = s->ret;
	r->sp = (unsigned long)(s + 1);
}

#endif
