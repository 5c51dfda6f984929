/* SPDX-License-Identifier: MIT */
/* Declarations that the conformance tests share. */
#ifndef ARCH_CONFORM_H
#define ARCH_CONFORM_H

#include <kernel/irq.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>

/* Run fn(arg) on each CPU in turn, in a task of its own, preemptible. */
void conform_on_each_cpu(void (*fn)(void *arg), void *arg);

/* Run fn(arg) in a task that may be killed: 0, or -EFAULT if a fault killed it. */
int conform_victim(void (*fn)(void *arg), void *arg, unsigned int cpu);

/* For conform_victim(): stores the word's own value, so nothing changes if the store is allowed. */
void conform_store_back(void *word);

/* A timer that says when it has fired. */
struct conform_flag {
	struct timer timer;
	bool fired;
};
void conform_flag_start(struct conform_flag *flag, u64 ns);

/* How many interrupts of that kind the CPU has counted. */
u32 conform_irq_count(unsigned int cpu, enum irq_kind kind);

/* Send this CPU an NMI while interrupts are off. Returns how many came. -ENOSYS: there is none. */
int conform_nmi(void);

/*
 * Every function of kernel/test/victim.c: switch its site, and see whether its arguments
 * and its result come through. switch: trace_mutex held.
 */
int conform_switch_victims(bool on);
void conform_expect_values(struct ktest_run *t);
/* That many times, and once more with interrupts off. */
void conform_expect_kept(struct ktest_run *t);
#define CONFORM_ROUNDS 100

/* Counts that a CPU's preempt_count may have: depths, in interrupts, with a task switch wanted. No
 * two have a byte in common with each other. */
extern const u32 conform_contexts[4];

/* Call victim_call() over and over, and again in interrupts, which come at any instruction of
 * the trampoline. How often in all. */
u64 conform_interrupted_calls(void);

/* How often conform_ops' function was called. The function uses all registers that a called
 * function may change. Atomic. */
extern u32 conform_hits;
extern struct trace_ops conform_ops;

#endif
