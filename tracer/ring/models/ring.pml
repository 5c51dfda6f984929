/* SPDX-License-Identifier: MIT */
/*
 * The trace buffer's protocol, tracer/ring/ring.h: a writer on its own CPU that fills pages, and
 * takes the oldest one back when there is no other. A reader on another CPU copies the slots that
 * are written. All slots that the reader keeps belong to the page that it asked for.
 *
 * Memory is weak: stores wait in a buffer, and get into memory in any order, but for those to one
 * address. A fence waits until all stores before it are in memory. A store with release gets there
 * after all stores before it. Later stores may overtake it.
 *
 * With one of these it must fail:
 *	NO_SLOT_FENCE	ring_cur may be seen before the slot (the trampoline's fence)
 *	NO_TAKE_FENCE	a new slot may be seen before the page has been taken back
 *	NO_RELEASE	a page's header, its state, ring_cur and head may be seen in any order
 *	NO_SECOND_LOOK	the reader trusts its copy without a look at the state behind it
 *	NO_ACQUIRE	the reader loads the slots before it loads ring_cur
 */
#ifndef TURNS
#define TURNS 4 /* pages that the writer fills */
#endif
#define PAGES 2
#define SLOTS 2
#define NOBODY 0 /* page.state of a page that is being taken back */

/* Addresses. */
#define SLOT(p, i) (SLOTS * (p) + (i))
#define STATE(p) (SLOTS * PAGES + (p))
#define USED(p) (SLOTS * PAGES + PAGES + (p))
#define CUR (SLOTS * PAGES + 2 * PAGES)
#define HEAD (CUR + 1)
#define ADDRESSES (HEAD + 1)

/* ring_cur: slot i of page p. */
#define CURSOR(p, i) (8 * (p) + (i))

byte memory[ADDRESSES];

/* The writer's stores that memory has not got yet, in their order. */
#define BUFFER 6
byte to[BUFFER], what[BUFFER];
bool after_all[BUFFER]; /* with release */
byte buffered;

inline put(address, value, release)
{
	atomic {
		buffered < BUFFER;
		to[buffered] = address;
		what[buffered] = value;
		after_all[buffered] = release;
		buffered++
	}
}

#define store(address, value) put(address, value, false)
#define store_release(address, value) put(address, value, true)

inline fence()
{
	buffered == 0
}

/* May the k-th store get into memory now? Then it does, and the others move up. */
inline commit(k)
{
	d_step {
		ok = k < buffered && !(after_all[k] && k > 0);
		j = 0;
		do
		:: j < k ->
			ok = ok && to[j] != to[k];
			j++
		:: else -> break
		od;
		if
		:: ok ->
			memory[to[k]] = what[k];
			j = k;
			do
			:: j + 1 < buffered ->
				to[j] = to[j + 1];
				what[j] = what[j + 1];
				after_all[j] = after_all[j + 1];
				j++
			:: else -> break
			od;
			buffered--;
			to[buffered] = 0;
			what[buffered] = 0;
			after_all[buffered] = false
		:: else
		fi;
		j = 0;
		ok = false
	}
}

active proctype memory_system()
{
	byte j;
	bool ok;

end:	do
	:: buffered > 0 -> commit(0)
	:: buffered > 1 -> commit(1)
	:: buffered > 2 -> commit(2)
	:: buffered > 3 -> commit(3)
	:: buffered > 4 -> commit(4)
	:: buffered > 5 -> commit(5)
	od
}

active proctype writer()
{
	byte turn = 1, p, i;

	do
	:: turn <= TURNS ->
		p = turn % PAGES;
		/* take_back() */
		store_release(STATE(p), NOBODY);
#ifndef NO_TAKE_FENCE
		fence();
#endif
		/* begin_ring_page() */
		store(USED(p), 0);
#ifdef NO_RELEASE
		store(STATE(p), turn);
		store(CUR, CURSOR(p, 0));
		store(HEAD, turn);
#else
		store_release(STATE(p), turn);
		store_release(CUR, CURSOR(p, 0));
		store_release(HEAD, turn);
#endif
		/* The trampoline. */
		i = 0;
		do
		:: i < SLOTS ->
			store(SLOT(p, i), turn);
#ifndef NO_SLOT_FENCE
			fence();
#endif
			i++;
			store(CUR, CURSOR(p, i))
		:: else -> break
		od;
		/* close_page() */
		store(USED(p), SLOTS);
		turn++
	:: else -> break
	od
}

active proctype reader()
{
	byte seq, p, cur, slots, i;
	byte copy[SLOTS];
	bool gone;

	memory[HEAD] > 0;
	do
	:: d_step {
		gone = false;
		slots = 0;
		i = 0
	   };
	   seq = memory[HEAD];
	   if
	   :: true
	   :: seq > 1 -> seq-- /* or the page before that */
	   fi;
	   p = seq % PAGES;
#ifdef NO_ACQUIRE
	   copy[0] = memory[SLOT(p, 0)];
	   copy[1] = memory[SLOT(p, 1)];
#endif
	   /* written_slots() */
	   if
	   :: memory[STATE(p)] != seq -> gone = true
	   :: else
	   fi;
	   if
	   :: !gone ->
		cur = memory[CUR];
		if
		:: cur / 8 == p -> slots = cur % 8
		:: else -> slots = memory[USED(p)]
		fi;
		/* copy_slots() */
		do
		:: i < slots ->
#ifndef NO_ACQUIRE
			copy[i] = memory[SLOT(p, i)];
#endif
			i++
		:: else -> break
		od;
#ifndef NO_SECOND_LOOK
		if
		:: memory[STATE(p)] != seq -> gone = true
		:: else
		fi;
#endif
		i = 0;
		do
		:: !gone && i < slots ->
			assert(copy[i] == seq); /* of another page */
			i++
		:: else -> break
		od
	   :: else
	   fi
	:: memory[HEAD] == TURNS && buffered == 0 -> break
	od
}
