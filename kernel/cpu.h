/* CPUs: their structs, their masks, calls between them. */
#ifndef KERNEL_CPU_H
#define KERNEL_CPU_H

#include <arch/arch.h>
#include <kernel/irq.h>
#include <kernel/sched.h>

struct cpu {
	struct cpu_head head; /* first: assembly reaches it */
	hwid_t hwid;
	struct task *idle;
	struct run_queue rq;
	u64 irq_counts[NR_IRQ_KINDS]; /* written by this CPU alone */
	u32 ipi_pending;	      /* enum ipi bits, atomic */
	struct timer_queue timers;
};

extern struct cpu cpus[MAX_CPUS];
extern unsigned int nr_cpus;	/* present; set once at boot */
extern cpumask_t cpus_online;	/* changes only while CPUs come up */

/* The CPU that this runs on. Exact only with preemption or interrupts off. */
static inline unsigned int cpu_index(void)
{
	return arch_this_cpu()->head.index;
}

#define for_each_online_cpu(c)                                                 \
	for ((c) = 0; (c) < MAX_CPUS; (c)++)                                   \
		if (READ_ONCE(cpus_online) & (1u << (c)))

/* Where a secondary CPU arrives from arch_cpu_start(). */
noreturn void cpu_secondary_main(void);

/* Start all CPUs that boot_info lists, up to maxcpus=; says what failed. */
void cpu_start_others(void);

/*
 * cpu_call(): run fn(arg) on every CPU of `mask`, the caller's own included,
 * with interrupts off, and wait until all have. 0, or -EDEADLK when interrupts
 * are off or in interrupt context (it would wait for a CPU that waits for us).
 */
int cpu_call(cpumask_t mask, void (*fn)(void *arg), void *arg);

/* Ask a CPU to look at its run queue. Any context. */
void cpu_kick(unsigned int cpu);

#endif
