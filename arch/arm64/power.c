/* SPDX-License-Identifier: MIT */
/* The end of the machine: QEMU's semihosting exit. */
#include <arch/arch.h>

/*
 * Needs `-semihosting-config enable=on`, as in machine.json. Without it the hlt is an illegal
 * instruction.
 */
noreturn void arch_power_off(int status)
{
	u64 words[2] = { SEMIHOSTING_STOPPED, power_status(status) };
	register unsigned long x0 asm("x0") = SEMIHOSTING_EXIT;
	register unsigned long x1 asm("x1") = (unsigned long)words;

	asm volatile("hlt %2"
		     : "+r"(x0)
		     : "r"(x1), "i"(SEMIHOSTING)
		     : "memory");
	__builtin_unreachable();
}
