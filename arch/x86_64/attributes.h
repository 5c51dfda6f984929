/* SPDX-License-Identifier: MIT */
/* Attributes of functions, which differ between ports. */
#ifndef X86_64_ATTRIBUTES_H
#define X86_64_ATTRIBUTES_H

/* notrace: no site in this function, under any front end (SITES=). */
#define notrace                                                                \
	__attribute__((patchable_function_entry(0), no_instrument_function))

/* A jump label (arch/jump_label.h): patch.c says why there may be prefixes before it. */
#define JUMP_LABEL_INSN                                                        \
	".balign 8, 0x2e, 4\n"                                                 \
	"1: .byte 0x0f, 0x1f, 0x44, 0x00, 0x02\n"
#define JUMP_LABEL_KEY "%c0" /* operand 0 as a bare symbol */

#endif
