/* SPDX-License-Identifier: MIT */
/*
 * A hart that arch_cpu_start() started: a0 hart id, a1 its struct cpu (linked
 * address), interrupts and paging off, this code at its physical address. To
 * cpu_secondary_main() at its linked address, on its idle task's stack.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

	.option	norelax
	.text
FUNCTION(secondary_start)
	.cfi_undefined ra	/* nothing called it: walks end here */
	csrw	sie, zero
	li	t0, SSTATUS_SIE | SSTATUS_FS_VS
	csrc	sstatus, t0
	/*
	 * The kernel's page tables do not map this code where it runs: the fetch
	 * after the change of satp faults, and stvec leads on at the linked
	 * address. So no executable alias of the text is needed.
	 */
	li	t1, KERNEL_OFFSET
	lla	t0, 1f
	add	t0, t0, t1
	csrw	stvec, t0
	ld	t0, riscv_satp
	sfence.vma
	csrw	satp, t0
	.balign	4
1:	sfence.vma
	/* Sites were written before this hart ran: forget prefetched instructions,
	 * before its first instruction that could be a site. */
	fence	rw, rw
	fence.i
	lla	gp, __global_pointer$
	mv	tp, a1
	ld	sp, CPU_HEAD_SCRATCH + 8 * SCRATCH_START(tp)
	tail	cpu_secondary_main
END(secondary_start)
