/* SPDX-License-Identifier: MIT */
/* Making tasks ready: which CPU they go to is decided in balance.c. */
#ifndef KERNEL_BALANCE_H
#define KERNEL_BALANCE_H

#include <kernel/types.h>

struct task;

/* Make a blocked task ready. Any context. True if it was blocked. */
bool task_wake(struct task *t);

/* Let a task go on that task_hold() or task_hold_self() keeps. */
void task_release(struct task *t);

/* Ask a CPU to look at its run queue. Any context. */
void cpu_kick(unsigned int cpu);

#endif
