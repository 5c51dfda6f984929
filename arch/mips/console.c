/* SPDX-License-Identifier: MIT */
/*
 * The console: malta's 16550 at ISA 0x3f8, IRQ 4 of the i8259s (irq.c). All of it
 * is byte accesses, so it is the same in both byte orders.
 */
#include <arch/arch.h>

#define UART_SETS_SPEED true

#define UART_IN(reg) isa_in(UART + (reg))
#define UART_OUT(reg, value) isa_out(UART + (reg), value)
/* Waits however long the host takes to read: a byte that is not waited for is lost. */
#define UART_WAIT()
#include <arch/uart16550.h>

void arch_console_putc(char c)
{
	uart_put(c);
}

void arch_console_irq_enable(void)
{
	UART_OUT(UART_IER, UART_IER_RECEIVED);
}
