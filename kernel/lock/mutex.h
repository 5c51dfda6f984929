/* SPDX-License-Identifier: MIT */
/* Mutexes: locks that sleep. */
#ifndef KERNEL_MUTEX_H
#define KERNEL_MUTEX_H

#include <kernel/lock/wait.h>

/*
 * A sleeping lock with an owner, not recursive (a second lock panics). Tasks that wait for it get
 * it in the order in which they came.
 */
struct mutex {
	struct task *owner; /* atomic */
	struct wait_queue waiters;
	const char *name;
	struct list held; /* in the owner's struct task.mutexes */
	bool broken;	  /* by the owner: the last one was killed in between */
	bool given; /* by the owner: it got the lock while it slept, and has not run since */
	bool around_tasks; /* a task may be made under it: mutex_assert_around_tasks() */
};

#define MUTEX_INIT(m)                                                          \
	{                                                                      \
		NULL, WAIT_QUEUE_INIT((m).waiters), #m, LIST_INIT((m).held),   \
			false, false, false                                    \
	}
/* For the mutex that task_fork_hook takes, and for a mutex that a task only takes before it. */
#define MUTEX_INIT_AROUND_TASKS(m)                                             \
	{                                                                      \
		NULL, WAIT_QUEUE_INIT((m).waiters), #m, LIST_INIT((m).held),   \
			false, false, true                                     \
	}

/* Make a mutex usable. Its name is for messages, and not copied. */
void mutex_init(struct mutex *m, const char *name);
void mutex_lock(struct mutex *m);
bool mutex_trylock(struct mutex *m);
void mutex_unlock(struct mutex *m);

/*
 * Unlock all that task t holds, because t was killed (task_die(), task_bury()).
 * The data under such a mutex may be half changed: the next owner is told on the
 * console, by the mutex's name. Context: t itself, or t does not run any more.
 */
void mutex_unlock_all(struct task *t);

/* Does the running task hold m? */
bool mutex_is_held(const struct mutex *m);

/* The running task holds m. For functions that need it held. kernel/assert.h. */
void mutex_assert_held(const struct mutex *m);

/*
 * Each mutex that the running task holds is one that a task may be made under. task_create() calls
 * task_fork_hook, which takes a mutex. If the owner of that mutex waits for another mutex of the
 * running task, both sleep for ever.
 */
void mutex_assert_around_tasks(void);

#endif
