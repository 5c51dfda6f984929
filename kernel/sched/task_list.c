/* SPDX-License-Identifier: MIT */
/* The list of all tasks: task_list.h. */
#include <kernel/sched/task_list.h>

#include <kernel/lib/list.h>
#include <kernel/lock/lock.h>
#include <kernel/sched/task.h>

/* One task_for_each(), which gives the lock away between two tasks. */
struct walk {
	struct list link;
	struct list *next; /* where it goes on */
};

static struct spinlock list_lock = SPINLOCK_INIT("tasks");
/* under list_lock: */
static struct list tasks = LIST_INIT(tasks), walks = LIST_INIT(walks);
static unsigned int nr_tasks;
static int last_pid;

void task_list_add(struct task *t, bool idle)
{
	irq_state_t state = spin_lock(&list_lock);

	t->pid = idle ? 0 : ++last_pid;
	list_add_before(&tasks, &t->all_link);
	nr_tasks++;
	spin_unlock(&list_lock, state);
}

void task_list_remove(struct task *t)
{
	irq_state_t state = spin_lock(&list_lock);
	struct walk *w;

	list_for_each (w, &walks, link)
		if (w->next == &t->all_link)
			w->next = w->next->next;
	list_del(&t->all_link);
	nr_tasks--;
	spin_unlock(&list_lock, state);
}

void task_for_each(bool (*fn)(struct task *t, void *arg), void *arg)
{
	irq_state_t state = spin_lock(&list_lock);
	struct walk w = { .next = tasks.next };
	struct task *t;

	list_add_before(&walks, &w.link);
	while (w.next != &tasks) {
		t = list_entry(w.next, struct task, all_link);
		w.next = w.next->next;
		if (!fn(t, arg))
			break;
		spin_unlock(&list_lock, state);
		state = spin_lock(&list_lock);
	}
	list_del(&w.link);
	spin_unlock(&list_lock, state);
}

int task_last_pid(void)
{
	return READ_ONCE(last_pid);
}

unsigned int task_count(void)
{
	return READ_ONCE(nr_tasks);
}
