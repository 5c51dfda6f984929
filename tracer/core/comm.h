/* SPDX-License-Identifier: MIT */
/* Names of tasks by pid, also of those that are gone. */
#ifndef TRACER_COMM_H
#define TRACER_COMM_H

#include <kernel/types.h>

struct task;

/* Remember a task's name. Any context but NMI, never waits. */
void comm_save(const struct task *t);
/* The scheduler's hook: next runs now. Its name is remembered while any instance records, as in
 * Linux, else names of tasks in the buffers would have to give way. */
void comm_switched(const struct task *next);
/* Remember those of all tasks. */
void comm_save_all(void);
/* The name of pid, "<idle>" for 0, "<...>" when it is not known. */
void comm_find(s32 pid, char *name, size_t size);

#endif
