/* SPDX-License-Identifier: MIT */
/* Proves facts that the lab cannot enumerate: an instruction is fetched by halves. */
#include <kernel/test/ktest.h>
#include <tracer/sites/sites.h>

/*
 * A CPU that fetches an instruction by halves, while `word` stores it, must get a whole
 * instruction: off and on may differ in one half alone.
 */
KTEST(lab_halves, "lab.on_and_off_share_a_half")
{
	unsigned int wrong = 0;

	if (arch_live_insns > 1)
		KSKIP(t, "a site has two live instructions: `word` is refused");
	if (site_off(site_address(0)) == INSN_JUMP_8)
		KSKIP(t, "nop=jump: `word` is for -icount alone");
	for (unsigned int i = 0; i < site_count; i++) {
		struct live l = live_of_site(site_address(i));
		u64 differs =
			arch_live_bytes(l, true) ^ arch_live_bytes(l, false);

		wrong += differs >> 16 != 0;
	}
	KEXPECT_EQ(t, wrong, 0);
}
