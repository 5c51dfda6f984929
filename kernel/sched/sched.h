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
	/* under lock: */
	u32 ready; /* bit p: queue[p] not empty */
	struct list queue[NR_PRIORITIES];
	unsigned int nr_ready;
	int running_prio; /* of the task that runs */
	u64 switches;
	/* by this CPU alone, interrupts off; arch_clock(): */
	u64 slice_end;
	u64 switched_at;
	struct task *prev; /* ran before; for a task's first moment */
	unsigned int ticks;
	bool expired; /* the running task has used its slice up */
};

struct timer;
struct timer_queue {
	struct spinlock lock;
	struct list timers;    /* under lock; soonest first */
	struct timer *running; /* whose fn runs now */
	u64 programmed; /* what the one-shot is set to; by this CPU alone */
};

/*
 * preempt_disable() and _enable() nest; the task stays on its CPU and no other
 * runs there in between. _enable() switches at once if one is wanted.
 */
void preempt_disable(void);
void preempt_enable(void);
/* Depth of preempt_disable() here; may this context sleep? */
unsigned int preempt_depth(void);
bool may_sleep(void);

/* Give up the CPU: to a task that is ready at the same or a higher priority. */
void sched_yield(void);

/* The core: switch to the best ready task. Interrupts off, preempt depth 1. */
void schedule(void);

/*
 * Hook for the tracer: called on every context switch, with interrupts off, on the
 * CPU that switches, before it switches. NULL when nothing needs it. It must not take
 * locks of the scheduler.
 */
extern void (*sched_switch_hook)(struct task *prev, struct task *next);

/* Block until task_wake(); after wait_prepare(), see kernel/lock/wait.h. */
void task_block(void);

#endif
