/* SPDX-License-Identifier: MIT */
/*
 * CPUs, and the tasks that they run over a site, preempted anywhere on it and
 * resumed by any CPU.
 *
 * With LEAVES, the last CPU goes offline at any time, and comes back. Otherwise it is away at
 * first. With one of these it must fail then:
 *	LEAVE_ANYTIME	the CPU goes although it is counted on in a rendezvous
 *	NO_GONE		the next batch does not wait until the CPU has run its last site
 *
 * Given: RUNS of the site by each CPU, take_ipi(me), trap(), and the patching: by a process of its
 * own, or by CPU LEADER in lead().
 */
/* One value out of the set that CPU me may fetch. */
inline fetch(value, unit)
{
	if
	:: view(me, unit) & OFF -> value = OFF
	:: view(me, unit) & ON -> value = ON
	:: view(me, unit) & BREAK -> value = BREAK
	fi
}

inline execute_tail()
{
	atomic {
		fetch(tail, 1);
		assert(tail == did) /* whole */
	};
	tail = 0
}

inline finish()
{
	atomic {
		/* Once settled, each run acts as the new state says. */
		assert(!settled || did == want); /* new */
		did = 0;
		pc = BEHIND
	}
}

/*
 * The live instruction, unit by unit: others store in between. An interrupt
 * comes only at an instruction's end, so no sync() of this CPU can.
 */
inline execute()
{
	atomic { fetch(did, 0) };
	if
	:: did == BREAK ->
		trap();
#ifdef IN_PLACE
		pc = INSIDE
#else
		finish()
#endif
	:: else ->
#ifdef SEVERAL
		pc = INSIDE
#else
#if UNITS > 1
		execute_tail();
#endif
		finish()
#endif
	fi
}

/*
 * kernel/cpu/hotplug.c: a CPU that comes enters the set while no rendezvous and no
 * call is under way, and synchronises before it may run a site (H19).
 */
inline join(me)
{
#ifdef SYNC_THEN_JOIN
	sync(me);
#endif
	atomic {
#ifndef JOIN_ANYTIME
		!turn ->
		turn = true;
#endif
		online = online | (1 << me)
	};
	atomic {
#ifndef SYNC_THEN_JOIN
		sync(me);
#endif
		turn = false;
		ready = online
	}
}

#ifdef LEAVES
/* States of CPU LATE, as in kernel/cpu/hotplug.c. */
#define STAYS 0
#define LEAVE 1 /* it is out of the set, but may still run sites */
#define GONE 2	/* it has run its last one */
#define BACK 3
byte late = STAYS;

/* On another CPU: cpu_down(), when the tasks have moved away. */
proctype let_out()
{
	atomic {
#ifndef LEAVE_ANYTIME
		!turn ->
		turn = true;
#endif
		online = online & ~(1 << LATE);
		late = LEAVE
	};
#ifndef NO_GONE
	late >= GONE;
#endif
#ifndef LEAVE_ANYTIME
	turn = false
#endif
}
#endif

/*
 * Runs of the site are bounded, so that a CPU ends up waiting for interrupts,
 * and a process that waits for it in vain is seen as an invalid end state. A
 * task that has its interrupts off has them off from the site's fixed part to
 * its end.
 */
proctype cpu(byte me)
{
	byte pc, did, tail, runs = RUNS;
	bool irqs_off;

#ifndef LEAVES
	if
	:: me == LATE -> join(me)
	:: else
	fi;
#endif
	do
	:: atomic { ipi[me] && !irqs_off -> ipi[me] = false }; take_ipi(me)
#ifdef LEADER
	:: me == LEADER && !irqs_off && batches < BATCHES -> lead()
#endif
	:: atomic { pc == IDLE && runs > 0 -> runs--; pc = FIXED }
	:: atomic { pc == FIXED -> pc = LIVE; irqs_off = true }
	:: atomic { pc == FIXED -> pc = LIVE }
	:: pc == LIVE -> execute()
#ifdef SEVERAL
	:: pc == INSIDE ->
		execute_tail();
		finish()
#endif
	:: atomic { pc == BEHIND -> pc = IDLE; irqs_off = false }
	:: atomic { pc != IDLE && !irqs_off && held == IDLE ->
		held = pc; pc = IDLE; keep(me) }
	:: atomic { pc == IDLE && held != IDLE ->
		pc = held; held = IDLE; take_over(me) }
#ifdef LEAVES
	:: atomic { me == LATE && late == LEAVE && pc == IDLE ->
		ready = ready & ~(1 << me); late = GONE };
		join(me);
		late = BACK
#endif
	:: batches == BATCHES && !ipi[me] && pc == IDLE && runs == 0 &&
#ifdef LEAVES
		(me != LATE || late == BACK) &&
#endif
		held == IDLE -> break
	od
}

init {
	machine_init();
	atomic {
		run cpu(0);
		run cpu(1)
#if CPUS > 2
		;
		run cpu(2)
#endif
#ifdef LEAVES
		;
		run let_out()
#endif
#ifndef LEADER
		;
		run patcher()
#endif
	}
}
