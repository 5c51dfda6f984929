/* SPDX-License-Identifier: MIT */
/*
 * The registers that a trap and a task switch save: offsets for assembly and structs for
 * C, held together by the assertions below.
 *
 * The ABI gives each called function 160 bytes above its stack pointer, for registers.
 * With -mno-backchain no compiled code uses the first 16 of these, for which a trap's return
 * has its PSW there: LPSWE must find it by a register that keeps its value, and r15 is the
 * only one.
 */
#ifndef ARCH_S390X_FRAME_H
#define ARCH_S390X_FRAME_H

#define FRAME_REG(n) (8 * (n))
#define FRAME_MASK 128
#define FRAME_PC 136
#define FRAME_CAUSE 144
#define FRAME_ADDRESS 152
#define FRAME_KIND 160
#define FRAME_SIZE 168

/* FRAME_KIND: the trap, and whether its stack was lost. */
#define KIND_EXTERNAL 0
#define KIND_PROGRAM 1
#define KIND_OTHER 2
#define KIND_LOST 8

#define CONTEXT_REG(n) (8 * ((n)-6))
#define CONTEXT_STACK 80
#define CONTEXT_SIZE 88

/* The room for registers. A walk's stack pointer is above it: the CFA at a function's entry. */
#define SAVE_AREA 160
/* Places in it. r2 to r5 and r14 are where GCC has them. */
#define AREA_R2 16
#define AREA_R0 48 /* and r1 */
#define AREA_MASK 64
#define AREA_CLOCK 72
#define AREA_R14 112

/* Where a trampoline keeps the r14 of the site's function: below the CFA. */
#define LINK_BELOW (SAVE_AREA - AREA_R14)

/* struct cpu_head.scratch[]: */
#define SCRATCH_STACK 0 /* lowest byte of the running task's stack */
#define SCRATCH_START 1 /* stack pointer for a CPU that comes up */

/* Stacks of tasks, idle ones and the boot stack, and of a CPU's last resort. */
#define STACK_SIZE 0x7000 /* TASK_STACK_SIZE */
#define TRAP_STACK_SIZE 8192

#ifndef __ASSEMBLER__
#include <kernel/types.h>

struct trap_frame {
	unsigned long reg[16];
	unsigned long mask; /* of the PSW */
	unsigned long pc;
	unsigned long cause;
	unsigned long address; /* of a page, and how it was used */
	unsigned long kind;
};

static_assert(offsetof(struct trap_frame, mask) == FRAME_MASK, "asm");
static_assert(offsetof(struct trap_frame, pc) == FRAME_PC, "asm");
static_assert(offsetof(struct trap_frame, cause) == FRAME_CAUSE, "asm");
static_assert(offsetof(struct trap_frame, address) == FRAME_ADDRESS, "asm");
static_assert(offsetof(struct trap_frame, kind) == FRAME_KIND, "asm");
static_assert(sizeof(struct trap_frame) == FRAME_SIZE, "asm");

/* A task that is not running. */
struct arch_context {
	unsigned long reg[10]; /* r6 to r15 */
	unsigned long stack;   /* its lowest byte, for trap_entry's check */
};

static_assert(offsetof(struct arch_context, reg[9]) == CONTEXT_REG(15), "asm");
static_assert(offsetof(struct arch_context, stack) == CONTEXT_STACK, "asm");
static_assert(sizeof(struct arch_context) == CONTEXT_SIZE, "asm");

#define REG_IP 1 /* a site's call leaves its return address there */
#define REG_LINK 14
#define REG_SP 15
#endif
#endif
