/* SPDX-License-Identifier: MIT */
/*
 * The registers that a trap and a task switch save: offsets for entry.S and
 * structs for C, held together by the assertions below.
 */
#ifndef ARCH_RISCV_FRAME_H
#define ARCH_RISCV_FRAME_H

/* Register x<n>. The place of x0, which is always 0, holds the pc. */
#define FRAME_REG(n) (8 * (n))
#define FRAME_PC FRAME_REG(0)
#define FRAME_STATUS 256
#define FRAME_CAUSE 264
#define FRAME_TVAL 272
#define FRAME_SIZE 288 /* a multiple of 16, as the ABI wants sp */

#define CONTEXT_RA 0
#define CONTEXT_SP 8
#define CONTEXT_S(n) (16 + 8 * (n))
#define CONTEXT_STACK 112
#define CONTEXT_SIZE 120

/* Where a trampoline keeps the ra of the site's function: below its sp. */
#define LINK_BELOW 8

/* struct cpu_head.scratch[]: */
#define SCRATCH_T0 0 /* trap_entry's first two registers, until stored */
#define SCRATCH_T1 1
#define SCRATCH_START 2 /* stack pointer for a CPU that comes up */
#define SCRATCH_STACK 3 /* lowest byte of the running task's stack */

/* Stacks of tasks, idle ones and the boot stack, and of a CPU's last resort. */
#define STACK_SIZE 0x7000 /* TASK_STACK_SIZE */
#define TRAP_STACK_SIZE 8192

#ifndef __ASSEMBLER__
#include <kernel/types.h>

struct trap_frame {
	unsigned long reg[32]; /* reg[0]: pc */
	unsigned long status;
	unsigned long cause;
	unsigned long tval;
	unsigned long unused;
};

static_assert(offsetof(struct trap_frame, reg[31]) == FRAME_REG(31), "asm");
static_assert(offsetof(struct trap_frame, status) == FRAME_STATUS, "asm");
static_assert(offsetof(struct trap_frame, cause) == FRAME_CAUSE, "asm");
static_assert(offsetof(struct trap_frame, tval) == FRAME_TVAL, "asm");
static_assert(sizeof(struct trap_frame) == FRAME_SIZE, "asm");
static_assert(FRAME_SIZE % 16 == 0, "ABI");

/* A task that is not running. tp is the CPU's, gp a constant: neither here. */
struct arch_context {
	unsigned long ra;
	unsigned long sp;
	unsigned long s[12];
	unsigned long stack; /* its lowest byte, for trap_entry's check */
};

static_assert(offsetof(struct arch_context, ra) == CONTEXT_RA, "asm");
static_assert(offsetof(struct arch_context, sp) == CONTEXT_SP, "asm");
static_assert(offsetof(struct arch_context, s[11]) == CONTEXT_S(11), "asm");
static_assert(offsetof(struct arch_context, stack) == CONTEXT_STACK, "asm");
static_assert(sizeof(struct arch_context) == CONTEXT_SIZE, "asm");

enum reg_index {
	REG_RA = 1,
	REG_SP = 2,
	REG_GP = 3,
	REG_T0 = 5,
	REG_FP = 8,
	REG_A0 = 10,
};
#endif
#endif
