/* SPDX-License-Identifier: MIT */
/* CPUs and tasks: starting a VP, halting one, a new task's context. */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/sched/task.h>

const char arch_name[] = "mips";

struct secondary_boot secondary_boot[GCR_VPS];

/*
 * A VP leaves reset at its BEV base, which must be 4 KiB aligned and is entered
 * through kseg1 or kseg0. There secondary_entry takes its stack and struct cpu
 * from secondary_boot[]. All VPs are of the boot CPU's core, so that its caches
 * are in use and coherent already, and the bit number in VP_RUN is the VP's.
 */
int arch_cpu_start(unsigned int cpu)
{
	const struct boot_port *port = &boot_info.port;
	struct cpu *c = &cpus[cpu];
	u32 vp = c->hwid.id;
	irq_state_t state;

	if (!port->cpc || vp >= GCR_VPS)
		return -EIO;
	secondary_boot[vp] = (struct secondary_boot){
		.cpu = c,
		.sp = (u32)c->idle->stack + TASK_STACK_SIZE - 16,
		.config = read_c0(C0_CONFIG),
	};
	/* CL_OTHER is the calling VP's own: no other may do the second half. */
	state = arch_irq_save();
	reg_write(port->gcr, GCR_CL_OTHER, vp);
	reg_write(port->gcr, GCR_CO_RESET_BASE,
		  ((u32)secondary_entry & 0x1ffff000) | KSEG0);
	arch_irq_restore(state);
	/* sync: the words that the VP will read are in memory before it runs. */
	asm volatile("sync" : : : "memory");
	reg_write(port->cpc, CPC_CL_VP_RUN, 1u << vp);
	return 0;
}

/* Count stops too, because its interrupts would find no handler. */
noreturn void arch_cpu_halt(void)
{
	arch_irq_disable();
	write_c0(C0_CAUSE, CAUSE_DC);
	for (;;)
		asm volatile("wait" : : : "memory");
}

/*
 * A VP stops itself. Starting it resets it, CP0 and all. Its own Count starts
 * anew then, which the timer alone reads, relative to now. The clock is the GIC's
 * counter, which goes on. Count stands meanwhile and interrupts are off: in
 * QEMU one that is taken would wake a stopped VP. VP_RUNNING is clear from the
 * store on, a few instructions before the VP stands: those use registers alone.
 */
noreturn void arch_cpu_park(void)
{
	const struct boot_port *port = &boot_info.port;

	arch_irq_disable();
	write_c0(C0_CAUSE, CAUSE_DC);
	/* sync: its last stores are in memory before another CPU sees it parked.
	 * Pairs with the acquire in arch_cpu_parked(). */
	asm volatile("	.set push\n"
		     "	.set noreorder\n"
		     "	sync\n"
		     "	sw	%0, %1\n"
		     "1:	wait\n"
		     "	b	1b\n"
		     "	nop\n"
		     "	.set pop\n"
		     :
		     : "r"(1u << arch_this_cpu()->hwid.id),
		       "m"(*(volatile u32 *)(port->cpc + CPC_CL_VP_STOP))
		     : "memory");
	__builtin_unreachable();
}

bool arch_cpu_parked(unsigned int cpu)
{
	u32 running = reg_read(boot_info.port.cpc, CPC_CL_VP_RUNNING);

	/* Acquire: pairs with the sync in arch_cpu_park(). */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return !(running & 1u << cpus[cpu].hwid.id);
}

/* ll and sc have no cheaper form for one CPU. */
void arch_smp_atomics(bool smp)
{
	(void)smp;
}

void arch_task_init(struct task *t, void *stack_top)
{
	t->context = (struct arch_context){
		.sp = (u32)stack_top - 16, /* o32: room for a0..a3 */
		.ra = (u32)task_entry,
	};
}
