/* SPDX-License-Identifier: MIT */
/*
 * The console of a port whose machine has a 16550. Output is polled, input comes by interrupt. The
 * port's interrupt handler includes this for uart_interrupt(). Its console.c includes it too, and
 * defines before that
 *
 *	UART_IN(reg), UART_OUT(reg, value)
 *	UART_WAIT()		a pause of the CPU until the transmitter is empty
 *	UART_SETS_SPEED		true where no firmware has set the line's speed
 */
#ifndef ARCH_UART16550_H
#define ARCH_UART16550_H

/*
 * The device interrupted: raise the console's event. Interrupts off. Called before the interrupt
 * controller hears the end of the interrupt. Bytes that are left interrupt again, even where the
 * interrupt controller sees edges alone: the device's line falls and rises behind the event.
 */
void uart_interrupt(void);

#ifdef UART_IN
#include <kernel/irq.h>

enum { UART_DATA, UART_IER, UART_FCR, UART_LCR, UART_MCR, UART_LSR };

#define UART_IER_RECEIVED 0x01
#define UART_FCR_ON_CLEAR                                                      \
	0x07 /* FIFOs on and empty, an interrupt for each byte */
#define UART_LCR_8N1 0x03
#define UART_LCR_DIVISOR 0x80
#define UART_MCR_DTR_RTS_OUT2 0x0b /* OUT2 lets the interrupt out of the chip */
#define UART_LSR_RECEIVED 0x01
#define UART_LSR_CAN_SEND 0x20
#define UART_LSR_NO_DEVICE 0xff /* read from an empty port */

/* A byte that was received before arch_console_init(), which empties the FIFO. */
static int early = -1;

/* No interrupts yet. */
void arch_console_init(void)
{
	early = arch_console_getc();
	UART_OUT(UART_IER, 0);
	if (UART_SETS_SPEED) {
		UART_OUT(UART_LCR, UART_LCR_DIVISOR);
		UART_OUT(UART_DATA, 1); /* 115200 baud */
		UART_OUT(UART_IER, 0);
		UART_OUT(UART_LCR, UART_LCR_8N1);
	}
	UART_OUT(UART_FCR, UART_FCR_ON_CLEAR);
	UART_OUT(UART_MCR, UART_MCR_DTR_RTS_OUT2);
}

static void uart_put(char c)
{
	while (!(UART_IN(UART_LSR) & UART_LSR_CAN_SEND))
		UART_WAIT();
	UART_OUT(UART_DATA, c);
}

int arch_console_getc(void)
{
	u8 status = UART_IN(UART_LSR);
	int c = early;

	early = -1;
	if (c >= 0)
		return c;
	if (status == UART_LSR_NO_DEVICE || !(status & UART_LSR_RECEIVED))
		return -1;
	return UART_IN(UART_DATA);
}

void uart_interrupt(void)
{
	irq_event(IRQ_CONSOLE);
	UART_OUT(UART_IER, 0);
	UART_OUT(UART_IER, UART_IER_RECEIVED);
}

#endif
#endif
