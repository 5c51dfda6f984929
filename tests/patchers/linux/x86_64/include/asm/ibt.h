/* SPDX-License-Identifier: MIT */
#include <asm/x86.h>
