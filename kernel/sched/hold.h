/* SPDX-License-Identifier: MIT */
/* Tasks that are taken off their CPU at a chosen instruction. */
#ifndef KERNEL_HOLD_H
#define KERNEL_HOLD_H

#include <kernel/sched/task.h>

/*
 * When an interrupt finds t at a pc in [lo, hi), irq_exit() takes t off its CPU:
 * TASK_HELD, its frame in t->frame, until task_release() or task_stop(). The creator of
 * t releases it. lo = hi = 0: do so no more. For the lab and for tests.
 */
void task_hold(struct task *t, unsigned long lo, unsigned long hi);
/* The running task is held here, until task_release(). */
void task_hold_self(void);
/* Wait, at most ns, until t is held (true) or dead or time is up. */
bool task_wait_held(struct task *t, u64 ns);

#endif
