/* SPDX-License-Identifier: MIT */
/* CPUs and tasks: start, idle, halt, park, first context. */
#include <arch/arch.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/sched/task.h>

const char arch_name[] = "s390x";

/* Real addresses below LOWCORE_SIZE are here, by CPU index. */
char lowcores[MAX_CPUS][LOWCORE_SIZE] __attribute__((aligned(LOWCORE_SIZE)));
CPU_ARRAY(lowcores);

static bool parked[MAX_CPUS];

/* Its first start. The CPU is stopped, and runs nothing. */
static int start_first(unsigned int cpu)
{
	struct cpu *c = &cpus[cpu];
	char *low = lowcores[cpu];

	*(struct psw *)(low + LOW_RESTART_NEW) =
		(struct psw){ PSW_64, arch_virt_to_phys(secondary_start) };
	*(struct cpu **)(low + LC_CPU) = c;
	if (sigp_order(c->hwid.id, SIGP_SET_PREFIX, arch_virt_to_phys(low)) ||
	    sigp_order(c->hwid.id, SIGP_RESTART, 0))
		return -EIO;
	return 0;
}

/*
 * A CPU that has run is never stopped or reset by another: QEMU 7.2 hangs where such an order
 * meets a CPU that flushes translations.
 */
int arch_cpu_start(unsigned int cpu)
{
	struct cpu *c = &cpus[cpu];

	c->head.scratch[SCRATCH_START] =
		(unsigned long)c->idle->stack + STACK_SIZE - SAVE_AREA;
	if (!__atomic_exchange_n(&parked[cpu], false, __ATOMIC_ACQ_REL))
		return start_first(cpu);
	return sigp_order(c->hwid.id, SIGP_CALL, 0) ? -EIO : 0;
}

/* One instruction waits and enables. The trap's return goes on behind it, for it clears the
 * wait in the PSW. */
void arch_cpu_idle(void)
{
	struct psw wait = { PSW_KERNEL_WAIT, 0 };

	asm volatile("larl	%%r1,1f\n\t"
		     "stg	%%r1,8+%0\n\t"
		     "lpswe	%0\n"
		     "1:"
		     : "+Q"(wait)
		     :
		     : "r1", "memory");
}

/* With no interrupt that could end it. Were every CPU in a disabled wait, QEMU would end. */
static noreturn void wait_enabled(u64 classes)
{
	static const struct psw wait = { PSW_KERNEL_WAIT, 0 };

	control_load0(classes);
	asm volatile("lpswe %0" ::"Q"(wait) : "memory");
	__builtin_unreachable();
}

noreturn void arch_cpu_halt(void)
{
	arch_irq_disable();
	timer_silence();
	wait_enabled(CR0_KERNEL);
}

/* The only interrupt that it takes starts it anew, at a real address, with paging off. */
noreturn void arch_cpu_park(void)
{
	arch_irq_disable();
	timer_silence();
	*low_psw(LOW_EXTERNAL_NEW) =
		(struct psw){ PSW_64, arch_virt_to_phys(secondary_start) };
	__atomic_store_n(&parked[cpu_index()], true, __ATOMIC_RELEASE);
	wait_enabled(CR0_KERNEL | CR0_CALL);
}

/* Acquire: the CPU's stores before it parked. */
bool arch_cpu_parked(unsigned int cpu)
{
	return __atomic_load_n(&parked[cpu], __ATOMIC_ACQUIRE);
}

/* Read-modify-write instructions have no form for one CPU alone. */
void arch_smp_atomics(bool smp)
{
	(void)smp;
}

void arch_task_init(struct task *t, void *stack_top)
{
	t->context = (struct arch_context){
		.stack = (unsigned long)stack_top - STACK_SIZE,
	};
	t->context.reg[REG_LINK - 6] = (unsigned long)task_first;
	t->context.reg[REG_SP - 6] = (unsigned long)stack_top - SAVE_AREA;
}
