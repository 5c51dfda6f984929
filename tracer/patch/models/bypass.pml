/* SPDX-License-Identifier: MIT */
/*
 * Strategy `bypass`, tracer/patch/patch_bypass.c, for a site of two instructions, between which a
 * task may be preempted: a breakpoint on the first, a wait until every task has been seen outside,
 * the second, the first, every CPU synchronised after each store. A CPU that meets the breakpoint
 * does as the old site would, the whole of it. The batch may be taken back instead of waiting on.
 *
 * With one of these it must fail:
 *	NO_WAIT		the wait is left out
 *	ONE_LOOK	tasks that were inside are not looked at again
 *	RUNNING_ONLY	tasks that do not run are taken for outside
 *	RESTING_ONLY	tasks that run are taken for outside
 *	EARLY_LOOK	tasks are looked at before the breakpoint is synchronised
 *	IN_PLACE	the trap goes on at the second instruction
 *	NO_SYNC_BREAK, NO_SYNC_TAIL, NO_SYNC_FIRST	one step is not synchronised
 *	NO_FENCE	the interrupts may overtake the stores (H9)
 *	VECTOR_LATE	the batch is published behind the breakpoint
 */
#define SEVERAL
#define UNITS 2
/* Two, that stay: breakpoint.pml has one that comes, and four tasks take an hour. */
#define CPUS 2
#define LATE CPUS
#define AT_FIRST 3
#include "text.pml"

byte now = OFF; /* the site's state, which the trap acts as */
bool looking;	/* the interrupt is to look at tasks */

#define outside(place) (place != INSIDE)

/* look_here(), or a sync. */
inline take_ipi(me)
{
	atomic {
		if
		:: looking && outside(pc) -> seen[me] = true
		:: looking && !outside(pc)
		:: !looking -> sync(me)
		fi;
		pending--
	}
}

inline wait_begin()
{
	d_step {
		seen[0] = false;
		seen[1] = false;
		held_seen = (held == IDLE)
	}
}

/* look_round(): those that run by an interrupt, one at rest with its run queue locked. */
inline look_round()
{
#ifndef RESTING_ONLY
	atomic { !turn -> turn = true };
	atomic { looking = true; interrupt(0); pending = others };
	pending == 0;
	looking = false;
	turn = false;
#endif
	atomic {
#ifdef RUNNING_ONLY
		held_seen = true;
#else
		held_seen = held_seen || outside(held);
#endif
#ifdef RESTING_ONLY
		seen[0] = true;
		seen[1] = true;
#endif
		left = !(seen[0] && seen[1] && held_seen)
	}
}

inline wait_outside()
{
	left = true;
	wait_begin();
	do
	:: left ->
		look_round();
#ifdef ONE_LOOK
		break
#endif
	:: left && batches == 0 -> break /* time is up */
	:: !left -> break
	od
#ifdef ONE_LOOK
	;
	left = false
#endif
}

inline take_back()
{
	want = now;
	write_first()
}

inline lead_around()
{
	want = (now == OFF -> ON : OFF);
#ifdef EARLY_LOOK
	wait_outside();
	write_break();
#else
	write_break();
#ifndef NO_WAIT
	wait_outside();
#endif
#endif
	if
	:: left -> take_back()
	:: else ->
		write_tail();
		write_first()
	fi;
	now = want;
	vector = false
}

#define carry_out() lead_around()
bool left;

#include "breakpoint.pml"
