/* SPDX-License-Identifier: MIT */
/* CPUs: their structs, their masks, calls between them. */
#ifndef KERNEL_CPU_H
#define KERNEL_CPU_H

#include <arch/arch.h>
#include <kernel/irq.h>
#include <kernel/sched/sched.h>
#include <kernel/test/fault.h>

struct cpu {
	struct cpu_head head; /* first: assembly reaches it */

	/* Set before the CPU starts. */
	hwid_t hwid;
	struct task *idle;

	/* Each has its own lock. */
	struct run_queue rq;
	struct timer_queue timers;

	/* Written by other CPUs. */
	u32 ipi_pending; /* enum ipi bits, atomic */

	/* Written by this CPU alone. Other CPUs read some of it as a hint. */
	u64 irq_counts[NR_IRQ_KINDS];
	struct trap_frame *irq_frame; /* of the interrupt being handled */
	bool in_stop;		      /* inside a rendezvous */
	bool in_fault;		      /* inside trap_fault() */
	u64 broken_at; /* arch_clock() when its last fault or its panic began */
	const struct spinlock *spins_for; /* that it waits for, or NULL */
	u32 spin_ticket;		  /* its ticket there */
	u32 spin_rounds;       /* of that wait: does this CPU run at all? */
	unsigned long spin_pc; /* where it waits */
};

/*
 * An array of MAX_CPUS times whole pages. Where there are fewer CPUs, cpu_count() gives the rest to
 * the page allocator, because most machines have a few CPUs.
 */
struct cpu_array {
	char *start;
	size_t size; /* bytes for each CPU */
};
#define CPU_ARRAY(name)                                                        \
	static_assert(sizeof((name)[0]) % PAGE_SIZE == 0 &&                    \
			      ARRAY_SIZE(name) == MAX_CPUS,                    \
		      "pages for each CPU");                                   \
	static const struct cpu_array cpu_array_##name REGISTER(               \
		cpu_arrays) = { (char *)(name), sizeof((name)[0]) }

extern struct cpu cpus[MAX_CPUS];
extern unsigned int nr_cpus; /* present, set once at boot */
/*
 * The CPUs that answer interrupts, and those of them that are given tasks
 * (kernel/cpu/hotplug.c). cpus_online changes only while the turns of cpu_call() and
 * stop_cpus() are both taken, so it stands still for a task that has either turn.
 * CPU 0 is always in both masks.
 */
extern cpumask_t cpus_online, cpus_active;

/* The index of the calling CPU. The answer is out of date at once unless preemption
 * or interrupts are off. */
static inline unsigned int cpu_index(void)
{
	return arch_this_cpu()->head.index;
}

/* Every CPU that there is, online or not. */
static inline cpumask_t cpus_present(void)
{
	return cpus_below(nr_cpus);
}

/* Is CPU c online now? The answer may change at once. */
static inline bool cpu_online(unsigned int c)
{
	return READ_ONCE(cpus_online) & (1u << c);
}

#define for_each_online_cpu(c)                                                 \
	for ((c) = 0; (c) < nr_cpus; (c)++)                                    \
		if (cpu_online(c))

/* Why a CPU was interrupted: bits of ipi_pending. */
enum ipi {
	IPI_RESCHED = 1, /* look at the run queue */
	IPI_CALL = 2,	 /* cpu_call() has work */
	IPI_STOP = 4,	 /* stop_cpus() gathers */
	IPI_PANIC = 8,	 /* another CPU panics: stop for good */
	IPI_TRACE = 16,	 /* ipi_trace() */
};

/* Make the CPUs' structs usable, and the boot CPU the one online. First of all. */
void cpu_init_boot(void);
/* Set nr_cpus from boot_info and maxcpus=, name the CPUs that are left out, and take their memory:
 * before mm_init(). */
void cpu_count(void);

/* Tell a CPU, not this one. Any context, never while CPUs are stopped. */
void ipi_send(unsigned int cpu, enum ipi why);
/*
 * For the tracer: let each CPU of mask run the hook soon, with interrupts off, in an
 * interrupt. A CPU that is not online runs it when it comes back, before its first site.
 * No event tells of it. Any context. No site.
 */
void ipi_trace(cpumask_t mask);
extern void (*ipi_trace_hook)(void);
/* From irq_event(IRQ_IPI). */
void ipi_interrupt(void);
FAULT_DECLARE(ipi_twice);
FAULT_DECLARE(ipi_late);

/*
 * Run fn(arg) with interrupts off on every CPU of `mask` that is online when the
 * call has its turn, the caller's own CPU included, and wait until all have run it.
 * 0. -EDEADLK: interrupts are off or this is an interrupt, so the caller would wait
 * for a CPU that may wait for the caller's. For all CPUs pass ~0u, because a mask that
 * was read from cpus_online lacks the CPUs that have come since.
 */
int cpu_call(cpumask_t mask, void (*fn)(void *arg), void *arg);

/*
 * Take and give back a turn: the right to do something that one CPU at a time does
 * with the help of the others. In between preemption is off, and interrupts are on.
 * *turn starts as 0. Context: a task, interrupts on.
 */
void cpu_turn_take(u32 *turn);
void cpu_turn_give(u32 *turn);

/* The turn of cpu_call(): no call is under way, no CPU comes or goes. */
void call_turn_take(void);
void call_turn_give(void);

#endif
