/* SPDX-License-Identifier: MIT */
/* Shell-style patterns. */
#ifndef KERNEL_GLOB_H
#define KERNEL_GLOB_H

#include <kernel/types.h>

/* Linux's glob_match(): * ? [a-z] [!a-z] and backslash, the whole string. */
bool glob_match(const char *pattern, const char *text);

#endif
