/* SPDX-License-Identifier: MIT */
/* The console: COM1, a 16550. */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/console.h>

#define UART_SETS_SPEED true

#define UART_IN(reg) inb(COM1 + (reg))
#define UART_OUT(reg, value) outb(COM1 + (reg), value)
#define UART_WAIT() arch_cpu_relax()
#include <arch/uart16550.h>

void arch_console_putc(char c)
{
	uart_put(c);
}

void arch_console_irq_enable(void)
{
	ioapic_route(boot_info.port.console_gsi, VECTOR_CONSOLE,
		     boot_info.port.console_level, boot_info.port.console_low);
	UART_OUT(UART_IER, UART_IER_RECEIVED);
}
