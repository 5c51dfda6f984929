/* SPDX-License-Identifier: MIT */
/* notrace: no site in this function, under any front end (SITES=). */
#ifndef ARCH_RISCV_ATTRIBUTES_H
#define ARCH_RISCV_ATTRIBUTES_H

#define notrace                                                                \
	__attribute__((patchable_function_entry(0), no_instrument_function))

/* A jump label (arch/jump_label.h): one instruction that the linker does not relax. */
#ifdef __riscv_compressed
#define JUMP_LABEL_INSN "1: c.nop\n"
#else
#define JUMP_LABEL_INSN "1: nop\n"
#endif
#define JUMP_LABEL_KEY "%0" /* operand 0 as a bare symbol */

#endif
