/* Faults. */
#ifndef KERNEL_TRAP_H
#define KERNEL_TRAP_H

#include <kernel/types.h>

struct trap_frame;

/*
 * A port's fault path: `what` names the fault ("page fault (write)"), addr is
 * the address concerned or 0. Kills an expendable task, or panics; returns only
 * if the frame has been mended and is to be resumed.
 */
void trap_fault(struct trap_frame *f, const char *what, unsigned long addr);

#endif
