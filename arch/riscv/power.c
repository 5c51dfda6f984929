/* SPDX-License-Identifier: MIT */
/* The end of the machine: QEMU's test device, else the firmware's shutdown. */
#include <arch/arch.h>
#include <boot/boot_info.h>

/* The test device ends QEMU with the upper half. Its "pass" (0x5555) would be a 0. */
#define TEST_FAIL 0x3333

noreturn void arch_power_off(int status)
{
	u64 power = boot_info.port.power;

	if (power)
		mmio_write32((u64)arch_phys_to_virt(power),
			     TEST_FAIL | power_status(status) << 16);
	/* Shutdown (0), reason: none (0), system failure (1). */
	sbi_call(SBI_SRST, SBI_SRST_RESET, 0, status != 0, 0, 0);
	arch_cpu_halt();
}
