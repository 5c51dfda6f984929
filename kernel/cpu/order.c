/* SPDX-License-Identifier: MIT */
/* Telling of the order between CPUs: order.h. */
#include <kernel/cpu/order.h>

void (*order_hook)(enum order_event event, u32 arg);

notrace noinline void order_tell(enum order_event event, u32 arg)
{
	void (*hook)(enum order_event event, u32 arg) = READ_ONCE(order_hook);

	if (hook)
		hook(event, arg);
}
