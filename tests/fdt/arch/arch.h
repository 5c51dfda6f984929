/* What boot/fdt.c needs of a port, on the host: a tree lies where it lies. */
#ifndef TESTS_FDT_ARCH_H
#define TESTS_FDT_ARCH_H

#include <kernel/types.h>

static inline void *arch_phys_to_virt(u64 pa)
{
	return (void *)(unsigned long)pa;
}

static inline u64 arch_virt_to_phys(const void *va)
{
	return (u64)(unsigned long)va;
}

#endif
