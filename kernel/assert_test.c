/* SPDX-License-Identifier: MIT */
/* Proves that each kind of precondition is checked: a task that breaks it is killed,
 * and its fault names the precondition. */
#include <kernel/assert.h>

#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/test/ktest.h>
#include <kernel/lock/mutex.h>
#include <kernel/test/again.h>

static struct spinlock spin = SPINLOCK_INIT("assert");
static struct mutex mutex = MUTEX_INIT(mutex);

static void irqs_on(void *arg)
{
	(void)arg;
	assert_irqs_off();
}

static void irqs_off(void *arg)
{
	(void)arg;
	arch_irq_disable();
	assert_preemptible();
}

static void not_preemptible(void *arg)
{
	(void)arg;
	preempt_disable();
	assert_preemptible();
}

static void sleep_with_irqs_off(void *arg)
{
	(void)arg;
	arch_irq_disable();
	task_join(current_task());
}

static void spin_not_held(void *arg)
{
	(void)arg;
	spin_assert_held(&spin);
}

static void mutex_not_held(void *arg)
{
	(void)arg;
	mutex_unlock(&mutex);
}

static void queue_not_locked(void *arg)
{
	(void)arg;
	rq_add(&cpus[0].rq, current_task(), false);
}

/* The order of locks: the hook of a task that is made takes a mutex. */
static void task_under_mutex(void *arg)
{
	(void)arg;
	mutex_lock(&mutex);
	task_create("child", PRIO_LOW, ~0u, irqs_on, NULL);
}

static const struct {
	void (*fn)(void *arg);
	const char *what;
} broken[] = {
	{ irqs_on, "interrupts are on" },
	{ irqs_off, "cannot be switched away" },
	{ not_preemptible, "cannot be switched away" },
	{ sleep_with_irqs_off, "no place to sleep" },
	{ spin_not_held, "spinlock is not held" },
	{ mutex_not_held, "mutex is not held" },
	{ queue_not_locked, "spinlock is not held" },
	{ task_under_mutex, "made under a mutex" },
};

KTEST(assert_fires, "assert.each_fires")
{
	for (unsigned int i = 0; i < ARRAY_SIZE(broken); i++) {
		struct task_fault fault = { 0 };
		struct task *v;

		v = task_create_watched("broken", broken[i].fn, &fault);
		KASSERT(t, v);
		KEXPECT_EQ(t, task_join(v), -EFAULT);
		KASSERT(t, fault.what);
		KEXPECT(t, strstr(fault.what, broken[i].what));
	}
}

/* A task that keeps every precondition goes on. */
KTEST(assert_passes, "assert.right_ones_pass")
{
	irq_state_t state;

	assert_preemptible();
	assert_task_context();
	mutex_lock(&mutex);
	mutex_assert_held(&mutex);
	mutex_unlock(&mutex);
	state = spin_lock(&spin);
	spin_assert_held(&spin);
	assert_irqs_off();
	spin_unlock(&spin, state);
	KEXPECT(t, !arch_irqs_off());
}
