/* SPDX-License-Identifier: MIT */
/*
 * Preconditions as code: a function that needs a certain context of its caller
 * asserts it at its entry by one of these. spin_assert_held() and mutex_assert_held()
 * are in kernel/lock. They are always compiled in.
 */
#ifndef KERNEL_ASSERT_H
#define KERNEL_ASSERT_H

#include <kernel/types.h>

/*
 * A precondition does not hold: panic, with the message and a backtrace. In an
 * expendable task whose creator collects its faults (struct task_fault), as tests
 * do, the task is killed instead and the message is kept as the fault's `what`.
 */
noreturn void assert_failed(const char *what);

/* Interrupts are off on this CPU. */
void assert_irqs_off(void);
/* Interrupts are on, and the task may be switched away. */
void assert_preemptible(void);
/* This is a task and no interrupt or NMI handler, and it may sleep. */
void assert_task_context(void);

#endif
