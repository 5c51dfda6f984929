/* SPDX-License-Identifier: MIT */
/* Wait queues: tasks that sleep until a condition is true. */
#ifndef KERNEL_WAIT_H
#define KERNEL_WAIT_H

#include <kernel/lock/lock.h>
#include <kernel/sched/sched.h>

/* Tasks that wait for something. See wait_event(). */
struct wait_queue {
	struct spinlock lock;
	struct list tasks; /* struct task.wait_link */
};

#define WAIT_QUEUE_INIT(w)                                                     \
	{                                                                      \
		SPINLOCK_INIT("wait_queue"), LIST_INIT((w).tasks)              \
	}

void wait_init(struct wait_queue *w);
/* Put the running task on w, to be woken, undone by wait_finish(). */
void wait_prepare(struct wait_queue *w);
void wait_finish(struct wait_queue *w);
/* Take a task that is being killed off the queue that it waits on, if it waits on one. t is the
 * running task, or one that cannot run. */
void wait_forget(struct task *t);
/* Wake one or all. Any context but with the run queue's lock held. */
void wake_one(struct wait_queue *w);
void wake_all(struct wait_queue *w);
/* The task that has waited longest, or NULL. Take it off the queue and wake it. False: it was
 * awake. Context: w->lock held. */
struct task *wait_first(struct wait_queue *w);
bool wake_first(struct wait_queue *w);

/*
 * Sleep until cond is true. The task that makes it true calls wake_one() or
 * wake_all() afterwards. Context: may_sleep().
 */
#define wait_event(w, cond)                                                    \
	do {                                                                   \
		for (;;) {                                                     \
			wait_prepare(w);                                       \
			if (cond)                                              \
				break;                                         \
			task_block();                                          \
		}                                                              \
		wait_finish(w);                                                \
	} while (0)

#endif
