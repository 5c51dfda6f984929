/* SPDX-License-Identifier: MIT */
/* Proves facts that the lab cannot enumerate: another CPU may execute a word while it changes. */
#include <kernel/test/ktest.h>
#include <tracer/sites/sites.h>

/* Of the list in DDI 0487, B2.2.5, those that this port writes. */
static bool may_change(u64 word)
{
	return word == INSN_NOP || word == INSN_BRK ||
	       (word & ~(u64)INSN_DISTANCE) == INSN_B ||
	       (word & ~(u64)INSN_DISTANCE) == INSN_BL;
}

static unsigned int other_words(struct live l)
{
	return !may_change(arch_live_read(l)) +
	       !may_change(arch_live_bytes(l, false)) +
	       !may_change(arch_live_bytes(l, true));
}

KTEST(lab_words, "lab.words_may_change")
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < site_count; i++)
		wrong += other_words(live_of_site(site_address(i)));
	for (unsigned int i = 0; i < jump_count; i++)
		wrong += other_words(jump_live(i));
	KEXPECT_EQ(t, wrong, 0);
	KEXPECT(t, may_change(arch_break_insn));
}
