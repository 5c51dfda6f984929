/* SPDX-License-Identifier: MIT */
/*
 * The console: malta's 16550 at ISA 0x3f8, IRQ 4 of the i8259s (irq.c). All of it
 * is byte accesses, so it is the same in both byte orders.
 */
#include <arch/arch.h>

enum { UART_DATA, UART_IER, UART_FCR, UART_LCR, UART_MCR, UART_LSR };

#define IER_RECEIVED 0x01
#define FCR_ON_CLEAR 0x07 /* FIFOs on and empty, an interrupt for each byte */
#define LCR_8N1 0x03
#define LCR_DIVISOR 0x80
#define MCR_DTR_RTS_OUT2 0x0b /* OUT2 lets the interrupt out */
#define LSR_RECEIVED 0x01
#define LSR_CAN_SEND 0x20

/* A byte that was received before arch_console_init(), which empties the FIFO. */
static int early = -1;

void arch_console_init(void)
{
	early = arch_console_getc();
	isa_out(UART + UART_IER, 0);
	isa_out(UART + UART_LCR, LCR_DIVISOR);
	isa_out(UART + UART_DATA, 1); /* 115200 baud */
	isa_out(UART + UART_IER, 0);
	isa_out(UART + UART_LCR, LCR_8N1);
	isa_out(UART + UART_FCR, FCR_ON_CLEAR);
	isa_out(UART + UART_MCR, MCR_DTR_RTS_OUT2);
}

/* Waits however long the host takes to read: a byte that is not waited for is lost. */
void arch_console_putc(char c)
{
	while (!(isa_in(UART + UART_LSR) & LSR_CAN_SEND))
		;
	isa_out(UART + UART_DATA, c);
}

int arch_console_getc(void)
{
	int c = early;

	early = -1;
	if (c >= 0)
		return c;
	if (!(isa_in(UART + UART_LSR) & LSR_RECEIVED))
		return -1;
	return isa_in(UART + UART_DATA);
}

void arch_console_irq_enable(void)
{
	isa_out(UART + UART_IER, IER_RECEIVED);
}
