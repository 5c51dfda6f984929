/* SPDX-License-Identifier: MIT */
/* Memory protection: none. The kernel lives in kseg0, which has no pages. */
#include <arch/arch.h>
#include <kernel/errno.h>

const bool arch_protects_text = false;

/* The TLB was emptied by arch_trap_init(): address 0 faults already. */
void arch_mmu_init(void)
{
}

/* kernel/sched/task.c keeps a canary instead. */
int arch_guard_page(void *page, bool on)
{
	(void)page;
	(void)on;
	return -ENOSYS;
}
