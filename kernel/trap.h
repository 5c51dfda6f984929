/* SPDX-License-Identifier: MIT */
/* Faults. */
#ifndef KERNEL_TRAP_H
#define KERNEL_TRAP_H

#include <kernel/types.h>

struct trap_frame;

/*
 * The port calls it for every fault. `what` names the fault ("page fault (write)"), and
 * addr is the address concerned, or its page's, or 0. It kills an expendable task, and
 * panics for any other. If it returns, f has been mended, and the port resumes it.
 */
void trap_fault(struct trap_frame *f, const char *what, unsigned long addr);

/* For arch_frame_print(): nr registers by their names with printk(), four on a line. nr: a multiple
 * of four. */
void trap_print_registers(const char *const *names, const unsigned long *reg,
			  unsigned int nr);

#endif
