/* SPDX-License-Identifier: MIT */
/*
 * Strategy `word`, tracer/patch/patch_word.c: one store that all fetches see whole or
 * not at all, then every CPU synchronises. A site that is not aligned takes two
 * stores, so breakpoint switches it (MISALIGNED).
 *
 * With one of these it must fail:
 *	NO_SYNC		the store is not followed by a sync
 *	NO_FENCE	the interrupts may overtake it
 *	SYNC_THEN_JOIN	a CPU that comes synchronises before it is online (H19)
 *	MISALIGNED with NO_FALLBACK	two stores as if they were one (H10)
 */
#ifdef MISALIGNED
#define UNITS 2
#else
#define UNITS 1
#endif

#include "text.pml"

inline write_word()
{
	store(0, want);
#if UNITS > 1
	store(1, want);
#endif
	sync_all(WORD_STEP)
}

#if UNITS > 1 && !defined(NO_FALLBACK)
#define carry_out() batch()
#else
#define carry_out() write_word()
#endif

#include "breakpoint.pml"
