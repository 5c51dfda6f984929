/* SPDX-License-Identifier: MIT */
/* Where boot code enters the kernel. */
#ifndef KERNEL_MAIN_H
#define KERNEL_MAIN_H

#include <kernel/types.h>

/*
 * The kernel's entry, called once by boot/<arch> on the boot CPU with boot_info
 * filled, interrupts off, on the boot stack, with this_cpu() set to cpus[0].
 */
noreturn void kernel_main(void);

#endif
