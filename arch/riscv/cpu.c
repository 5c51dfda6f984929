/* SPDX-License-Identifier: MIT */
/* CPUs and tasks: start, idle, halt, first context. */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/sched/task.h>

const char arch_name[] = "riscv";

struct cpu *riscv_starting;

int arch_cpu_start(unsigned int cpu)
{
	struct cpu *c = &cpus[cpu];

	c->head.scratch[SCRATCH_START] =
		(unsigned long)c->idle->stack + STACK_SIZE;
	riscv_starting = c;
	if (sbi_call(SBI_HSM, SBI_HSM_START, c->hwid.id,
		     arch_virt_to_phys(secondary_start), (unsigned long)c, 0))
		return -EIO;
	return 0;
}

void arch_cpu_idle(void)
{
	/* wfi ends when an interrupt is pending, even while they are off. It
	 * is taken at the enabling. So none can slip in between. */
	asm volatile("wfi" ::: "memory");
	arch_irq_enable();
}

noreturn void arch_cpu_halt(void)
{
	arch_irq_disable();
	csr_write(sie, 0);
	for (;;)
		asm volatile("wfi" ::: "memory");
}

noreturn void arch_cpu_park(void)
{
	arch_irq_disable();
	sbi_call(SBI_HSM, SBI_HSM_STOP, 0, 0, 0, 0);
	arch_cpu_halt(); /* refused: it never counts as parked */
}

/* A stopped hart runs in the firmware's memory alone, on its own stack there. */
bool arch_cpu_parked(unsigned int cpu)
{
	struct sbi_answer a =
		sbi_ask(SBI_HSM, SBI_HSM_STATUS, cpus[cpu].hwid.id, 0, 0, 0);

	return !a.error && a.value == SBI_HSM_STOPPED;
}

/* Read-modify-write instructions have no form for one CPU alone. */
void arch_smp_atomics(bool smp)
{
	(void)smp;
}

void arch_task_init(struct task *t, void *stack_top)
{
	t->context = (struct arch_context){
		.ra = (unsigned long)task_first,
		.sp = (unsigned long)stack_top,
		.stack = (unsigned long)stack_top - STACK_SIZE,
	};
}
