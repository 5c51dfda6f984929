/* SPDX-License-Identifier: MIT */
/*
 * The layouts that assembly and C both use: the trap frame, the context of a
 * task that does not run, and the slot that a starting CPU reads.
 */
#ifndef X86_64_FRAME_H
#define X86_64_FRAME_H

/* struct trap_frame, in bytes: 15 registers, vector, and the CPU's part. */
#define FRAME_VECTOR 120
#define FRAME_RIP 136
#define FRAME_RFLAGS 152
#define FRAME_RSP 160
#define FRAME_SS 168
#define FRAME_SIZE 176

#define CONTEXT_SP 0
#define CONTEXT_SIZE 8

#define SECONDARY_SLOTS 32
#define SLOT_KEY 0
#define SLOT_STACK 8
#define SLOT_CPU 16
#define SLOT_SIZE 24
#define SLOT_VALID 0x100 /* beyond any APIC id that the slot can hold */

#ifndef __ASSEMBLER__
#include <kernel/types.h>

struct trap_frame {
	unsigned long r15, r14, r13, r12, r11, r10, r9, r8;
	unsigned long rbp, rdi, rsi, rdx, rcx, rbx, rax;
	unsigned long vector, error; /* error: 0 where the CPU pushes none */
	unsigned long rip, cs, rflags, rsp, ss;
};

/* The rest of a task's registers lies on its stack: arch_switch(). */
struct arch_context {
	unsigned long sp;
};

/* On the stack of a task that does not run, from its sp on: pushed by arch_switch(). */
struct switch_frame {
	unsigned long r15, r14, r13, r12, rbx, rbp, ret;
};

struct secondary_slot {
	u64 key; /* APIC id | SLOT_VALID */
	u64 stack;
	struct cpu *cpu;
};

static_assert(offsetof(struct trap_frame, vector) == FRAME_VECTOR, "asm");
static_assert(offsetof(struct trap_frame, rip) == FRAME_RIP, "asm");
static_assert(offsetof(struct trap_frame, rflags) == FRAME_RFLAGS, "asm");
static_assert(offsetof(struct trap_frame, rsp) == FRAME_RSP, "asm");
static_assert(offsetof(struct trap_frame, ss) == FRAME_SS, "asm");
static_assert(sizeof(struct trap_frame) == FRAME_SIZE, "asm");
static_assert(FRAME_SIZE % 16 == 0, "the stack stays aligned for C");
static_assert(offsetof(struct arch_context, sp) == CONTEXT_SP, "asm");
static_assert(sizeof(struct arch_context) == CONTEXT_SIZE, "asm");
static_assert(offsetof(struct secondary_slot, key) == SLOT_KEY, "asm");
static_assert(offsetof(struct secondary_slot, stack) == SLOT_STACK, "asm");
static_assert(offsetof(struct secondary_slot, cpu) == SLOT_CPU, "asm");
static_assert(sizeof(struct secondary_slot) == SLOT_SIZE, "asm");
static_assert(SECONDARY_SLOTS == MAX_CPUS, "asm");
#endif
#endif
