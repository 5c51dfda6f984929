/* SPDX-License-Identifier: MIT */
/* Kernel tasks. */
#ifndef KERNEL_TASK_H
#define KERNEL_TASK_H

#include <arch/arch.h>
#include <arch/task_head.h>
#include <kernel/lib/list.h>
#include <kernel/lock/lock.h>
#include <kernel/sched/sched.h>
#include <kernel/time.h>
#include <kernel/lock/wait.h>

#define TASK_NAME_LEN 16
/* Guard page below and stack are one allocation of 2^TASK_STACK_ORDER pages. */
#define TASK_STACK_ORDER 3
#define TASK_STACK_SIZE ((PAGE_SIZE << TASK_STACK_ORDER) - PAGE_SIZE)

enum task_state {
	TASK_READY,   /* on a run queue, or running */
	TASK_BLOCKED, /* waits to be woken */
	TASK_HELD,    /* taken off its CPU at a chosen pc: task_hold() */
	TASK_DEAD,    /* exited, waits to be joined */
};

/* The fault that ended an expendable task. If task.fault points to one of these, the
 * fault is written there, and not printed. */
struct task_fault {
	const char *what; /* NULL: there was none */
	unsigned long pc, addr, sp;
	/* Optional. Called in the trap, with interrupts off. True: it has changed
	 * f so that the task can go on. */
	bool (*fix)(struct trap_frame *f);
};

/* Why a task is killed, as Linux's number of the signal that ends a user's program then. */
enum task_signal {
	SIGNAL_ABORT = 6,  /* a precondition does not hold */
	SIGNAL_KILL = 9,   /* another task ended it */
	SIGNAL_FAULT = 11, /* a fault, or a stack overflow */
};

/*
 * A return address that a tracer has taken. The function will return to trace_return,
 * and from there to `ret` (tracer/ops/returns.h).
 */
struct task_return {
	u64 clock;	   /* arch_clock() when it was taken */
	unsigned long ret; /* the real return address */
	unsigned long ip;  /* return address of the site's call */
	unsigned long cfa; /* where the function's frame ends */
	unsigned long unused[sizeof(long) == 8 ? 3 : 2]; /* to a power of two */
	struct trace_ops *ops;				 /* that took it */
};
static_assert(sizeof(struct task_return) == 1 << RETURN_SHIFT, "asm");
static_assert(offsetof(struct task_return, ops) == RETURN_OPS, "asm");
static_assert(offsetof(struct task_return, ret) == RETURN_RET, "asm");
static_assert(offsetof(struct task_return, ip) == RETURN_IP, "asm");
static_assert(offsetof(struct task_return, cfa) == RETURN_CFA, "asm");
static_assert(offsetof(struct task_return, clock) == RETURN_CLOCK, "asm");

struct task {
	struct arch_context context; /* first: arch_switch() */

	/*
	 * Taken returns, the innermost last. They are the task's own: an interrupt
	 * in between leaves all of them as they were. Trampolines find them behind the
	 * context (arch/task_head.h). task_clear_traces() clears everything from here to the
	 * task's name. The fields of a session of function_graph are used with interrupts off.
	 */
	u32 nr_returns __attribute__((aligned(8)));
	u32 graph_depth; /* of these: in the ring, in graph_session */
	u32 returns_missed; /* likewise: calls that found TASK_RETURNS taken already */
	u32 graph_session; /* the last session of function_graph that recorded its calls */
	struct task_return returns[TASK_RETURNS];
	/* In graph_session: the numbers, from 1, of the call that set_graph_notrace hides, and of
	 * the one that set_graph_function shows. Either may have returned since (graph.c). */
	u32 graph_hidden, graph_root;
	/* When and where it was switched away, if the tracer noted that: arch_clock(), a CPU. */
	u64 left_at;
	unsigned int left_cpu;
	u32 quiesced; /* the last trace_quiesce() that saw it outside */

	/* Set when the task is made, and never changed. */
	char name[TASK_NAME_LEN]
		__attribute__((aligned(8))); /* copied by words */
	int pid;			     /* idle tasks: 0 */
	int prio;
	bool expendable; /* a fault kills it, not the kernel. Not while it patches */
	bool guarded; /* a page that faults is below its stack. Else a canary */
	char *stack;  /* lowest usable byte */
	void (*fn)(void *arg);
	void *arg;
	struct task_fault *fault; /* its creator's, or NULL */

	/* Under the lock of the run queue that it belongs to, which is cpu's. */
	enum task_state state;
	bool detached;
	bool waking; /* sched_place() is to say that it was woken */
	unsigned int cpu;
	cpumask_t affinity;
	struct list run_link;
	bool on_cpu; /* it runs, or a CPU still uses its stack: cleared atomically */

	/* Under the lock of the wait queue that it waits on. */
	struct wait_queue *waiting_on;
	struct list wait_link;

	struct list all_link; /* of all tasks, under task_list.c's lock */

	/* Written by the task itself alone, while it runs. */
	struct list mutexes;	      /* that it holds */
	struct timer timer;	      /* task_sleep() */
	struct trap_frame *frame;     /* of the interrupt that preempted it */
	bool preempted;		      /* switched away by irq_exit() */
	bool killed;		      /* by a fault or a stack overflow */
	unsigned long interrupted_pc; /* by the latest interrupt */
	int exit_code;
	u64 slice_left; /* arch_clock() ticks, if it was preempted within one */
	u64 run_ticks;	/* arch_clock() ticks on a CPU */
	u64 switches;

	/* Written by other tasks, one word each. */
	bool should_stop;		/* task_stop() */
	unsigned long hold_lo, hold_hi; /* task_hold() */

	struct wait_queue exit_wait; /* has its own lock */
};
static_assert(offsetof(struct task, nr_returns) == TASK_NR_RETURNS, "asm");
static_assert(offsetof(struct task, graph_depth) == TASK_GRAPH_DEPTH, "asm");
static_assert(offsetof(struct task, returns_missed) == TASK_RETURNS_MISSED,
	      "asm");
static_assert(offsetof(struct task, graph_session) == TASK_GRAPH_SESSION,
	      "asm");
static_assert(offsetof(struct task, returns) == TASK_TAKEN, "asm");

static inline struct task *current_task(void)
{
	return arch_current();
}

/*
 * Make a task that runs fn(arg) and then exits with 0. prio is 1 to 31. affinity
 * names at least one online CPU. The task runs from now on. NULL when out of memory,
 * which is printed. The creator must join the task, or detach it. The
 * mutexes that the creator holds are such that mutex_assert_around_tasks() accepts them.
 */
struct task *task_create(const char *name, int prio, cpumask_t affinity,
			 void (*fn)(void *arg), void *arg);
/* Called by the task that has made another, before that runs: for the tracer. NULL: none. */
extern void (*task_fork_hook)(struct task *parent, struct task *child);

/* The same, expendable: for tests and the lab. */
struct task *task_create_expendable(const char *name, int prio,
				    cpumask_t affinity, void (*fn)(void *arg),
				    void *arg);
/* The same, of normal priority: the fault that ends it, or the precondition that it
 * breaks (kernel/assert.h), is written into *fault and not printed. For tests. */
struct task *task_create_watched(const char *name, void (*fn)(void *arg),
				 struct task_fault *fault);
/* Wait until the task has ended, and free it. Its exit code. -EFAULT: a fault ended it. */
int task_join(struct task *t);
/* Free the task when it ends: no task will join it. */
void task_detach(struct task *t);
noreturn void task_exit(int code);
/* Ask a task to end: task_should_stop() says true to it. It wakes, and is held no more. */
void task_stop(struct task *t);
bool task_should_stop(void);
/* Let the task run on the CPUs of mask alone. 0. -EINVAL: none of them is online. */
int task_set_affinity(struct task *t, cpumask_t mask);

/* Sleep for at least ns nanoseconds. task_stop() and task_wake() end it earlier. */
void task_sleep(u64 ns);

/* End a held task where it stands, as a fault would. It must be joined as usual. */
void task_bury(struct task *t);

/*
 * Call fn(t, arg) while t can neither run nor move, so that its stack, its context
 * and t->frame stand still. A run queue's lock is held meanwhile, so fn takes none,
 * and the caller holds none. False: t runs now, and fn was not called.
 */
bool task_inspect(struct task *t, void (*fn)(struct task *t, void *arg),
		  void *arg);

/*
 * Where a task that is not running stands: the frame's pc if it was preempted,
 * else the address that it will return to from schedule(). 0 if it runs.
 */
unsigned long task_pc(const struct task *t);

/*
 * The tracer's answer to whether pc lies on a site, so that ps can mark tasks that
 * were preempted there. NULL until the tracer is ready. Any context.
 */
extern bool (*task_on_site)(unsigned long pc);

/* Where every task begins: arch_task_init() sees to it. */
noreturn void task_start(void);

#endif
