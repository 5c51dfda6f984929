/* SPDX-License-Identifier: MIT */
/* The scheduler: fixed priorities, round robin within one, a queue per CPU. */
#ifndef KERNEL_SCHED_H
#define KERNEL_SCHED_H

#include <arch/cpu_head.h>
#include <kernel/lib/list.h>
#include <kernel/lock/lock.h>
#include <kernel/types.h>

#define NR_PRIORITIES 32 /* 0 = idle only, 31 = most urgent */
#define PRIO_IDLE 0
#define PRIO_LOW 4
#define PRIO_NORMAL 8
#define PRIO_HIGH 16
#define PRIO_MAX 31

struct task;

struct run_queue {
	struct spinlock lock;
	/* Under the lock: */
	u32 ready; /* bit p: queue[p] is not empty */
	struct list queue[NR_PRIORITIES];
	unsigned int nr_ready;
	int running_prio; /* of the task that runs */
	u64 switches;
	/* Written by this CPU alone, with interrupts off. Times are arch_clock()'s. */
	u64 slice_end;
	u64 switched_at;
	struct task *prev; /* the task that ran before this one */
	unsigned int ticks;
	bool expired; /* the running task has used its slice up */
};

struct timer;
struct timer_queue {
	struct spinlock lock;
	struct list timers;    /* under the lock, the soonest first */
	struct timer *running; /* the timer whose function runs now */
	u64 programmed; /* the deadline that the hardware has, this CPU's alone */
};

/*
 * Between these two the task stays on its CPU, and no other task runs there. They
 * nest. The outermost preempt_enable() switches at once if another task should run.
 */
void preempt_disable(void);
void preempt_enable(void);
/* preempt_count of the calling context (arch/cpu_head.h). */
u32 preempt_count(void);
/* How many preempt_disable() are in force here. */
unsigned int preempt_depth(void);
/* May this context sleep? */
bool may_sleep(void);

/* Give the CPU to a ready task of the same or a higher priority, if there is one. */
void sched_yield(void);

/* Switch to the best ready task. Interrupts off, preempt depth 1. */
void schedule(void);

/*
 * Hook for the tracer: called on every context switch, with interrupts off, on the
 * CPU that switches, before it switches. NULL when nothing needs it. It must not take
 * locks of the scheduler.
 */
extern void (*sched_switch_hook)(struct task *prev, struct task *next);

/*
 * Block until task_wake(). Only after wait_prepare() (kernel/lock/wait.h). A task that
 * is preempted in between does not block here but goes on at once, so a caller with
 * interrupts on must look at its condition again, as wait_event() does.
 */
void task_block(void);

#endif
