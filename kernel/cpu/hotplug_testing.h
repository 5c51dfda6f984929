/* SPDX-License-Identifier: MIT */
/* Declarations that the tests of hotplug share. */
#ifndef KERNEL_HOTPLUG_TESTING_H
#define KERNEL_HOTPLUG_TESTING_H

#include <kernel/cpu/cpu.h>

/* A call for cpu_call() and a body for a task: set the caller's CPU in a cpumask_t. */
void set_cpu_in_mask(void *mask);

/* The CPUs that a call to all CPUs reaches. */
cpumask_t answering_cpus(void);

#endif
