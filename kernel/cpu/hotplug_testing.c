/* SPDX-License-Identifier: MIT */
#include "hotplug_testing.h"

void set_cpu_in_mask(void *mask)
{
	__atomic_fetch_or((cpumask_t *)mask, 1u << cpu_index(),
			  __ATOMIC_RELAXED);
}

cpumask_t answering_cpus(void)
{
	cpumask_t mask = 0;

	cpu_call(~0u, set_cpu_in_mask, &mask);
	return mask;
}
