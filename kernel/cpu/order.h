/* SPDX-License-Identifier: MIT */
/*
 * The order in which CPUs hold, wait for and release one another, come and go, told
 * to the tracer's order log, which proves something about it.
 */
#ifndef KERNEL_ORDER_H
#define KERNEL_ORDER_H

#include <kernel/types.h>

enum order_event {
	ORDER_HELD,   /* this CPU is inside a rendezvous; arg 1: it leads */
	ORDER_FREE,   /* and out of it again, its sync() done */
	ORDER_WAIT,   /* it begins to wait for the CPUs in the mask arg */
	ORDER_WAITED, /* and has done so */
	/* It comes, or goes, with interrupts off: arg is its number. Between ORDER_LEFT and
	 * ORDER_SYNCED it runs no site. */
	ORDER_JOINED, /* it is in cpus_online */
	ORDER_SYNCED, /* its fetch is synchronised since: arch_text_sync() */
	ORDER_LEFT,   /* it is no longer in cpus_online */
};

/*
 * Hook for the order log: called on each of these events. NULL when nothing needs
 * it. The function, and everything that it calls, has no site. It is set by
 * PATCH_HOOK_SET(), and needs PATCH_INDIRECT(order_tell, function). Any context.
 */
extern void (*order_hook)(enum order_event event, u32 arg);
void order_tell(enum order_event event, u32 arg);

#endif
