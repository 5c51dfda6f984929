/* SPDX-License-Identifier: MIT */
/* The console: an ns16550, or the firmware's before the device tree is read. */
#include <arch/arch.h>
#include <boot/boot_info.h>

#define UART_SETS_SPEED false

static u64 uart_address(unsigned int reg)
{
	const struct boot_port *p = &boot_info.port;

	return (u64)arch_phys_to_virt(p->uart) + ((u64)reg << p->uart_shift);
}

#define UART_IN(reg) mmio_read8(uart_address(reg))
#define UART_OUT(reg, value) mmio_write8(uart_address(reg), value)
#define UART_WAIT() arch_cpu_relax()
#include <arch/uart16550.h>

void arch_console_putc(char c)
{
	if (boot_info.port.uart)
		uart_put(c);
	else
		sbi_call(SBI_CONSOLE_PUTCHAR, 0, (u8)c, 0, 0, 0);
}

void arch_console_irq_enable(void)
{
	UART_OUT(UART_IER, UART_IER_RECEIVED);
	plic_enable(boot_info.port.uart_irq);
}
