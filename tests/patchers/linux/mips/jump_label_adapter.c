/* SPDX-License-Identifier: MIT */
/* Linux's jump_label.c for MIPS, as the lab asks for patch code. It stores while all CPUs run. */
#include "linux/jump_label.c"

JUMP_LABEL_PATCHER(arch_jump_label_transform, 8);
