/* SPDX-License-Identifier: MIT */
/* notrace: no site in this function, under any front end (SITES=). */
#ifndef ARCH_S390X_ATTRIBUTES_H
#define ARCH_S390X_ATTRIBUTES_H

#define notrace                                                                \
	__attribute__((patchable_function_entry(0), hotpatch(0, 0),            \
		       no_instrument_function))

#define JUMP_LABEL_INSN "1: brc 0, .\n" /* a jump label (arch/jump_label.h) */
#define JUMP_LABEL_KEY "%c0"		/* operand 0 as a bare symbol */

#endif
