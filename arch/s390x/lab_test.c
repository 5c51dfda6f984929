/* SPDX-License-Identifier: MIT */
/* Proves facts that the lab cannot enumerate: of each site one halfword changes, and off is a
 * branch that is never taken, whatever stands behind that halfword. */
#include <kernel/test/ktest.h>
#include <tracer/sites/sites.h>

static bool differs_by_mask(struct live l)
{
	u64 off = arch_live_bytes(l, false), on = arch_live_bytes(l, true);
	u64 never = l.target ? INSN_BRC_NEVER : INSN_BRCL_NEVER;

	return off == never && on != off && !(on >> 16) && l.at % 2 == 0;
}

KTEST(lab_halfwords, "lab.one_halfword_changes")
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < site_count; i++)
		wrong += !differs_by_mask(live_of_site(site_address(i)));
	for (unsigned int i = 0; i < jump_count; i++)
		wrong += !differs_by_mask(jump_live(i));
	KEXPECT_EQ(t, wrong, 0);
}
