/* SPDX-License-Identifier: MIT */
/*
 * The part of struct task that trampolines use: offsets for assembly. kernel/sched/task.h
 * has the structs, and checks the offsets. CONTEXT_SIZE is the port's (frame.h).
 */
#ifndef ARCH_TASK_HEAD_H
#define ARCH_TASK_HEAD_H

#include <frame.h>

#define TASK_NR_RETURNS CONTEXT_SIZE
#define TASK_GRAPH_DEPTH (CONTEXT_SIZE + 4)
#define TASK_RETURNS_MISSED (CONTEXT_SIZE + 8)
#define TASK_GRAPH_SESSION (CONTEXT_SIZE + 12)
#define TASK_TAKEN (CONTEXT_SIZE + 16)

#define TASK_RETURNS 48

/*
 * Byte offsets into struct task_return, which has 1 << RETURN_SHIFT bytes. The ops are last: for a
 * task without any taken return, trace_return reads the word before the first one. That word is
 * graph_session, a number that is the address of no ops.
 */
#if __SIZEOF_POINTER__ == 8
#define RETURN_SHIFT 6
#else
#define RETURN_SHIFT 5
#endif
#define RETURN_CLOCK 0
#define RETURN_RET 8
#define RETURN_IP (8 + __SIZEOF_POINTER__)
#define RETURN_CFA (8 + 2 * __SIZEOF_POINTER__)
#define RETURN_OPS ((1 << RETURN_SHIFT) - __SIZEOF_POINTER__)

#endif
