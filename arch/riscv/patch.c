/*
 * Sites. Four c.nop at a function's entry (-fpatchable-function-entry=4) are two
 * words; t0 carries the return address, site + 8. Two ways to leave it out, one
 * chosen for all sites at boot; in each, one row differs between off and on:
 *
 *	nop=auipc	compiled	fixed		off	on
 *	site + 0	c.nop; c.nop	auipc t0, hi
 *	site + 4	c.nop; c.nop			nop	jalr t0, lo(t0)
 *
 *	nop=jump	compiled	fixed		off	on
 *	site + 0	c.nop; c.nop			j . + 8	auipc t0, hi
 *	site + 4	c.nop; c.nop	jalr t0, lo(t0)
 *
 * A task preempted between the two words has executed the first one whole. With
 * nop=auipc it finds either second word, and t0 is right for both. With nop=jump
 * it is there only if the first was auipc, so jalr finds its t0, whatever the
 * first word has become since.
 */
#include <arch/arch_trace.h>
#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/string.h>

#define C_NOP_TWICE 0x00010001u

const char arch_nop_names[] = "auipc jump";
const char arch_site_expected[] = "01 00 four times, four c.nop";

struct nop_choice {
	const char *name;
	struct riscv_nop nop;
	struct site_format format;
	void (*measure)(unsigned long turns);
};

#define FORMAT(offset)                                                         \
	{                                                                      \
		.name = "patchable", .length = SITE_LENGTH,                    \
		.live_offset = (offset), .live_length = arch_live_length,      \
		.live_align = 4                                                \
	}

static const struct nop_choice choices[] = {
	{ "auipc", { 4, INSN_NOP }, FORMAT(4), nop_measure_auipc },
	{ "jump", { 0, INSN_JUMP_8 }, FORMAT(0), nop_measure_jump },
};

struct riscv_nop riscv_nop = { 4, INSN_NOP };
static const struct nop_choice *choice = &choices[0];

/*
 * Ticks that `turns` of the loop take: the least of several runs, because an
 * interrupt of the firmware, or of whoever runs the emulator, only adds.
 */
static u64 measure(const struct nop_choice *c, unsigned long turns)
{
	u64 best = ~0ull;
	unsigned int run;

	for (run = 0; run < 5; run++) {
		u64 start = arch_clock();

		c->measure(turns);
		best = min(best, arch_clock() - start);
	}
	return best;
}

static const struct nop_choice *choice_fastest(void)
{
	/* time ticks every 100 ns on virt: make a run 50 ticks long at least. */
	unsigned long turns = 16;

	while (measure(&choices[0], turns) < 50 && turns < 1ul << 20)
		turns *= 4;
	return measure(&choices[1], turns) < measure(&choices[0], turns) ?
		       &choices[1] :
		       &choices[0];
}

int arch_nop_select(const char *wanted)
{
	const struct nop_choice *c = NULL;
	unsigned int i;

	for (i = 0; wanted && i < ARRAY_SIZE(choices); i++)
		if (strcmp(wanted, choices[i].name) == 0)
			c = &choices[i];
	if (wanted && !c)
		return -EINVAL;
	choice = c ? c : choice_fastest();
	riscv_nop = choice->nop;
	return 0;
}

const char *arch_nop_describe(void)
{
	static char text[24];

	snprintf(text, sizeof(text), "%s %08x", choice->name, riscv_nop.off);
	return text;
}

const struct site_format *arch_site_recognise(unsigned long site)
{
	if (site % 2 || arch_live_read(site) != C_NOP_TWICE ||
	    arch_live_read(site + 4) != C_NOP_TWICE)
		return NULL;
	return &choice->format;
}

/* A site in a function that GCC did not align: cold ones (H10). */
static noinline int prepare_unaligned(unsigned long site, long delta, u32 first,
				      u32 second)
{
	if (!arch_site_recognise(site))
		return -EINVAL;
	arch_live_write(site + delta, first);
	arch_live_write(site + delta + 4, second);
	return 0;
}

int arch_site_prepare(unsigned long site, long delta)
{
	long rounded = site_distance_rounded(site);
	const u32 *word = (const u32 *)site;
	u32 *alias = (u32 *)(site + delta);
	u32 first = INSN_JUMP_8, second = INSN_NOP;

	/* The two words reach 2 GiB. Nothing is that far; half will do. */
	if ((rounded + (1l << 30)) >> 31)
		return arch_site_recognise(site) ? -ERANGE : -EINVAL;
	if (riscv_nop.live_offset)
		first = insn_auipc_t0(rounded);
	else
		second = insn_jalr_t0(rounded);
	if (site % 4)
		return prepare_unaligned(site, delta, first, second);
	if (word[0] != C_NOP_TWICE || word[1] != C_NOP_TWICE)
		return -EINVAL;
	alias[0] = first;
	alias[1] = second;
	return 0;
}

const char *arch_word_refused(void)
{
	return NULL;
}

void arch_break_resume(struct trap_frame *f, unsigned long live, bool on)
{
	unsigned long site = live - riscv_nop.live_offset;

	if (on && riscv_nop.live_offset) { /* jalr t0, lo(t0) */
		f->reg[REG_T0] = site + SITE_LENGTH;
		arch_frame_set_pc(f, (unsigned long)trace_entry);
		return;
	}
	if (on) /* auipc t0, hi */
		f->reg[REG_T0] =
			site + (site_distance_rounded(site) & ~0xffful);
	arch_frame_set_pc(f, on ? site + 4 : site + SITE_LENGTH);
}

void arch_text_sync(void)
{
	/*
	 * Unprivileged manual, Zifencei: fence.i orders this hart's own earlier
	 * stores, and whatever it has already seen of others', before its later
	 * fetches. The writer's stores have been seen because the caller was
	 * told of them with an acquire.
	 */
	asm volatile("fence rw, rw\n\tfence.i" ::: "memory");
}
