/* The end of the machine: QEMU's test device, else the firmware's shutdown. */
#include <arch/arch.h>
#include <boot/boot_info.h>

#define TEST_PASS 0x5555
#define TEST_FAIL 0x3333 /* | status << 16 */

noreturn void arch_power_off(int status)
{
	u64 power = boot_info.port.power;

	if (power)
		mmio_write32((u64)arch_phys_to_virt(power),
			     status ? TEST_FAIL | (u32)status << 16 :
				      TEST_PASS);
	/* Shutdown (0); reason: none (0), system failure (1). */
	sbi_call(SBI_SRST, SBI_SRST_RESET, 0, status != 0, 0, 0);
	arch_cpu_halt();
}
