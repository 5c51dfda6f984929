/* SPDX-License-Identifier: MIT */
/*
 * Far calls of MIPS. With -mlong-calls a call is `lui R; addiu R,R; jalr R`, with
 * anything between, branches and loops too. So what each register holds, and each word
 * that GCC spills one to, is followed along all paths of a function. Where they meet, what
 * all agree on is known.
 */
#include "image.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 32 /* words on the stack, from the stack pointer on */

struct held {
	bool reached;
	/* By register, and behind those by slot, where GCC spills, bits of the known ones. */
	uint64_t known;
	uint32_t value[32 + SLOTS];
};

/* The register that *text begins with, and *text moved behind it and a comma.
 * 0, which nothing changes: none. */
static unsigned int take_register(const char **text)
{
	static const char names[] = "--atv0v1a0a1a2a3t0t1t2t3t4t5t6t7"
				    "s0s1s2s3s4s5s6s7t8t9k0k1gpsps8ra";
	size_t n = strcspn(*text, ",");
	unsigned int i = n == 2 ? 31 : 0;

	while (i && memcmp(*text, &names[2 * i], 2))
		i--;
	*text += n + ((*text)[n] == ',');
	return i;
}

/* s0 to s7, s8, and the slots, but for the callee's room for its arguments. */
#define CALL_KEEPS 0xfffffff040ff0000
#define SP 29

/* Its first operand is read, not written: a store, a branch, a jump. */
static bool reads_first(const char *mnemonic)
{
	return mnemonic[0] == 'b' || mnemonic[0] == 'j' ||
	       !strcmp(mnemonic, "sw") || !strcmp(mnemonic, "sh") ||
	       !strcmp(mnemonic, "sb");
}

static void set(struct held *h, unsigned int to, bool known, uint32_t value)
{
	h->known &= ~(1ull << to);
	h->known |= (uint64_t)(known && to) << to;
	h->value[to] = value;
}

/* The slot that "20(sp)" names. 0, which nothing changes: none. */
static unsigned int slot_of(const char *ops)
{
	char *end;
	unsigned long at = strtoul(ops, &end, 0);

	return !strcmp(end, "(sp)") && at % 4 == 0 && at / 4 < SLOTS ?
		       32 + at / 4 :
		       0;
}

static void step_insn(struct held *h, const struct insn *in)
{
	const char *ops = in->operands;
	unsigned int to = take_register(&ops), from;
	uint32_t value = 0;
	bool known = false;

	if (!strcmp(in->mnemonic, "sw") && (from = slot_of(ops)))
		set(h, from, h->known >> to & 1, h->value[to]);
	if (reads_first(in->mnemonic))
		return;
	if (to == SP)
		h->known &= UINT32_MAX;
	if (!strcmp(in->mnemonic, "lui")) {
		value = strtoul(ops, NULL, 0) << 16;
		known = true;
	} else if (!strcmp(in->mnemonic, "addiu") ||
		   !strcmp(in->mnemonic, "move")) {
		from = take_register(&ops);
		known = h->known >> from & 1;
		value = h->value[from] + strtol(ops, NULL, 0);
	} else if (!strcmp(in->mnemonic, "lw")) {
		from = slot_of(ops);
		known = h->known >> from & 1;
		value = h->value[from];
	}
	set(h, to, known, value);
}

/* h comes to a place too: does that take away from what is known there? */
static bool meet(struct held *at, const struct held *h)
{
	uint64_t agreed = at->reached ? at->known & h->known : h->known;
	bool changed = !at->reached;
	unsigned int i;

	for (i = 0; i < 32 + SLOTS; i++)
		if (at->reached && at->value[i] != h->value[i])
			agreed &= ~(1ull << i);
	changed |= agreed != at->known;
	if (!at->reached)
		*at = *h;
	at->known = agreed;
	at->reached = true;
	return changed;
}

static bool has_delay_slot(const struct insn *in)
{
	return in->flow != FLOW_NEXT &&
	       (in->mnemonic[0] == 'j' || in->mnemonic[0] == 'b') &&
	       strcmp(in->mnemonic, "break");
}

/* Follow instruction i of a function of n to where it goes: changed anything? */
static bool follow(const struct insn *in, size_t n, size_t i, struct held *at)
{
	const struct insn *jump =
		i && has_delay_slot(&in[i - 1]) ? &in[i - 1] : NULL;
	enum flow flow = jump ? jump->flow : FLOW_NEXT;
	struct held h = at[i];
	bool changed = false;
	uint64_t to;

	step_insn(&h, &in[i]);
	if (flow == FLOW_CALL || flow == FLOW_INDIRECT_CALL)
		h.known &= CALL_KEEPS;
	if (flow == FLOW_BRANCH || flow == FLOW_JUMP) {
		to = (jump->target - in->addr) / 4;
		if (jump->target >= in->addr && to < n)
			changed |= meet(&at[to], &h);
	}
	if (flow != FLOW_JUMP && flow != FLOW_INDIRECT_JUMP &&
	    flow != FLOW_STOP && i + 1 < n)
		changed |= meet(&at[i + 1], &h);
	return changed;
}

static void resolve_function(struct insn *in, size_t n)
{
	struct held *at = calloc(n + 1, sizeof(*at));
	bool changed = true;
	unsigned int reg;
	const char *ops;
	size_t i;

	if (!at)
		errx(1, "out of memory");
	at[0].reached = true;
	while (changed)
		for (changed = false, i = 0; i < n; i++)
			changed |= at[i].reached && follow(in, n, i, at);
	for (i = 0; i < n; i++) {
		ops = in[i].operands;
		reg = take_register(&ops);
		if (!at[i].reached || !(at[i].known >> reg & 1))
			continue;
		if (strcmp(in[i].mnemonic, "jalr") &&
		    strcmp(in[i].mnemonic, "jr"))
			continue;
		in[i].flow = in[i].mnemonic[1] == 'a' ? FLOW_CALL : FLOW_JUMP;
		in[i].target = at[i].value[reg];
	}
	free(at);
}

void image_resolve_far(struct image *im)
{
	size_t i, first, end;

	for (i = 0; i < im->nr_symbols; i++) {
		first = image_insn(im, im->symbols[i].addr);
		end = image_insn(im, im->symbols[i].addr + im->symbols[i].size);
		if (end > first)
			resolve_function(im->insns + first, end - first);
	}
}
