/* SPDX-License-Identifier: MIT */
/* Where the jump label leads, which is the first of the victim's two words: it counts, and goes on
 * behind the second one. */
#include <arch/asm.h>

	.text
FUNCTION(label_yes)
	la	t0, lab_calls
	li	t1, 1
	amoadd.w zero, t1, (t0)
	la	t0, lab_pair_a + 0x208
	jr	t0
END(label_yes)
