/* SPDX-License-Identifier: MIT */
/* Where the jump label leads: it counts, and goes on behind the site. */
#include <arch/asm.h>

	.text
FUNCTION(label_yes)
	lock incl lab_calls(%rip)
	jmp lab_five_site + 5
END(label_yes)
