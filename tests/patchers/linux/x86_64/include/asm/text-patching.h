/* SPDX-License-Identifier: MIT */
/* Instructions that Linux's patch code makes, and such as its breakpoint acts as. */
#ifndef PATCHERS_ASM_TEXT_PATCHING_H
#define PATCHERS_ASM_TEXT_PATCHING_H

#include <asm/x86.h>

#define POKE_MAX_OPCODE_SIZE 5
#define INT3_INSN_OPCODE 0xcc
#define INT3_INSN_SIZE 1
#define RET_INSN_OPCODE 0xc3
#define RET_INSN_SIZE 1
#define CALL_INSN_OPCODE 0xe8
#define CALL_INSN_SIZE 5
#define JMP32_INSN_OPCODE 0xe9
#define JMP32_INSN_SIZE 5
#define JMP8_INSN_OPCODE 0xeb
#define JMP8_INSN_SIZE 2

struct pt_regs {
	unsigned long ip, sp, flags;
};
#define user_mode(regs) ((void)(regs), false)

extern struct mm_struct *poking_mm;
extern unsigned long poking_addr;
void *text_poke(void *addr, const void *opcode, size_t len);
void text_poke_early(void *addr, const void *opcode, size_t len);
void *text_poke_kgdb(void *addr, const void *opcode, size_t len);
void *text_poke_copy(void *addr, const void *opcode, size_t len);
void *text_poke_set(void *addr, int c, size_t len);
void text_poke_sync(void);
void text_poke_bp(void *addr, const void *opcode, size_t len,
		  const void *emulate);
void text_poke_queue(void *addr, const void *opcode, size_t len,
		     const void *emulate);
void text_poke_finish(void);
int poke_int3_handler(struct pt_regs *regs);

/* Make a jump or a call of so many bytes that will stand at `at`. */
static inline void __text_gen_insn(void *made, u8 opcode, const void *at,
				   const void *target, size_t length)
{
	s32 distance = (s32)((long)target - (long)at - length);

	BUG_ON(length == JMP8_INSN_SIZE && distance != (s8)distance);
	*(u8 *)made = opcode;
	__builtin_memcpy((u8 *)made + 1, &distance, length - 1);
}

/* It is good until the next one is made. */
static inline void *text_gen_insn(u8 opcode, const void *at, const void *target)
{
	static u8 made[POKE_MAX_OPCODE_SIZE];

	__text_gen_insn(made, opcode, at, target,
			opcode == JMP8_INSN_OPCODE ? JMP8_INSN_SIZE :
						     CALL_INSN_SIZE);
	return made;
}

static always_inline void int3_emulate_jmp(struct pt_regs *regs,
					   unsigned long target)
{
	regs->ip = target;
}

/* regs->ip lies behind the breakpoint, which stands where the call does. */
static always_inline void int3_emulate_call(struct pt_regs *regs,
					    unsigned long target)
{
	regs->sp -= sizeof(unsigned long);
	*(unsigned long *)regs->sp = regs->ip - INT3_INSN_SIZE + CALL_INSN_SIZE;
	regs->ip = target;
}

static always_inline void int3_emulate_ret(struct pt_regs *regs)
{
	regs->ip = *(unsigned long *)regs->sp;
	regs->sp += sizeof(unsigned long);
}

/* No site here is a conditional jump. */
static always_inline void int3_emulate_jcc(struct pt_regs *regs, u8 condition,
					   unsigned long next,
					   unsigned long distance)
{
	(void)regs, (void)condition, (void)next, (void)distance;
	panic("a conditional jump is not emulated");
}

#endif
