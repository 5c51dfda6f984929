/* SPDX-License-Identifier: MIT */
/*
 * A CPU that arch_cpu_start() started: x0 its struct cpu (linked address), interrupts and
 * paging off, this code at its physical address. To cpu_secondary_main() at its linked
 * address, on its idle task's stack.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

	.text
FUNCTION(secondary_start)
	.cfi_undefined x30		/* nothing called it: walks end here */
	mov	x28, x0
	adrp	x0, arm64_root
	linked	x30, secondary_high
	b	paging_on
END(secondary_start)

LOCAL_FUNCTION(secondary_high)
	.cfi_undefined x30
	/* Sites were written before this CPU ran: forget prefetched instructions, before
	 * its first instruction that could be a site. */
	ic	iallu
	dsb	nsh
	isb
	ldr	x0, [x28, #CPU_HEAD_SCRATCH + 8 * SCRATCH_START]
	mov	sp, x0
	b	cpu_secondary_main
END(secondary_high)
