/* CPUs come and go while the machine runs. */
#ifndef KERNEL_HOTPLUG_H
#define KERNEL_HOTPLUG_H

#include <kernel/cpu/cpu.h>
#include <kernel/test/fault.h>

/*
 * Bring CPU c up, or take it down; 0, also when it is so already. -ENODEV: not
 * present (no such CPU, or left out by maxcpus=). cpu_up(): -ENOMEM; -EIO: the
 * firmware refused; -ETIMEDOUT: no sign of life. cpu_down(): -EPERM: CPU 0, to
 * which devices' interrupts go; -ETIMEDOUT: it left but did not park, and cannot
 * be brought up again. Context: a task that may sleep, on any CPU, c too.
 *
 * The tasks of a CPU that goes run elsewhere, their affinity unchanged; one
 * whose affinity then has no CPU left runs on any. When the CPU is back, such a
 * task goes to a CPU of its affinity at once; all others come by the ordinary
 * balancing. Timers go to the CPU of cpu_down()'s caller and fire there.
 */
int cpu_up(unsigned int c);
int cpu_down(unsigned int c);

/*
 * In between cpus_online does not change. For a task that also acts for the CPUs
 * that are away. Context: a task that may sleep; inside trace_mutex.
 */
void cpus_hold(void);
void cpus_release(void);

/*
 * What happens to CPU c, told by c itself, interrupts off. Between LEFT and
 * SYNCED it runs no site.
 */
enum cpu_event {
	CPU_EVENT_JOINED, /* it is in cpus_online */
	CPU_EVENT_SYNCED, /* its fetch is synchronised since: arch_text_sync() */
	CPU_EVENT_LEFT,	  /* it is no longer in cpus_online */
};

/*
 * Hook for the tracer: called on each of these events. NULL when nothing needs it.
 * The function, and everything that it calls, has no site. It is set by
 * PATCH_HOOK_SET(), and needs PATCH_INDIRECT(cpu_tell, function).
 */
extern void (*cpu_event_hook)(unsigned int cpu, enum cpu_event event);

FAULT_DECLARE(cpu_join_unsynced);
FAULT_DECLARE(cpu_join_late); /* of the CPU fault_cpu_join_late.cpu */
/* How long cpu_up() waits for a CPU. A test shortens it. */
extern u64 cpu_start_ns;

/*
 * For the build's proof of the patching path: what a CPU runs up to its second
 * synchronisation, after it has left, and what calls the hook.
 */
void cpu_join(void);
void cpu_leave(void);
void cpu_tell(unsigned int c, enum cpu_event event);

/* From the idle loop, interrupts off: is this CPU to go? */
void cpu_idle_check(void);

/* Where a secondary CPU arrives from arch_cpu_start(). */
noreturn void cpu_secondary_main(void);

/* Bring up all CPUs present; says what failed. Boot. */
void cpu_start_others(void);

#endif
