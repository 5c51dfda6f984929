/* SPDX-License-Identifier: MIT */
/* The end: QEMU's semihosting exit, the UHI of MIPS document MD01069. */
#include <arch/arch.h>

/*
 * UHI call 1: exit with a0. It needs `-semihosting-config enable=on`, as in
 * machine.json. Without, the sdbbp is a debug exception that nothing handles.
 */
noreturn void arch_power_off(int status)
{
	register u32 call asm("$25") = 1;
	register u32 code asm("$4") = power_status(status);

	asm volatile("sdbbp 1" : : "r"(call), "r"(code) : "memory");
	arch_cpu_halt();
}
