/* SPDX-License-Identifier: MIT */
/* What the tests of hotplug share. */
#ifndef KERNEL_HOTPLUG_TESTING_H
#define KERNEL_HOTPLUG_TESTING_H

#include <kernel/cpu/cpu.h>

/* A call for cpu_call() and a body for a task: set the caller's CPU in a cpumask_t. */
static inline void set_cpu_in_mask(void *mask)
{
	__atomic_fetch_or((cpumask_t *)mask, 1u << cpu_index(),
			  __ATOMIC_RELAXED);
}

/* The CPUs that a call to all CPUs reaches. */
static inline cpumask_t answering_cpus(void)
{
	cpumask_t mask = 0;

	cpu_call(~0u, set_cpu_in_mask, &mask);
	return mask;
}

#endif
