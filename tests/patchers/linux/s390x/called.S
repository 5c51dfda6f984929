/* SPDX-License-Identifier: MIT */
/* Where Linux's sites lead: the trampolines that ftrace.c fills, and the targets that count. */
#include <arch/asm.h>

#define TRAMPOLINES 32 /* one for each time that the lab begins with a site */
#define VICTIM_B2 32 /* of struct lab_victim: the address behind the site */

	.text
	.balign	8
FUNCTION(__ftrace_hotpatch_trampolines_start)
	.rept	6 * TRAMPOLINES
	lgr	%r0, %r0	/* 24 bytes each, which ftrace.c writes */
	.endr
	.globl	__ftrace_hotpatch_trampolines_end
__ftrace_hotpatch_trampolines_end:
END(__ftrace_hotpatch_trampolines_start)

/* Where 6.12's trampolines lead, with r1 behind their call: r0 and r1 are loaded from the two words
 * there, the way back and the target. 6.1 has its own. */
	.globl	ftrace_shared_hotpatch_trampoline_br_end
FUNCTION(ftrace_shared_hotpatch_trampoline_br)
	lmg	%r0, %r1, 2(%r1)
	br	%r1
ftrace_shared_hotpatch_trampoline_br_end:
END(ftrace_shared_hotpatch_trampoline_br)

/*
 * A trampoline has the way back in r0. Linux's call may change r0 and r1 at a function's entry. The
 * victim compares r0, so it gets its canary back.
 */
FUNCTION(ftrace_caller)
	lgr	%r1, %r0
	lgrl	%r0, lab_canary
	jg	lab_count_entry
END(ftrace_caller)

/* Where the jump label leads: it counts, and goes on behind the site. */
FUNCTION(label_yes)
	larl	%r1, lab_calls
	asi	0(%r1), 1
	larl	%r1, lab_six
	lg	%r1, VICTIM_B2(%r1)
	br	%r1
END(label_yes)
