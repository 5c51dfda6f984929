/* SPDX-License-Identifier: MIT */
/* The end: QEMU's debug exit device, else ACPI. */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/printk.h>

#define UART_LSR 5
#define UART_LSR_SENT 0x40     /* all of it, or there is no such device */
#define PM_SLEEP_ENABLE 0x2000 /* with sleep type 0: S5 on q35 */

void arch_power_off(int status)
{
	arch_irq_disable();
	/* QEMU ends with twice the value, plus 1. */
	outl(DEBUG_EXIT, power_status(status) >> 1);
	/*
	 * A machine without that device has nothing that takes a status, so the console's last
	 * line says it (tools/lib/bochs.py). Then ACPI ends the machine.
	 */
	printk_urgent("\nended with status %d\n", status);
	while (!(inb(COM1 + UART_LSR) & UART_LSR_SENT))
		arch_cpu_relax();
	if (boot_info.port.pm_control)
		outw(boot_info.port.pm_control, PM_SLEEP_ENABLE);
	arch_cpu_halt();
}
