/* SPDX-License-Identifier: MIT */
/* The scheduler's functions for the kernel's own core, and for no other floor. */
#ifndef KERNEL_SCHED_INTERNAL_H
#define KERNEL_SCHED_INTERNAL_H

#include <kernel/cpu/cpu.h>
#include <kernel/sched/task.h>

/* Empty run queues for all CPUs. Boot, before any task exists. */
void sched_init(void);

/* Lock the run queue that t belongs to, wherever it moves meanwhile. */
struct run_queue *sched_lock_task(struct task *t, irq_state_t *state);

/* Set t's state. Any context but with a run queue's lock held. */
void sched_set_state(struct task *t, enum task_state state);

/*
 * Put a task that is ready, on no queue and on no CPU on the queue of the best CPU
 * for it. No other CPU may be doing the same with that task.
 */
void sched_place(struct task *t);

/* May t run on CPU c? On one of its affinity, or, if none of these takes tasks,
 * on any that does. */
bool sched_may_run(const struct task *t, unsigned int c);

/* CPU c takes no more tasks: place those of its queue elsewhere. */
void sched_cpu_drain(unsigned int c);
/* It takes tasks again: those that ran elsewhere for want of it go there. */
void sched_cpu_back(unsigned int c);

/* Set t's affinity, at least one CPU online, off the wrong CPU at once. */
void sched_set_affinity(struct task *t, cpumask_t mask);

/* From the timer interrupt: round robin and balancing. */
void scheduler_tick(u64 now);
/* When the running task's time slice ends, arch_clock(). ~0 when idle. */
u64 sched_slice_end(void);

/* Mark that a task switch is wanted on this CPU. Interrupts off. */
void sched_need_resched(void);
/* Switch away as a preemption: interrupts off, preempt depth 0. */
void sched_preempt(void);

/* A new context calls this first, to finish the switch that schedule() began. */
void sched_finish_switch(struct task *prev);

/* This CPU's idle loop. */
noreturn void sched_idle(void);

/* ---- a run queue, under its lock: kernel/sched/sched.c ---- */

void rq_add(struct run_queue *rq, struct task *t, bool first);
void rq_del(struct run_queue *rq, struct task *t);
/* The most urgent priority that waits, or -1. Without the lock: a hint. */
int rq_top_prio(const struct run_queue *rq);

/* ---- kernel/sched/balance.c, interrupts off, no run queue's lock held ---- */

/* This CPU has nothing to run: get something from another. */
void balance_idle(struct cpu *cpu);
/* At each of this CPU's ticks. */
void balance_tick(struct cpu *cpu);

/* ---- kernel/sched/task.c, for the scheduler and the trap code ---- */

/* Make the task list, and a task of the code that the boot CPU runs now. No allocation. */
void task_init_boot(void);
/* Make and set cpus[cpu].idle, or make it anew for a CPU that comes back. 0 or
 * -ENOMEM. Context: as arch_guard_page(). */
int task_init_idle(unsigned int cpu);
/*
 * The running task t ran over the end of its stack (where no guard page tells):
 * end it, or panic. Interrupts off, no lock held, and returns if the stack is good.
 */
void task_check_stack(struct task *t);
/* A detached task has left its CPU for good. Interrupts off. */
void task_reap(struct task *t);
/* Start the task that frees detached ones. */
void task_start_reaper(void);
/* Kill the running task, which is expendable: it ends with -EFAULT at once, wherever it is. No
 * lock held. */
noreturn void task_kill_current(enum task_signal signal);
/* If t is to be held at f's pc: mark it TASK_HELD, true. From irq_exit(). */
bool task_hold_here(struct task *t, const struct trap_frame *f);
/* Tasks in task_wait_held() look again: a task that is to be held has died. */
void task_hold_look(void);

#endif
