/* SPDX-License-Identifier: MIT */
/* The end: QEMU's debug exit device, else ACPI. */
#include <arch/arch.h>
#include <boot/boot_info.h>

#define PM_SLEEP_ENABLE 0x2000 /* with sleep type 0: S5 on q35 */

void arch_power_off(int status)
{
	arch_irq_disable();
	/* QEMU ends with twice the value, plus 1. */
	outl(DEBUG_EXIT, power_status(status) >> 1);
	/* A machine without that device. QEMU then ends with 0. */
	if (boot_info.port.pm_control)
		outw(boot_info.port.pm_control, PM_SLEEP_ENABLE);
	arch_cpu_halt();
}
