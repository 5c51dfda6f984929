/* SPDX-License-Identifier: MIT */
/*
 * kernel/image/unwind.c for the host: the guest's own walker, compiled with the port's
 * own frame layout, over a stopped guest's table, stack and registers. The
 * caller hands over the memory. See tests/test_unwind.py.
 *
 * A port is chosen by -Iarch/PORT. For one with 32-bit addresses "long" is int. WALKER_CFA: from
 * the stack pointer of a trap frame to that of a walk. WALKER_BIG: the guest is big-endian.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef WALKER_32
#define long int
#endif

#define __ASSEMBLER__ /* of frame.h, the offsets alone */
#include <frame.h>
#undef __ASSEMBLER__

/* ---- Declarations that kernel/image/unwind.c finds in other headers ------------------------- */

#define KERNEL_TYPES_H
#define ARCH_ARCH_TRACE_H
#define KERNEL_CPU_H
#define KERNEL_PRINTK_H
#define KERNEL_TASK_H
#define KERNEL_SYMBOLS_H

typedef uint8_t u8;
typedef uint32_t u32;
typedef int16_t s16;
#define notrace
#define noinline
#define always_inline
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define PAGE_SIZE 4096ul
#define TASK_RETURNS 48

#include <kernel/image/unwind.h>

struct trap_frame {
	char bytes[FRAME_SIZE];
};

struct task {
	char *stack;
	unsigned int nr_returns;
	struct {
		unsigned long cfa, ret;
	} returns[TASK_RETURNS];
};

/* From the ELF file and the guest, by walker_image() and walk(). */
static unsigned long image_text, image_etext, image_data, image_end;
static unsigned long image_trace_return, task_stack_size;
static const u32 *image_index, *image_rows;
static const struct unwind_rule *image_rules;

static unsigned long memory_at, memory_size;
static const char *memory;

/* As large as a word of the guest's. A walk never asks for an absent word:
 * it stays within its bounds, which are those of the memory. */
static unsigned long load(unsigned long at)
{
	unsigned long word = 0;

	if (at - memory_at <= memory_size - sizeof(word))
		memcpy(&word, memory + (at - memory_at), sizeof(word));
#ifdef WALKER_BIG
	word = sizeof(word) == 8 ? __builtin_bswap64(word) :
				   __builtin_bswap32(word);
#endif
	return word;
}

/* Where pc, sp, link and alt stand in a trap frame, from walker_frame(). -1: nowhere. */
static int frame_at[4];

static unsigned long frame_word(unsigned long f, unsigned int i)
{
	return frame_at[i] < 0 ? 0 : load(f + frame_at[i]);
}

static struct unwind_regs frame_regs(unsigned long f)
{
	return (struct unwind_regs){ frame_word(f, 0),
				     frame_word(f, 1) + WALKER_CFA,
				     frame_word(f, 2), frame_word(f, 3) };
}

#define UNWIND_LOAD(at) load(at)
#define UNWIND_HOST
#define arch_frame_regs(f, r) (*(r) = frame_regs((unsigned long)(uintptr_t)(f)))
#define arch_context_regs(c, r) ((void)(c), (void)(r))
#define current_task() NULL
#define printk(...) ((void)0)
#define _text image_text
#define _etext image_etext
#define _data image_data
#define _end image_end
#define trace_return image_trace_return
#define unwind_index image_index
#define unwind_rows image_rows
#define unwind_rules image_rules
#define TASK_STACK_SIZE task_stack_size

#include "../../kernel/image/unwind.c"

/* ---- For the test ---------------------------------------------------------- */

void walker_frame(const int *at)
{
	memcpy(frame_at, at, sizeof(frame_at));
}

void walker_image(const uint64_t *addresses, const void *index,
		  const void *rows, const void *rules)
{
	image_text = addresses[0];
	image_etext = addresses[1];
	image_data = addresses[2];
	image_end = addresses[3];
	image_trace_return = addresses[4];
	task_stack_size = addresses[5];
	image_index = index;
	image_rows = rows;
	image_rules = rules;
}

/*
 * Walk from registers pc, sp, link and alt, of a task with that stack and those
 * taken returns (pairs of cfa and return address). Addresses go to pcs, and it returns how many.
 */
unsigned int walk(const uint64_t *regs, uint64_t stack, const void *bytes,
		  unsigned int nr_returns, const uint64_t *returns,
		  uint64_t *pcs, unsigned int max)
{
	struct task t = { .stack = (char *)(uintptr_t)stack,
			  .nr_returns = nr_returns };
	struct unwind u = {
		.regs = { regs[0], regs[1], regs[2], regs[3] },
		.exact = true,
		.has_link = true,
		.task = &t,
	};
	unsigned int n = 0;

	for (unsigned int i = 0; i < nr_returns && i < TASK_RETURNS; i++) {
		t.returns[i].cfa = returns[2 * i];
		t.returns[i].ret = returns[2 * i + 1];
	}
	memory = bytes;
	memory_at = stack;
	memory_size = task_stack_size;
	set_bounds(&u);
	while (n < max && unwind_next(&u))
		pcs[n++] = u.regs.pc;
	return n;
}

/* The table's row of the address: enum unwind_where of its return address. */
unsigned int where_at(uint64_t pc)
{
	return rule_at(pc)->pc;
}
