/* SPDX-License-Identifier: MIT */
/* The console: an ns16550, or the firmware's before the device tree is read. */
#include <arch/arch.h>
#include <boot/boot_info.h>

enum { UART_DATA = 0, UART_IER = 1, UART_FCR = 2, UART_MCR = 4, UART_LSR = 5 };
#define UART_IER_RECEIVE 0x01
#define UART_FCR_ENABLE 0x01
#define UART_MCR_OUT2 0x08 /* lets the interrupt line out on PC-like boards */
#define UART_LSR_DATA 0x01
#define UART_LSR_EMPTY 0x20

static u64 uart_address(unsigned int reg)
{
	const struct boot_port *p = &boot_info.port;

	return (u64)arch_phys_to_virt(p->uart) + ((u64)reg << p->uart_shift);
}

/* A byte that was received before arch_console_init(), which empties the FIFO. */
static int early = -1;

void arch_console_init(void)
{
	early = arch_console_getc();
	mmio_write8(uart_address(UART_IER), 0);
	mmio_write8(uart_address(UART_FCR), UART_FCR_ENABLE);
}

void arch_console_putc(char c)
{
	if (!boot_info.port.uart) {
		sbi_call(SBI_CONSOLE_PUTCHAR, 0, (u8)c, 0, 0, 0);
		return;
	}
	while (!(mmio_read8(uart_address(UART_LSR)) & UART_LSR_EMPTY))
		arch_cpu_relax();
	mmio_write8(uart_address(UART_DATA), (u8)c);
}

int arch_console_getc(void)
{
	int c = early;

	early = -1;
	if (c >= 0)
		return c;
	if (!(mmio_read8(uart_address(UART_LSR)) & UART_LSR_DATA))
		return -1;
	return mmio_read8(uart_address(UART_DATA));
}

void arch_console_irq_enable(void)
{
	mmio_write8(uart_address(UART_MCR), UART_MCR_OUT2);
	mmio_write8(uart_address(UART_IER), UART_IER_RECEIVE);
	plic_enable(boot_info.port.uart_irq);
}
