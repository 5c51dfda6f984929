/* Mutexes: a sleeping lock whose owner is a task. */
#include <kernel/irq.h>
#include <kernel/printk.h>
#include <kernel/sched/task.h>

void mutex_init(struct mutex *m)
{
	m->owner = NULL;
	wait_init(&m->waiters);
}

bool mutex_trylock(struct mutex *m)
{
	struct task *nobody = NULL;

	/* Acquire: pairs with the release in mutex_unlock(). */
	return __atomic_compare_exchange_n(&m->owner, &nobody, current_task(),
					   false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

void mutex_lock(struct mutex *m)
{
	if (READ_ONCE(m->owner) == current_task())
		panic("mutex_lock: %s holds it already", current_task()->name);
	if (in_interrupt() || preempt_depth())
		panic("mutex_lock: this context may not sleep");
	if (!mutex_trylock(m))
		wait_event(&m->waiters, mutex_trylock(m));
}

void mutex_unlock(struct mutex *m)
{
	if (READ_ONCE(m->owner) != current_task())
		panic("mutex_unlock: %s is not the owner",
		      current_task()->name);
	/* Release: pairs with the acquire in mutex_trylock(). */
	__atomic_store_n(&m->owner, NULL, __ATOMIC_RELEASE);
	wake_one(&m->waiters);
}
