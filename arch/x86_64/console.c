/* SPDX-License-Identifier: MIT */
/* COM1, a 16550: polled output, interrupt-driven input. */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/console.h>

enum {
	UART_DATA = COM1,
	UART_IER = COM1 + 1,
	UART_FCR = COM1 + 2,
	UART_LCR = COM1 + 3,
	UART_MCR = COM1 + 4,
	UART_LSR = COM1 + 5,
};

#define LSR_DATA_READY 0x01
#define LSR_THR_EMPTY 0x20
#define LSR_NO_DEVICE 0xff /* what an empty port reads as */

/* A byte that was received before arch_console_init(), which empties the FIFO. */
static int early = -1;

/* 115200 8N1, FIFOs on and empty, no interrupts. */
void arch_console_init(void)
{
	early = arch_console_getc();
	outb(UART_IER, 0);
	outb(UART_LCR, 0x80); /* divisor */
	outb(UART_DATA, 1);
	outb(UART_IER, 0);
	outb(UART_LCR, 0x03);
	outb(UART_FCR, 0x07);
	outb(UART_MCR, 0x03);
}

void arch_console_putc(char c)
{
	while (!(inb(UART_LSR) & LSR_THR_EMPTY))
		arch_cpu_relax();
	outb(UART_DATA, c);
}

int arch_console_getc(void)
{
	u8 status = inb(UART_LSR);
	int c = early;

	early = -1;
	if (c >= 0)
		return c;
	if (status == LSR_NO_DEVICE || !(status & LSR_DATA_READY))
		return -1;
	return inb(UART_DATA);
}

void arch_console_irq_enable(void)
{
	ioapic_route(boot_info.port.console_gsi, VECTOR_CONSOLE,
		     boot_info.port.console_level, boot_info.port.console_low);
	outb(UART_MCR, 0x0b); /* OUT2: lets the interrupt out of the chip */
	outb(UART_IER, 0x01);
}
