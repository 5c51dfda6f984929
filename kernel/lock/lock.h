/* Spinlocks that know their holder, mutexes, and wait queues. */
#ifndef KERNEL_LOCK_H
#define KERNEL_LOCK_H

#include <arch/cpu_head.h>
#include <kernel/lib/list.h>
#include <kernel/types.h>

/*
 * A ticket lock. Taken with interrupts off, so handlers may take it too. A CPU
 * that spins longer than spin_complain_ms says once who holds the lock, and since which
 * PC, and goes on waiting; taking it twice on one CPU panics.
 */
struct spinlock {
	u32 next, owner; /* tickets; atomic */
	int holder;	 /* CPU index + 1, or 0 */
	unsigned long holder_pc;
	const char *name;
};

#define SPINLOCK_INIT(n)                                                       \
	{                                                                      \
		.name = (n)                                                    \
	}

/* After how long a CPU complains, and how often any has; tests lower the first
 * and look at the second. */
extern u32 spin_complain_ms;
extern u32 spin_complaints;

void spin_init(struct spinlock *l, const char *name);
irq_state_t spin_lock(struct spinlock *l);
/* 0 and *state set, or -EBUSY at once. */
int spin_trylock(struct spinlock *l, irq_state_t *state);
void spin_unlock(struct spinlock *l, irq_state_t state);

/* This CPU holds l. For functions that need it held; see kernel/assert.h. */
void spin_assert_held(const struct spinlock *l);

/*
 * The bare lock, for the scheduler, which hands a held lock from one task to the
 * next: interrupts are off already, and preempt_count is left alone.
 */
void spin_acquire(struct spinlock *l);
void spin_release(struct spinlock *l);

/* Tasks that wait for something; see wait_event(). */
struct wait_queue {
	struct spinlock lock;
	struct list tasks; /* struct task.wait_link */
};

#define WAIT_QUEUE_INIT(w)                                                     \
	{                                                                      \
		SPINLOCK_INIT("wait_queue"), LIST_INIT((w).tasks)              \
	}

void wait_init(struct wait_queue *w);
/* Put the running task on w, to be woken; undone by wait_finish(). */
void wait_prepare(struct wait_queue *w);
void wait_finish(struct wait_queue *w);
/* Wake one or all. Any context but with the run queue's lock held. */
void wake_one(struct wait_queue *w);
void wake_all(struct wait_queue *w);

/*
 * Sleep until cond is true. Whoever makes it true calls wake_*() after. Context:
 * may_sleep().
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

/* A sleeping lock with an owner; not recursive (a second lock panics). */
struct mutex {
	struct task *owner; /* atomic */
	struct wait_queue waiters;
	const char *name;
	struct list held; /* in the owner's struct task.mutexes */
	bool broken;	  /* by the owner: the last one was killed in between */
};

#define MUTEX_INIT(m)                                                          \
	{                                                                      \
		NULL, WAIT_QUEUE_INIT((m).waiters), #m, LIST_INIT((m).held),   \
			false                                                  \
	}

/* Make a mutex usable; its name is for messages, and not copied. */
void mutex_init(struct mutex *m, const char *name);
void mutex_lock(struct mutex *m);
bool mutex_trylock(struct mutex *m);
void mutex_unlock(struct mutex *m);

/*
 * Unlock all that task t holds, because t was killed (task_die(), task_bury()).
 * What such a mutex guards may be half changed: the next owner is told on the
 * console, by the mutex's name. Context: t itself, or t does not run any more.
 */
void mutex_unlock_all(struct task *t);

/* The running task holds m. For functions that need it held; kernel/assert.h. */
void mutex_assert_held(const struct mutex *m);

#endif
