/* SPDX-License-Identifier: MIT */
/*
 * The registers that a trap and a task switch save: offsets for assembly and structs for
 * C, held together by the assertions below.
 */
#ifndef ARCH_ARM64_FRAME_H
#define ARCH_ARM64_FRAME_H

/* Register x<n>. */
#define FRAME_REG(n) (8 * (n))
#define FRAME_SP FRAME_REG(31)
#define FRAME_PC 256
#define FRAME_STATUS 264
#define FRAME_CAUSE 272
#define FRAME_ADDRESS 280
#define FRAME_KIND 288
#define FRAME_SIZE 304 /* a multiple of 16, as the ABI wants sp */

/* FRAME_KIND: the vector that the trap took, and whether its stack was lost. */
#define KIND_SYNC 0
#define KIND_IRQ 1
#define KIND_OTHER 2
#define KIND_LOST 8

#define CONTEXT_LR 0
#define CONTEXT_SP 8
#define CONTEXT_X(n) (16 + 8 * ((n)-19))
#define CONTEXT_STACK 104
#define CONTEXT_SIZE 112

/* Where a trampoline keeps the x30 of the site's function: below its sp. */
#define LINK_BELOW 8

/* struct cpu_head.scratch[]: */
#define SCRATCH_X0 0 /* trap_entry's first two registers, until stored */
#define SCRATCH_X1 1
#define SCRATCH_START 2 /* stack pointer for a CPU that comes up */
#define SCRATCH_STACK 3 /* lowest byte of the running task's stack */

/* Stacks of tasks, idle ones and the boot stack, and of a CPU's last resort. */
#define STACK_SIZE 0x7000 /* TASK_STACK_SIZE */
#define TRAP_STACK_SIZE 8192

#ifndef __ASSEMBLER__
#include <kernel/types.h>

struct trap_frame {
	unsigned long reg[32]; /* reg[31]: sp */
	unsigned long pc;
	unsigned long status;
	unsigned long cause;   /* ESR_EL1 */
	unsigned long address; /* FAR_EL1 */
	unsigned long kind;
	unsigned long unused;
};

static_assert(offsetof(struct trap_frame, reg[31]) == FRAME_SP, "asm");
static_assert(offsetof(struct trap_frame, pc) == FRAME_PC, "asm");
static_assert(offsetof(struct trap_frame, status) == FRAME_STATUS, "asm");
static_assert(offsetof(struct trap_frame, cause) == FRAME_CAUSE, "asm");
static_assert(offsetof(struct trap_frame, address) == FRAME_ADDRESS, "asm");
static_assert(offsetof(struct trap_frame, kind) == FRAME_KIND, "asm");
static_assert(sizeof(struct trap_frame) == FRAME_SIZE, "asm");
static_assert(FRAME_SIZE % 16 == 0, "ABI");

/* A task that is not running. x28 is the CPU's, so it is not here. */
struct arch_context {
	unsigned long lr;
	unsigned long sp;
	unsigned long x[11]; /* x19 and up to x29. x28's place is not used */
	unsigned long stack; /* its lowest byte, for trap_entry's check */
};

static_assert(offsetof(struct arch_context, lr) == CONTEXT_LR, "asm");
static_assert(offsetof(struct arch_context, sp) == CONTEXT_SP, "asm");
static_assert(offsetof(struct arch_context, x[10]) == CONTEXT_X(29), "asm");
static_assert(offsetof(struct arch_context, stack) == CONTEXT_STACK, "asm");
static_assert(sizeof(struct arch_context) == CONTEXT_SIZE, "asm");

#define REG_IP 9 /* a site at a function's entry keeps x30 there */
#define REG_LR 30
#define REG_SP 31
#endif
#endif
