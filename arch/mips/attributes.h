/* SPDX-License-Identifier: MIT */
/* Attributes of functions, which differ between ports. */
#ifndef ARCH_ATTRIBUTES_H
#define ARCH_ATTRIBUTES_H

/* The function has no site: -pg leaves it alone. */
#define notrace __attribute__((no_instrument_function))

/* A jump label (arch/jump_label.h): the live instruction and its delay slot. */
#define JUMP_LABEL_INSN                                                        \
	".set push\n"                                                          \
	".set noreorder\n"                                                     \
	"1: nop\n"                                                             \
	"nop\n"                                                                \
	".set pop\n"
#define JUMP_LABEL_KEY "%0" /* operand 0 as a bare symbol */

#endif
