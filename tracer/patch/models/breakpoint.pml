/* SPDX-License-Identifier: MIT */
/*
 * Strategy `breakpoint`, tracer/patch/patch_break.c: a breakpoint on the first unit, then the tail,
 * then the first unit, every CPU synchronised after each by an interrupt that it takes when it can.
 * A CPU that meets the breakpoint acts as the new state says, and finds out from the vector that it
 * is the tracer's.
 *
 * With one of these it must fail:
 *	NO_SYNC		no step is followed by a sync
 *	NO_SYNC_BREAK, NO_SYNC_TAIL, NO_SYNC_FIRST	one step is not
 *	TAIL_FIRST	the tail is written before the breakpoint
 *	FIRST_EARLY	the first unit before the tail
 *	NO_FENCE	the interrupts may overtake the stores (H9)
 *	SYNC_THEN_JOIN	a CPU that comes synchronises before it is online (H19)
 *	VECTOR_LATE	the vector is published behind the breakpoint
 *	VECTOR_SHORT	and withdrawn before the last sync
 *	TRAP_AS_OLD	the trap acts as the old state (H13)
 */
#ifndef UNITS
#define UNITS 2
#include "text.pml"
#endif
#ifndef RUNS
#define RUNS 1
#endif

#if defined(NO_SYNC)
#define SYNCED 0
#elif defined(NO_SYNC_BREAK)
#define SYNCED (TAIL_STEP | FIRST_STEP)
#elif defined(NO_SYNC_TAIL)
#define SYNCED (BREAK_STEP | FIRST_STEP)
#elif defined(NO_SYNC_FIRST)
#define SYNCED (BREAK_STEP | TAIL_STEP)
#else
#define SYNCED (BREAK_STEP | TAIL_STEP | FIRST_STEP | WORD_STEP)
#endif

bool vector;  /* says that the site's breakpoint is ours */
byte pending; /* CPUs that have yet to synchronise */

#ifndef SEVERAL
inline take_ipi(me)
{
	sync(me);
	pending--
}
#endif

inline sync_all(step)
{
	if
	:: SYNCED & step ->
#ifndef NO_FENCE
		fence();
#endif
		atomic { !turn -> turn = true };
		atomic { interrupt(0); pending = others };
		pending == 0;
		turn = false
	:: else
	fi
}

/* Interrupts are off from the exception to here: no sync comes between. */
inline trap()
{
	assert(vector); /* ours */
#if defined(SEVERAL)
	did = now
#elif defined(TRAP_AS_OLD)
	did = (want == ON -> OFF : ON)
#else
	did = want
#endif
}

inline write_break()
{
#ifndef VECTOR_LATE
	vector = true;
#endif
	store(0, BREAK);
#ifdef VECTOR_LATE
	vector = true;
#endif
	sync_all(BREAK_STEP)
}

inline write_tail()
{
#if UNITS > 1
	store(1, want);
#endif
	sync_all(TAIL_STEP)
}

inline write_first()
{
	store(0, want);
	sync_all(FIRST_STEP)
}

/* Once the first breakpoint is known, all CPUs act as the new state says. */
inline batch()
{
#if defined(TAIL_FIRST)
	write_tail();
	write_break();
	settled = true;
	write_first();
#elif defined(FIRST_EARLY)
	write_break();
	settled = true;
	write_first();
	write_tail();
#else
	write_break();
	settled = true;
	write_tail();
#ifdef VECTOR_SHORT
	vector = false;
#endif
	write_first();
#endif
	vector = false
}

#ifndef carry_out
#define carry_out() batch()
#endif

proctype patcher()
{
	do
	:: batches < BATCHES ->
		batch_begin();
		carry_out();
		batch_end()
	:: else -> break
	od
}

#include "cpu.pml"
