/* Mutexes: a sleeping lock whose owner is a task. */
#include <kernel/assert.h>
#include <kernel/irq.h>
#include <kernel/printk.h>
#include <kernel/sched/task.h>
#include <kernel/lock/wait.h>
#include <kernel/lock/mutex.h>

#define MUTEX_POLITE 16 /* times that a task gives way */

void mutex_init(struct mutex *m, const char *name)
{
	m->owner = NULL;
	m->name = name;
	m->broken = m->woken = false;
	list_init(&m->held);
	wait_init(&m->waiters);
}

static noinline void tell_broken(struct mutex *m)
{
	m->broken = false;
	printk("mutex %s: its last owner was killed while it held the lock: "
	       "what it guards may be half changed\n",
	       m->name);
}

bool mutex_trylock(struct mutex *m)
{
	struct task *no_owner = NULL, *me = current_task();

	/* Acquire: pairs with the release in give_back(). */
	if (!__atomic_compare_exchange_n(&m->owner, &no_owner, me, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	list_add_before(&me->mutexes, &m->held);
	WRITE_ONCE(m->woken, false);
	if (m->broken)
		tell_broken(m);
	return true;
}

/*
 * Otherwise a task that unlocks and locks in turn would keep all others out: it is there again
 * before the task that it has woken. That one may never come, so this ends.
 */
static void let_woken_go_first(const struct mutex *m)
{
	for (int i = 0;
	     i < MUTEX_POLITE && READ_ONCE(m->woken) && !READ_ONCE(m->owner);
	     i++)
		sched_yield();
}

void mutex_lock(struct mutex *m)
{
	if (READ_ONCE(m->owner) == current_task())
		panic("mutex_lock: %s holds it already", current_task()->name);
	assert_task_context();
	let_woken_go_first(m);
	if (!mutex_trylock(m))
		wait_event(&m->waiters, mutex_trylock(m));
}

static void give_back(struct mutex *m)
{
	list_del(&m->held);
	WRITE_ONCE(m->woken, !list_empty(&m->waiters.tasks));
	/* Release: pairs with the acquire in mutex_trylock(). */
	__atomic_store_n(&m->owner, NULL, __ATOMIC_RELEASE);
	wake_one(&m->waiters);
}

void mutex_unlock(struct mutex *m)
{
	mutex_assert_held(m);
	give_back(m);
}

void mutex_unlock_all(struct task *t)
{
	while (!list_empty(&t->mutexes)) {
		struct mutex *m =
			list_entry(t->mutexes.next, struct mutex, held);

		m->broken = true;
		give_back(m);
	}
}

bool mutex_is_held(const struct mutex *m)
{
	return READ_ONCE(m->owner) == current_task();
}

void mutex_assert_held(const struct mutex *m)
{
	if (!mutex_is_held(m))
		assert_failed("a mutex is not held that must be");
}
