/* SPDX-License-Identifier: MIT */
/*
 * Sites, one kind in an image (SITES=): the table of each is in its site.h. In each,
 * one row differs between off and on: the live word, all that is written after boot.
 *
 * With compressed instructions a site may be 2-aligned: cold functions' at their
 * entry, and any behind a prologue. Its live word is then no single store (H10)
 * and is left to the strategies that need none.
 */
#include <boot/boot_info.h>
#include <arch/arch_trace.h>
#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>

const char arch_site_expected[] = SITE_EXPECTED;

struct nop_choice {
	const char *name;
	const char *
		description; /* with the upper halfword 0: that is the site's */
	unsigned long live;  /* of the live instruction from the site */
	void (*measure)(unsigned long turns); /* NULL: there is no other */
	struct site_word words[2];
};

static const struct nop_choice choices[] = { SITE_NOPS };
const char arch_nop_names[] = SITE_NOP_NAMES;

unsigned long riscv_site_live = 4;
struct site_word riscv_site_words[2];

/*
 * Ticks that `turns` of the loop take: the least of several runs, because an interrupt
 * of the firmware or of the emulator's host can only add to it.
 */
static u64 measure_nop(const struct nop_choice *c, unsigned long turns)
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
	const struct nop_choice *best = choices;
	/* time ticks every 100 ns on virt: make a run 50 ticks long at least. */
	unsigned long turns = 16;

	if (ARRAY_SIZE(choices) == 1)
		return best;
	while (measure_nop(best, turns) < 50 && turns < 1ul << 20)
		turns *= 4;
	for (unsigned int i = 1; i < ARRAY_SIZE(choices); i++)
		if (measure_nop(&choices[i], turns) < measure_nop(best, turns))
			best = &choices[i];
	return best;
}

const char *arch_word_refused;

const char *arch_nop_select(const char *wanted)
{
	const struct nop_choice *c = wanted ? NULL : choice_fastest();

	for (unsigned int i = 0; wanted && i < ARRAY_SIZE(choices); i++)
		if (strcmp(wanted, choices[i].name) == 0)
			c = &choices[i];
	if (!c)
		return NULL;
	riscv_site_live = c->live;
	memcpy(riscv_site_words, c->words, sizeof(riscv_site_words));
	/* Ziccif promises whole words. */
	arch_word_refused =
		arch_live_insns > 1 ?
			"a site has two live instructions" :
		site_shares_a_half() || boot_info.icount ?
			NULL :
			"QEMU fetches a word by halves, whatever Ziccif "
			"promises, unless -icount or nop=auipc";
	return c->description;
}

notrace const char *arch_site_recognise(unsigned long site)
{
	return site_is_compiled(site) ? SITE_FORMAT : NULL;
}

static int prepare_jump(struct live l, long delta)
{
	long reach = arch_jump_length == 2 ? 2048 : 1l << 20;
	long distance = (long)(l.target - l.at);

	if (arch_live_read(l) !=
	    (arch_jump_length == 2 ? INSN_C_NOP : INSN_NOP))
		return -EINVAL;
	if (distance < -reach || distance >= reach)
		return -ERANGE;
	arch_live_write(l, delta, arch_live_bytes(l, false));
	return 0;
}

/* notrace: it runs once for each site, while its own would still call the stub. */
notrace int arch_site_prepare(unsigned long site, unsigned long target,
			      long delta)
{
	if (target)
		return prepare_jump((struct live){ site, target }, delta);
	if (__builtin_expect(!site_is_compiled(site), 0))
		return -EINVAL;
	if (!site_reaches(site))
		return -ERANGE;
	site_convert(site, site + delta);
	return 0;
}

void arch_break_resume(struct trap_frame *f, struct live l, bool on)
{
	unsigned long site = l.at - SITE_LIVE;
	unsigned long behind = site + SITE_LENGTH, pc = behind;

	if (l.target)
		pc = on ? l.target : l.at + arch_jump_length;
	else if (on && arch_live_insns == 1 &&
		 arch_live_bytes(l, true) % 128 == INSN_AUIPC) {
		long rounded = distance_rounded(site, trace_entry);

		f->reg[SITE_LINK] = site + ALIGN_DOWN(rounded, 4096l);
		pc = site + 4; /* where the fixed jalr goes on */
	} else if (on) {
		f->reg[SITE_LINK] = behind;
		pc = (unsigned long)trace_entry;
	}
	arch_frame_set_pc(f, pc);
}

notrace void arch_text_sync(void)
{
	/*
	 * Unprivileged manual, Zifencei: fence.i orders this hart's own earlier
	 * stores, and those of others that it has already seen, before its later
	 * fetches. The writer's stores have been seen because the caller was
	 * told of them with an acquire.
	 */
	asm volatile("fence rw, rw\n\tfence.i" ::: "memory");
}
