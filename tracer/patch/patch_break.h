/* SPDX-License-Identifier: MIT */
/* Strategy `breakpoint`: its chunks, which the strategy `word` and the lab use too. */
#ifndef TRACER_PATCH_BREAK_H
#define TRACER_PATCH_BREAK_H

#include <arch/arch_trace.h>
#include <kernel/image/symbols.h>
#include <tracer/patch/patch.h>

#define PATCH_CHUNK 64 /* sites */

/* All of them are jump labels, or none is. */
struct patch_chunk {
	unsigned int count;
	struct patch_chunk_site {
		/* Ascending: the live instruction's offset from _text << 1 | on. One
		 * word, so that a trap that looks reads an address and its own state. */
		u32 entry;
		u32 target; /* of its jump, likewise an offset, or LIVE_CALL */
	} site[PATCH_CHUNK];
};

static always_inline struct live patch_chunk_live(const struct patch_chunk *c,
						  unsigned int i)
{
	unsigned long text = (unsigned long)_text;
	u32 target = c->site[i].target;

	return (struct live){ text + (c->site[i].entry >> 1),
			      target ? text + target : LIVE_CALL };
}

/* The first unit of a live instruction's bytes. */
static inline u64 patch_break_unit(u64 bytes)
{
	return bytes & (~0ull >> (64 - 8 * arch_break_length));
}

/* Store the first unit of `bytes`, a live instruction's or arch_break_insn, at an
 * alias address. One store, so that a CPU fetches the old unit or the new one. */
static always_inline void patch_break_write_unit(unsigned long alias, u64 bytes)
{
	if (arch_break_length == 1)
		*(volatile u8 *)alias = (u8)bytes;
	else if (arch_break_length == 2)
		*(volatile u16 *)alias = (u16)bytes;
	else
		*(volatile u32 *)alias = (u32)bytes;
}

static_assert(arch_break_length == 1 || arch_break_length == 2 ||
		      arch_break_length == 4,
	      "one store has to write the unit");

/* And the tail, behind a breakpoint, where no CPU fetches it. */
static always_inline void patch_break_write_tail(struct live l, long delta,
						 u64 bytes)
{
	void *alias = (void *)(l.at + delta + arch_break_length);
	u64 tail = bytes >> 8 * arch_break_length;

	/* As aligned as the unit. Each length is a constant, so that no function is called. */
	if (!l.target && arch_live_length == 4 && arch_break_length == 2)
		*(volatile u16 *)alias = (u16)tail;
	else if (!l.target)
		__builtin_memcpy(alias, &tail,
				 arch_live_length - arch_break_length);
	else
		__builtin_memcpy(alias, &tail,
				 arch_jump_length - arch_break_length);
}

static_assert(arch_break_length == arch_live_length ||
		      __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "a tail's bytes are taken in little-endian order");

/* What a step writes of one live instruction, which gets the state `on`. */
static always_inline void patch_break_write(struct live l, bool on, long delta,
					    enum patch_step step)
{
	if (step == PATCH_BREAK)
		patch_break_write_unit(l.at + delta, arch_break_insn);
	else if (step == PATCH_TAIL)
		patch_break_write_tail(l, delta, arch_live_bytes(l, on));
	else
		patch_break_write_unit(l.at + delta, arch_live_bytes(l, on));
}

/* Put a live instruction in its place. The caller may add them in any order, but of one kind only.
 * There must be room. */
static always_inline void patch_chunk_add(struct patch_chunk *c, struct live l,
					  bool on)
{
	u32 entry = (u32)(l.at - (unsigned long)_text) << 1 | on;
	struct patch_chunk_site *s = &c->site[c->count++];

	/* Batches come in ascending order, and then nothing moves. But a trap that
	 * searches an unsorted vector kills the machine (H14), so the order is not
	 * taken for granted. */
	for (; s > c->site && s[-1].entry > entry; s--)
		s[0] = s[-1];
	s->entry = entry;
	s->target = l.target ? l.target - (unsigned long)_text : LIVE_CALL;
}

/*
 * Is pc a live instruction of the first `count` of the chunk, which must be
 * ascending? Then also *l, and the state that it gets. Any context, no site.
 */
bool patch_chunk_find(const struct patch_chunk *c, u32 count, unsigned long pc,
		      struct live *l, bool *on);

/*
 * Carry out one step of breakpoints on all of a chunk: write, then have every
 * online CPU synchronise. When it returns all have. Context: a task, interrupts
 * on.
 */
void patch_chunk_step(struct patch_chunk *c, enum patch_step step);

/* After the last step: write its bytes once more, if patch_must_settle() says so. */
void patch_chunk_settle(const struct patch_chunk *c, enum patch_step last);

/* Switch a site by breakpoint, together with others: at the latest in flush. */
void patch_break_add(struct live l, bool on);
void patch_break_flush(void);

/*
 * Is there a breakpoint of a batch at address pc? Then also *l, and in *on the state
 * that it is to get. For patch_trap(): any context, no site.
 */
bool patch_break_find(unsigned long pc, struct live *l, bool *on);

#endif
