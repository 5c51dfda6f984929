/* SPDX-License-Identifier: MIT */
/* The words of Linux that its files for s390 use beside those of linux/patching.h. */
#ifndef PATCHERS_S390X_TEXT_PATCHING_H
#define PATCHERS_S390X_TEXT_PATCHING_H

#include <linux/patching.h>

#define __packed __attribute__((packed))
#define pr_emerg(...) printk(__VA_ARGS__)

#define text_poke_sync() patcher_sync_all()
#define text_poke_sync_lock() patcher_sync_all()

void *s390_kernel_write(void *dst, const void *src, size_t size);

#endif
