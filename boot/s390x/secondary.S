/* SPDX-License-Identifier: MIT */
/*
 * A CPU that arch_cpu_start() started, for the first time or out of arch_cpu_park(): interrupts
 * and paging off, this code at its physical address, its struct cpu in its own storage. To
 * cpu_secondary_main() at its linked address, on its idle task's stack.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

	.text
FUNCTION(secondary_start)
	.cfi_undefined %r14		/* nothing called it: walks end here */
	larl	%r1, secondary_data
	lctlg	%c0, %c0, 0(%r1)
	larl	%r2, s390_asce
	lctlg	%c1, %c1, 0(%r2)
	lpswe	8(%r1)
END(secondary_start)

LOCAL_FUNCTION(secondary_high)
	.cfi_undefined %r14
	/* Sites were written before this CPU ran: forget prefetched instructions, before
	 * its first instruction that could be a site. */
	bcr	15, %r0
	lg	%r1, LC_CPU
	lg	%r2, CPU_HEAD_CURRENT(%r1)
	stg	%r2, LC_CURRENT
	lg	%r15, CPU_HEAD_SCRATCH + 8 * SCRATCH_START(%r1)
	jg	cpu_secondary_main
END(secondary_high)

	.section .rodata
	.balign	8
secondary_data:
	.quad	CR0_KERNEL, PSW_KERNEL, secondary_high
