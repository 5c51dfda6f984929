/* SPDX-License-Identifier: MIT */
/*
 * The registers that a trap saves, and those that a task keeps while it does not
 * run: the structs, and their offsets for assembly.
 */
#ifndef ARCH_FRAME_H
#define ARCH_FRAME_H

#define FRAME_REG(n) (16 + 4 * (n)) /* above the o32 argument area */
#define FRAME_LO 144
#define FRAME_HI 148
#define FRAME_STATUS 152
#define FRAME_CAUSE 156
#define FRAME_EPC 160
#define FRAME_BADVADDR 164
#define FRAME_SIZE 168

/* struct arch_context: s0..s7, s8, sp, ra. */
#define CONTEXT_S(n) (4 * (n))
#define CONTEXT_SP 36
#define CONTEXT_RA 40
#define CONTEXT_SIZE 48 /* up to the next 8 bytes */

/* struct cpu_head.scratch[]: the address of the GIC's counter, for the trampolines. */
#define SCRATCH_COUNTER 0
#define CPU_HEAD_COUNTER (CPU_HEAD_SCRATCH + 4 * SCRATCH_COUNTER)

/* The second half is for tools/lib/unwind.c, which does not take GAS's own. */
#define CFI_STARTPROC                                                          \
	.cfi_startproc;                                                        \
	.cfi_def_cfa 29, 0

/* The frame of the trampolines that call C. */
#define TRACE_FRAME_AT 48
#define TRACE_FRAME_RA 52
#define TRACE_FRAME_SIZE 56

/* One for each CPU, for the trap that finds no usable stack. */
#define EMERGENCY_STACK_SIZE 8192

#ifndef __ASSEMBLER__
#include <kernel/types.h>

struct trap_frame {
	u32 arguments[4]; /* o32: room for the handler's a0..a3 */
	u32 reg[32];	  /* reg[0] is not used, reg[29] is sp at the trap */
	u32 lo, hi;
	u32 status, cause, epc, badvaddr;
};

static_assert(offsetof(struct trap_frame, reg[1]) == FRAME_REG(1), "asm");
static_assert(offsetof(struct trap_frame, lo) == FRAME_LO, "asm");
static_assert(offsetof(struct trap_frame, hi) == FRAME_HI, "asm");
static_assert(offsetof(struct trap_frame, status) == FRAME_STATUS, "asm");
static_assert(offsetof(struct trap_frame, cause) == FRAME_CAUSE, "asm");
static_assert(offsetof(struct trap_frame, epc) == FRAME_EPC, "asm");
static_assert(offsetof(struct trap_frame, badvaddr) == FRAME_BADVADDR, "asm");
static_assert(sizeof(struct trap_frame) == FRAME_SIZE, "asm");
static_assert(FRAME_SIZE % 8 == 0, "o32 stacks are 8-byte aligned");

enum { REG_AT = 1, REG_V1 = 3, REG_SP = 29, REG_RA = 31 };
#endif
#endif
