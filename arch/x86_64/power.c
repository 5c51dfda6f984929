/* The end: QEMU's debug exit device, else ACPI. */
#include <arch/arch.h>
#include <boot/boot_info.h>

/*
 * QEMU ends with (v << 1) | 1, so that status s gives 33 + 2 * s: neither 0,
 * which a triple fault under -no-reboot also gives, nor 1, QEMU's own errors.
 * What does not fit into its 8 bits ends as the largest that does.
 */
#define EXIT_BASE 16
#define EXIT_MAX 127

#define PM_SLEEP_ENABLE 0x2000 /* with sleep type 0: S5 on q35 */

void arch_power_off(int status)
{
	u32 v = EXIT_BASE + (status < 0 ? 1 : status);

	arch_irq_disable();
	outl(DEBUG_EXIT, v > EXIT_MAX ? EXIT_MAX : v);
	if (boot_info.port.pm_control)
		outw(boot_info.port.pm_control, PM_SLEEP_ENABLE);
	arch_cpu_halt();
}
