/* SPDX-License-Identifier: MIT */
/* Mutexes: a sleeping lock whose owner is a task. */
#include <kernel/assert.h>
#include <kernel/irq.h>
#include <kernel/printk.h>
#include <kernel/sched/task.h>
#include <kernel/lock/wait.h>
#include <kernel/lock/mutex.h>

void mutex_init(struct mutex *m, const char *name)
{
	m->owner = NULL;
	m->name = name;
	m->broken = m->given = m->around_tasks = false;
	list_init(&m->held);
	wait_init(&m->waiters);
}

/* The running task is the owner, and goes on. */
static void mutex_begin(struct mutex *m)
{
	m->given = false;
	if (!m->broken)
		return;
	m->broken = false;
	printk("mutex %s: its last owner was killed while it held the lock: "
	       "what it guards may be half changed\n",
	       m->name);
}

bool mutex_trylock(struct mutex *m)
{
	struct task *no_owner = NULL, *me = current_task();

	/* Acquire: pairs with the release in pass_on(). */
	if (!__atomic_compare_exchange_n(&m->owner, &no_owner, me, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	list_add_before(&me->mutexes, &m->held);
	mutex_begin(m);
	return true;
}

static bool was_given(struct mutex *m)
{
	/* Acquire: pairs with the release in pass_on(). */
	if (__atomic_load_n(&m->owner, __ATOMIC_ACQUIRE) != current_task())
		return false;
	mutex_begin(m);
	return true;
}

void mutex_lock(struct mutex *m)
{
	if (READ_ONCE(m->owner) == current_task())
		panic("mutex_lock: %s holds it already", current_task()->name);
	assert_task_context();
	if (!mutex_trylock(m))
		wait_event(&m->waiters, was_given(m) || mutex_trylock(m));
}

/*
 * The task that has waited longest is the next owner, before it runs. Were the mutex free until
 * then, a task that unlocks and locks in turn would be there again first, each time.
 */
static void pass_on(struct mutex *m)
{
	irq_state_t state = spin_lock(&m->waiters.lock);
	struct task *next = wait_first(&m->waiters);

	list_del(&m->held);
	if (next)
		list_add_before(&next->mutexes, &m->held);
	m->given = next;
	/* Release: pairs with the acquires in mutex_trylock() and was_given(). */
	__atomic_store_n(&m->owner, next, __ATOMIC_RELEASE);
	if (next)
		wake_first(&m->waiters);
	spin_unlock(&m->waiters.lock, state);
}

void mutex_unlock(struct mutex *m)
{
	mutex_assert_held(m);
	pass_on(m);
}

void mutex_unlock_all(struct task *t)
{
	while (!list_empty(&t->mutexes)) {
		struct mutex *m =
			list_entry(t->mutexes.next, struct mutex, held);

		m->broken |= !m->given;
		pass_on(m);
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

void mutex_assert_around_tasks(void)
{
	struct mutex *m;

	list_for_each (m, &current_task()->mutexes, held)
		if (!m->around_tasks)
			assert_failed("a task is made under a mutex that is "
				      "not for that");
}
