/* SPDX-License-Identifier: MIT */
/* CPUs come and go while the machine runs. */
#ifndef KERNEL_HOTPLUG_H
#define KERNEL_HOTPLUG_H

#include <kernel/cpu/cpu.h>
#include <kernel/patch_path.h>
#include <kernel/test/fault.h>

/*
 * Bring CPU c up, or take it down. 0, also when nothing is to be done. Context: a task
 * that may sleep, on any CPU, c included.
 *
 *	both		-ENODEV		there is no such CPU, or maxcpus= left it out
 *	cpu_up()	-ENOMEM		out of memory
 *			-EIO		the firmware refused
 *			-ETIMEDOUT	the CPU gave no sign of life
 *	cpu_down()	-EPERM		CPU 0 gets the devices' interrupts, so it stays
 *			-ETIMEDOUT	the CPU left and did not park: it is lost
 *
 * The tasks of a CPU that goes run elsewhere, and keep their affinity. A task whose
 * affinity has no online CPU left runs on any CPU, and goes back as soon as one of its
 * own returns. Timers move to the CPU of cpu_down()'s caller, and fire there.
 */
int cpu_up(unsigned int c);
int cpu_down(unsigned int c);

/*
 * Between these two calls no CPU comes or goes. They are for a task that also acts
 * for the CPUs that are away. Context: a task that may sleep. A task that takes
 * trace_mutex too takes it first.
 */
void cpus_read_lock(void);
void cpus_read_unlock(void);

/*
 * fn runs on each CPU that comes, just before the CPU enters cpus_online: each cpu_call()
 * after that reaches the CPU. Interrupts off, no site.
 */
#define CPU_COMES(fn)                                                          \
	static void (*const cpu_comes_##fn)(void) REGISTER(cpu_comes) = (fn);  \
	PATCH_INDIRECT(cpu_join, fn)

FAULT_DECLARE(cpu_join_unsynced);
FAULT_DECLARE(cpu_join_late); /* of CPU fault_cpu_join_late.cpu. 0: of each */
FAULT_DECLARE(cpu_park_late);
/* How long cpu_up() and cpu_down() wait for a CPU. A test shortens it. */
extern u64 cpu_start_ns;

/*
 * Public only for the build's proof of the patching path. A CPU runs cpu_join()
 * up to its second synchronisation, and cpu_leave() after it has left.
 */
void cpu_join(void);
void cpu_leave(void);

/* The idle loop asks: if this CPU is to go, it goes. Interrupts off. */
void cpu_idle_check(void);

/* Where a secondary CPU arrives from arch_cpu_start(). */
noreturn void cpu_secondary_main(void);

/* At boot: bring up all CPUs, and print a line for each one that does not come. */
void cpu_start_others(void);

#endif
