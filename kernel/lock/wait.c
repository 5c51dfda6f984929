/* SPDX-License-Identifier: MIT */
/*
 * Wait queues. Lock order: the queue's lock, then a run queue's. A waiter sets
 * itself TASK_BLOCKED before it looks at its condition, a waker changes the
 * condition before it looks at the queue: one of the two sees the other. Both
 * take the queue's lock in between, which orders it on every machine.
 */
#include <kernel/sched/sched_internal.h>
#include <kernel/sched/task.h>
#include <kernel/lock/wait.h>
#include <kernel/sched/balance.h>

/* Tasks that are woken with interrupts off: 600 to 900 instructions each. */
#define WAKE_AT_ONCE 32u

void wait_init(struct wait_queue *w)
{
	spin_init(&w->lock, "wait_queue");
	list_init(&w->tasks);
}

void wait_prepare(struct wait_queue *w)
{
	struct task *t = current_task();
	irq_state_t state = spin_lock(&w->lock);

	if (list_empty(&t->wait_link))
		list_add_before(&w->tasks, &t->wait_link);
	t->waiting_on = w;
	sched_set_state(t, TASK_BLOCKED);
	spin_unlock(&w->lock, state);
}

static void wait_leave(struct wait_queue *w, struct task *t)
{
	irq_state_t state = spin_lock(&w->lock);

	list_del(&t->wait_link);
	t->waiting_on = NULL;
	spin_unlock(&w->lock, state);
}

void wait_finish(struct wait_queue *w)
{
	wait_leave(w, current_task());
	sched_set_state(current_task(), TASK_READY);
}

void wait_forget(struct task *t)
{
	if (t->waiting_on)
		wait_leave(t->waiting_on, t);
}

struct task *wait_first(struct wait_queue *w)
{
	return list_empty(&w->tasks) ?
		       NULL :
		       list_entry(w->tasks.next, struct task, wait_link);
}

bool wake_first(struct wait_queue *w)
{
	struct task *t = wait_first(w);

	list_del(&t->wait_link);
	return task_wake(t);
}

/*
 * A task on the queue may be awake, because it was woken for another reason. It will
 * look at its condition again, or give up. In case it gives up, the next task is woken
 * as well: a task that is woken in vain only looks, a task that is not woken hangs.
 */
void wake_one(struct wait_queue *w)
{
	irq_state_t state = spin_lock(&w->lock);

	while (!list_empty(&w->tasks))
		if (wake_first(w))
			break;
	spin_unlock(&w->lock, state);
}

/*
 * As many tasks as waited at the beginning: a task that is woken may wait again. Between two
 * groups interrupts come. While a task is left w is there, and when the last one has been woken,
 * that task may already be freeing w.
 */
void wake_all(struct wait_queue *w)
{
	irq_state_t state = spin_lock(&w->lock);
	unsigned int left = 0;
	struct task *t;

	list_for_each (t, &w->tasks, wait_link)
		left++;
	while (left-- && !list_empty(&w->tasks)) {
		wake_first(w);
		if (left && left % WAKE_AT_ONCE == 0) {
			spin_unlock(&w->lock, state);
			state = spin_lock(&w->lock);
		}
	}
	spin_unlock(&w->lock, state);
}
