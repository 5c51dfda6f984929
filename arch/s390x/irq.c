/* SPDX-License-Identifier: MIT */
/*
 * External interrupts: there is no controller. Each CPU says in control register 0 which ones it
 * takes. The service processor's come to any CPU that takes them, which is the boot CPU.
 */
#include <arch/arch.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>

#define EVENT_PENDING                                                          \
	1 /* of the service processor's parameter: something to read */

void arch_irq_init(void)
{
	control_load0(CR0_KERNEL | CR0_EMERGENCY | CR0_CLOCK |
		      (control_read0() & CR0_SERVICE));
}

void arch_console_irq_enable(void)
{
	control_load0(control_read0() | CR0_SERVICE);
}

/* The service processor also interrupts when it has carried out a call: that is no event. */
void external_interrupt(const struct trap_frame *f)
{
	switch (f->cause & 0xffff) {
	case EXTERNAL_CLOCK:
		timer_silence();
		irq_event(IRQ_TIMER);
		break;
	case EXTERNAL_EMERGENCY:
		if (irq_may_end())
			arch_cpu_halt();
		irq_event(IRQ_IPI);
		break;
	case EXTERNAL_SERVICE:
		if (f->cause >> 32 & EVENT_PENDING)
			irq_event(IRQ_CONSOLE);
		break;
	default:
		irq_event(IRQ_SPURIOUS);
	}
}

/* SIGNAL PROCESSOR serialises: earlier stores are visible to the CPU that takes the interrupt. */
void arch_ipi_send(unsigned int cpu)
{
	sigp_order(cpus[cpu].hwid.id, SIGP_EMERGENCY, 0);
}

int arch_nmi_send(unsigned int cpu)
{
	(void)cpu;
	return -ENOSYS;
}
