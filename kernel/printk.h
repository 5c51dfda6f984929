/* SPDX-License-Identifier: MIT */
/* Messages of the kernel, on the console. */
#ifndef KERNEL_PRINTK_H
#define KERNEL_PRINTK_H

#include <kernel/lib/format.h>
#include <kernel/panic.h>
#include <kernel/types.h>

struct task;
struct trap_frame;

/* One message, whole: lines of two CPUs never mix. Any context. */
void printk(const char *fmt, ...) printf_like(1, 2);

/* The same for a CPU that cannot rely on locks (a panic, a lock's complaint): it
 * waits for the console's lock a tenth of a second, then writes all the same. */
void printk_urgent(const char *fmt, ...) printf_like(1, 2);

#endif
