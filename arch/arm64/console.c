/* SPDX-License-Identifier: MIT */
/* The console: a PL011 (DDI 0183). */
#include <arch/arch.h>
#include <boot/boot_info.h>

enum {
	UART_DATA = 0x00,
	UART_FLAGS = 0x18,
	UART_LINE = 0x2c,
	UART_CONTROL = 0x30,
	UART_MASK = 0x38,
	UART_CLEAR = 0x44,
};
#define FLAG_EMPTY 0x10 /* nothing received */
#define FLAG_FULL 0x20	/* cannot send */
#define LINE_8N1_FIFO 0x70
#define CONTROL_ON 0x301      /* the UART, sending, receiving */
#define MASK_RECEIVE 0x50     /* a full FIFO, or one that waits for more */
#define EARLY_UART 0x09000000 /* QEMU's virt: before the device tree is read */

static u64 uart_address(unsigned int reg)
{
	u64 pa = boot_info.port.uart;

	return (u64)arch_phys_to_virt(pa ? pa : EARLY_UART) + reg;
}

/* Changing the line empties the FIFO, so a byte that is there is kept. */
static int early = -1;

void arch_console_init(void)
{
	early = arch_console_getc();
	mmio_write32(uart_address(UART_MASK), 0);
	mmio_write32(uart_address(UART_LINE), LINE_8N1_FIFO);
	mmio_write32(uart_address(UART_CONTROL), CONTROL_ON);
}

void arch_console_putc(char c)
{
	while (mmio_read32(uart_address(UART_FLAGS)) & FLAG_FULL)
		arch_cpu_relax();
	mmio_write32(uart_address(UART_DATA), (u8)c);
}

int arch_console_getc(void)
{
	int c = early;

	early = -1;
	if (c >= 0)
		return c;
	if (mmio_read32(uart_address(UART_FLAGS)) & FLAG_EMPTY)
		return -1;
	return (u8)mmio_read32(uart_address(UART_DATA));
}

void arch_console_irq_enable(void)
{
	mmio_write32(uart_address(UART_MASK), MASK_RECEIVE);
	gic_enable(boot_info.port.uart_irq);
}
