/* SPDX-License-Identifier: MIT */
/*
 * The PLIC, which brings the console's interrupt to the boot CPU, and the
 * inter-processor interrupt, which is the firmware's. (SiFive PLIC 1.0.0.)
 */
#include <arch/arch.h>
#include <arch/uart16550.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>

#define PLIC_PRIORITY(irq) (4ul * (irq))
#define PLIC_ENABLE(context) (0x2000ul + 0x80ul * (context))
#define PLIC_THRESHOLD(context) (0x200000ul + 0x1000ul * (context))
#define PLIC_CLAIM(context) (PLIC_THRESHOLD(context) + 4)

static u64 plic_address(u64 offset)
{
	return (u64)arch_phys_to_virt(boot_info.port.plic) + offset;
}

static u32 this_context(void)
{
	return boot_info.port.plic_context[cpu_index()];
}

void arch_irq_init(void)
{
	mmio_write32(plic_address(PLIC_THRESHOLD(this_context())), 0);
	csr_clear(sip, SIE_SSIE);
	csr_set(sie, SIE_SSIE | SIE_SEIE);
}

void plic_enable(u32 irq)
{
	u64 reg = plic_address(PLIC_ENABLE(this_context()) + irq / 32 * 4);

	mmio_write32(plic_address(PLIC_PRIORITY(irq)), 1);
	mmio_write32(reg, mmio_read32(reg) | 1u << irq % 32);
}

void plic_interrupt(void)
{
	u64 claim = plic_address(PLIC_CLAIM(this_context()));
	u32 irq = mmio_read32(claim);

	/* 0: another claimed it first, or the source fell silent. */
	if (irq == 0 || irq != boot_info.port.uart_irq)
		irq_event(IRQ_SPURIOUS);
	else
		uart_interrupt();
	if (irq)
		mmio_write32(claim, irq);
}

void arch_ipi_send(unsigned int cpu)
{
	/* sbi_call()'s fence pairs with the one in ipi_acknowledge(). */
	sbi_call(SBI_IPI, SBI_IPI_SEND, 1, cpus[cpu].hwid.id, 0, 0);
}

void ipi_acknowledge(void)
{
	/* Before the CPU reads the IPI's reasons: a later IPI sets the bit again. */
	csr_clear(sip, SIE_SSIE);
	asm volatile("fence rw, rw" ::: "memory");
}

int arch_nmi_send(unsigned int cpu)
{
	(void)cpu;
	return -ENOSYS;
}
