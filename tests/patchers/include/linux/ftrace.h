/* SPDX-License-Identifier: MIT */
#include <linux/patching.h>
#include <asm/ftrace.h>
