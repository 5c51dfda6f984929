/*
 * What the kernel tells of the order in which CPUs hold, wait for and release one
 * another, for whoever wants to prove something about it: the tracer's order log.
 */
#ifndef KERNEL_ORDER_H
#define KERNEL_ORDER_H

#include <kernel/types.h>

enum order_event {
	ORDER_HELD,   /* this CPU is inside a rendezvous; arg 1: it leads */
	ORDER_FREE,   /* and out of it again, its sync() done */
	ORDER_WAIT,   /* it begins to wait for the CPUs in the mask arg */
	ORDER_WAITED, /* and has done so */
};

/*
 * A wish of a higher floor to know; NULL when nobody wants it. The function and
 * all that it calls have no site: who sets it says PATCH_INDIRECT(order_tell,
 * function). Any context.
 */
extern void (*order_hook)(enum order_event event, u32 arg);
void order_tell(enum order_event event, u32 arg);

#endif
