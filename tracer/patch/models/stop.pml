/* SPDX-License-Identifier: MIT */
/*
 * Strategy `stop`: kernel/cpu/stop.c under tracer/patch/patch_stop.c, for an instruction that takes
 * two stores. Two batches, on and off again, so that the remains of one batch meet the next.
 *
 * With one of these it must fail:
 *	NO_SYNC		held CPUs leave without synchronising
 *	SYNC_FIRST	they synchronise on arrival, before the change
 *	NO_GATHER	the leader changes before all have arrived
 *	NO_LEAVE	it does not wait until all have left
 *	NO_FENCE	the step to SYNC is no release
 *	JOIN_ANYTIME	a CPU comes online during the rendezvous (H19)
 *	SYNC_THEN_JOIN	it synchronises before it can be held
 *	SYNC_BY_IPI	the leader has others synchronise by IPI (H7)
 */
#define UNITS 2
#ifndef RUNS
#define RUNS 2 /* one by each batch */
#endif

#include "text.pml"

mtype = { STOP_IDLE, STOP_GATHER, STOP_CHANGE, STOP_SYNC };
mtype state = STOP_IDLE;
byte arrived, gone;
bool leading; /* the leader has its CPU's interrupts off */

#define LEADER 0
#define take_ipi(me) stop_hold(me)
#define trap() assert(false)

inline stop_hold(me)
{
	atomic {
#ifdef SYNC_FIRST
		sync(me);
#endif
		arrived++
	};
	state == STOP_SYNC;
#if !defined(NO_SYNC) && !defined(SYNC_FIRST)
	sync(me);
#endif
	gone++
}

inline gather()
{
	atomic {
		arrived = 0;
		gone = 0;
		state = STOP_GATHER
	};
	interrupt(1);
#ifndef NO_GATHER
	arrived == others
#endif
}

inline change()
{
	store(0, want);
	store(1, want)
}

inline stop_lead()
{
	state = STOP_CHANGE;
	change();
#ifdef SYNC_BY_IPI
	ipi[1] = true;
	!ipi[1];
#endif
#ifndef NO_FENCE
	fence();
#endif
	state = STOP_SYNC;
	sync(LEADER);
#ifndef NO_LEAVE
	gone == others;
#endif
	state = STOP_IDLE
}

/* Between two instructions of CPU LEADER's own run, which stays as it is. */
inline lead()
{
	atomic { !turn -> turn = true };
	batch_begin();
	gather();
	stop_lead();
	batch_end();
	turn = false
}

#include "cpu.pml"
