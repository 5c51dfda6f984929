/* SPDX-License-Identifier: MIT */
/*
 * A test's requests while one allocation fails (`test GLOB memory_fails@N`). A request that lacks
 * memory changes nothing, so the test makes it once more. It must be granted then, and the test
 * goes on as in any run. For files of tests alone.
 */
#ifndef KERNEL_TEST_AGAIN_H
#define KERNEL_TEST_AGAIN_H

#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/mm/page.h>
#include <kernel/sched/task.h>
#include <kernel/test/ktest.h>

/* NAME_again(): the function NAME, called again if the result is what it is without memory. */
#define AGAIN(type, name, without, params, args)                               \
	static always_inline type name##_again params                          \
	{                                                                      \
		type result = name args;                                       \
                                                                               \
		return ktest_with_fault && result == (without) ? name args :   \
								 result;       \
	}
#define AGAIN_TASK(name)                                                       \
	AGAIN(struct task *, name, NULL,                                       \
	      (const char *called, int prio, cpumask_t affinity,               \
	       void (*fn)(void *arg), void *arg),                              \
	      (called, prio, affinity, fn, arg))

AGAIN_TASK(task_create)
AGAIN_TASK(task_create_expendable)
AGAIN(struct task *, task_create_watched, NULL,
      (const char *called, void (*fn)(void *arg), struct task_fault *fault),
      (called, fn, fault))
AGAIN(void *, kmalloc, NULL, (size_t size), (size))
AGAIN(void *, kmalloc_zeroed, NULL, (size_t size), (size))
AGAIN(void *, page_alloc, NULL, (unsigned int order), (order))
AGAIN(int, ctl_open, -ENOMEM,
      (const char *path, bool write, bool truncate, struct ctl_handle **h),
      (path, write, truncate, h))
AGAIN(ssize_t, ctl_read, -ENOMEM, (struct ctl_handle * h, char *buf, size_t n),
      (h, buf, n))
AGAIN(int, ctl_echo, -ENOMEM,
      (const char *path, const char *text, bool append, char *err_text,
       size_t err_size),
      (path, text, append, err_text, err_size))
AGAIN(int, ctl_mkdir, -ENOMEM,
      (const char *path, char *err_text, size_t err_size),
      (path, err_text, err_size))
AGAIN(int, ctl_rmdir, -ENOMEM,
      (const char *path, char *err_text, size_t err_size),
      (path, err_text, err_size))

#define task_create task_create_again
#define task_create_expendable task_create_expendable_again
#define task_create_watched task_create_watched_again
#define kmalloc kmalloc_again
#define kmalloc_zeroed kmalloc_zeroed_again
#define page_alloc page_alloc_again
#define ctl_open ctl_open_again
#define ctl_read ctl_read_again
#define ctl_echo ctl_echo_again
#define ctl_mkdir ctl_mkdir_again
#define ctl_rmdir ctl_rmdir_again

#endif
