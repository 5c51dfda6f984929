/* CPUs: their structs, their masks, calls between them. */
#ifndef KERNEL_CPU_H
#define KERNEL_CPU_H

#include <arch/arch.h>
#include <kernel/irq.h>
#include <kernel/sched/sched.h>

struct cpu {
	struct cpu_head head; /* first: assembly reaches it */
	hwid_t hwid;
	struct task *idle;
	struct run_queue rq;
	u64 irq_counts[NR_IRQ_KINDS]; /* written by this CPU alone */
	u32 ipi_pending;	      /* enum ipi bits, atomic */
	struct timer_queue timers;
	struct trap_frame *irq_frame; /* of the interrupt being handled */
	bool in_stop;		      /* inside a rendezvous */
	bool in_fault;		      /* inside trap_fault() */
	/* The spinlock that this CPU waits for, NULL: none, and its ticket. */
	const struct spinlock *spins_for;
	u32 spin_ticket;
	u32 spin_rounds;       /* of that wait: does this CPU run at all? */
	unsigned long spin_pc; /* who waits */
};

extern struct cpu cpus[MAX_CPUS];
extern unsigned int nr_cpus; /* present; set once at boot */
/*
 * Who answers interrupts, and who of them is given tasks (kernel/cpu/hotplug.c). The
 * first changes only while the turns of cpu_call() and stop_cpus() are both
 * taken, so whoever has either may count on it. CPU 0 is always in both.
 */
extern cpumask_t cpus_online, cpus_active;

/* The CPU that this runs on. Exact only with preemption or interrupts off. */
static inline unsigned int cpu_index(void)
{
	return arch_this_cpu()->head.index;
}

/* Is it online now? In a moment it may be otherwise. */
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
	IPI_PANIC = 8,	 /* somebody panics: be quiet for good */
};

/* Make the CPUs' structs usable, and the boot CPU the one online. First of all. */
void cpu_init_boot(void);
/* Set nr_cpus from boot_info and maxcpus=; says what is left out. */
void cpu_count(void);

/* Tell a CPU, not this one. Any context; never while CPUs are stopped. */
void ipi_send(unsigned int cpu, enum ipi why);
/* From irq_event(IRQ_IPI). */
void ipi_interrupt(void);

/*
 * cpu_call(): run fn(arg) on every CPU of `mask` that is online when the call
 * has its turn, the caller's own included, with interrupts off, and wait until
 * all have. 0, or -EDEADLK when interrupts are off or in interrupt context (it
 * would wait for a CPU that waits for us). For all CPUs say ~0u: a mask read
 * before from cpus_online lacks who came since.
 */
int cpu_call(cpumask_t mask, void (*fn)(void *arg), void *arg);

/*
 * Take and give back one's turn at something that one CPU does with others'
 * help: preemption off in between, interrupts as they were (on). *turn starts
 * as 0. Context: a task, interrupts on.
 */
void cpu_turn_take(u32 *turn);
void cpu_turn_give(u32 *turn);

/* The turn of cpu_call(): no call is under way, no CPU comes or goes. */
void call_turn_take(void);
void call_turn_give(void);

#endif
