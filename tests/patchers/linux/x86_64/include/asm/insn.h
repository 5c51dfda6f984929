/* SPDX-License-Identifier: MIT */
/* A decoder of those instructions alone that Linux's patch code puts into a site. */
#ifndef PATCHERS_ASM_INSN_H
#define PATCHERS_ASM_INSN_H

#include <asm/x86.h>

struct insn {
	struct {
		u8 bytes[4], nbytes;
	} opcode, prefixes;
	struct {
		s32 value;
		u8 nbytes;
	} immediate, displacement;
	u8 length;
};
/* The distance that a jump or a call has at its end. None of them has an operand in memory. */
#define insn_offset_immediate(insn) ((insn)->length - (insn)->immediate.nbytes)
#define insn_offset_displacement(insn) ((insn)->length)
#define insn_rip_relative(insn) ((void)(insn), false)

static inline s32 displacement_at(const u8 *bytes)
{
	s32 value;

	__builtin_memcpy(&value, bytes, sizeof(value));
	return value;
}

/* 0, or -EINVAL: the instruction is none of them. */
static inline int insn_decode_kernel(struct insn *insn, const void *code)
{
	const u8 *b = code;

	*insn = (struct insn){ .opcode.bytes = { b[0], b[1] }, .length = 1 };
	if (b[0] == 0xe8 || b[0] == 0xe9) {
		insn->immediate.value = displacement_at(b + 1);
		insn->immediate.nbytes = 4;
		insn->length = 5;
	} else if (b[0] == 0xeb) {
		insn->immediate.value = (s8)b[1];
		insn->immediate.nbytes = 1;
		insn->length = 2;
	} else if (b[0] == 0x0f && (b[1] & 0xf0) == 0x80) {
		insn->immediate.value = displacement_at(b + 2);
		insn->immediate.nbytes = 4;
		insn->length = 6;
	} else if (b[0] == 0x0f && b[1] == 0x1f && b[2] == 0x44) {
		insn->length = 5;
	} else if (b[0] == 0x66 && b[1] == 0x90) {
		insn->length = 2;
	} else if (b[0] != 0x90 && b[0] != 0xcc && b[0] != 0xc3) {
		return -EINVAL;
	}
	return 0;
}

#endif
