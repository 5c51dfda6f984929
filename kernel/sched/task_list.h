/* SPDX-License-Identifier: MIT */
/* The list of all tasks. */
#ifndef KERNEL_TASK_LIST_H
#define KERNEL_TASK_LIST_H

#include <kernel/types.h>

struct task;

/* For task.c: give t its pid, which is 0 for an idle task, and list it, and the reverse. */
void task_list_add(struct task *t, bool idle);
void task_list_remove(struct task *t);

/*
 * Call fn for each task, idle ones included, until fn returns false. Interrupts are off and the
 * list is locked during each call, so t stays, and between two calls they are as they were: users
 * decide how many tasks there are. A task that is made or ends meanwhile may be passed over. The
 * caller must not be killed meanwhile.
 */
void task_for_each(bool (*fn)(struct task *t, void *arg), void *arg);

/* The pid of the task that was made last. Pids ascend, and none is used again. Any context. */
int task_last_pid(void);

/* How many tasks exist, idle ones included. */
unsigned int task_count(void);

#endif
