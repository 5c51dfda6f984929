/* SPDX-License-Identifier: MIT */
/* CPUs and tasks: start, idle, halt, first context. */
#include <arch/arch.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/sched/task.h>

const char arch_name[] = "arm64";

int arch_cpu_start(unsigned int cpu)
{
	struct cpu *c = &cpus[cpu];

	c->head.scratch[SCRATCH_START] =
		(unsigned long)c->idle->stack + STACK_SIZE;
	if (psci_call(PSCI_CPU_ON, c->hwid.id,
		      arch_virt_to_phys(secondary_start), (unsigned long)c))
		return -EIO;
	return 0;
}

void arch_cpu_idle(void)
{
	/* wfi ends when an interrupt is pending, even while they are masked. It
	 * is taken at the enabling. So none can slip in between. */
	asm volatile("dsb sy\n\twfi" ::: "memory");
	arch_irq_enable();
}

noreturn void arch_cpu_halt(void)
{
	arch_irq_disable();
	timer_silence();
	for (;;)
		asm volatile("wfi" ::: "memory");
}

noreturn void arch_cpu_park(void)
{
	arch_irq_disable();
	psci_call(PSCI_CPU_OFF, 0, 0, 0);
	arch_cpu_halt(); /* refused: it never counts as parked */
}

/* A CPU that is off runs no instruction. */
bool arch_cpu_parked(unsigned int cpu)
{
	return psci_call(PSCI_AFFINITY_INFO, cpus[cpu].hwid.id, 0, 0) ==
	       PSCI_IS_OFF;
}

/* Read-modify-write instructions have no form for one CPU alone. */
void arch_smp_atomics(bool smp)
{
	(void)smp;
}

void arch_task_init(struct task *t, void *stack_top)
{
	t->context = (struct arch_context){
		.lr = (unsigned long)task_first,
		.sp = (unsigned long)stack_top,
		.stack = (unsigned long)stack_top - STACK_SIZE,
	};
}
