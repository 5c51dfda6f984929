/* SPDX-License-Identifier: MIT */
/*
 * Text as the CPUs of the models may fetch it: weaker than any real machine's.
 * Until a CPU synchronises, each of its fetches may return any value that the
 * unit has had since, in any order, and a store that no fence has followed may
 * be missed by a CPU that synchronises.
 *
 * UNITS is given: how many stores it takes to write the live instruction.
 */
#ifndef CPUS
#define CPUS 3
#define LATE 2 /* the CPU that comes online at any time. With LEAVES it goes before */
#ifdef LEAVES
#define AT_FIRST 7
#else
#define AT_FIRST 3
#endif
#endif

/* Values of a unit of the live instruction, as members of a set. */
#define OFF 1
#define ON 2
#define BREAK 4

/* Steps of a strategy that stops no CPU, enum patch_step. */
#define BREAK_STEP 1
#define TAIL_STEP 2
#define FIRST_STEP 4
#define WORD_STEP 8

byte latest[UNITS];	/* value stored last */
byte text[UNITS];	/* value that a CPU may get if it synchronises now */
byte may[CPUS * UNITS]; /* values that a fetch may return, for each CPU */
byte want = OFF;	/* the batch's new state */
bool settled;		/* all CPUs know that nothing older than want is left */

#define view(c, u) may[(c) * UNITS + (u)]

bool ipi[CPUS];
byte online = AT_FIRST; /* set of CPUs that answer interrupts */
byte ready = AT_FIRST;	/* of those that may run sites */
bool turn;		/* that of stop_cpus() or cpu_call(), online stands */
byte batches;		/* done: on, and off again, so that the second */
#define BATCHES 2	/* meets the remains of the first */

byte others;		/* CPUs that were interrupted */
byte u_, c_; /* loop counters, used inside d_step alone */

/*
 * Where a task stands. With SEVERAL each unit of the site is an instruction, and a task may be
 * preempted between the two.
 */
#define IDLE 0	 /* no task */
#define FIXED 1	 /* before the site's fixed part */
#define LIVE 2	 /* before its live instruction */
#define BEHIND 3 /* after both */
#define INSIDE 4 /* before the second of several */

byte held; /* where the preempted task stands, or IDLE */

#ifdef SEVERAL
byte held_did;		/* which form it has begun */
bool held_seen = true;	/* outside, or there is none */
bool seen[CPUS] = true; /* the task that the CPU runs, likewise */

#define keep(me)                                                               \
	held_did = did;                                                        \
	did = 0;                                                               \
	held_seen = seen[me];                                                  \
	seen[me] = true
#define take_over(me)                                                          \
	did = held_did;                                                        \
	held_did = 0;                                                          \
	seen[me] = held_seen;                                                  \
	held_seen = true
#else
#define keep(me) skip
#define take_over(me) skip
#endif

inline store(unit, value)
{
	d_step {
		latest[unit] = value;
		text[unit] = text[unit] | value;
		for (c_ : 0 .. CPUS - 1) {
			view(c_, unit) = view(c_, unit) | value
		}
		c_ = 0
	}
}

/* A CPU that synchronises after it sees the stores before it. */
inline fence()
{
	d_step {
		for (u_ : 0 .. UNITS - 1) {
			text[u_] = latest[u_]
		}
		u_ = 0
	}
}

/* arch_text_sync() on CPU c. */
inline sync(c)
{
	d_step {
		for (u_ : 0 .. UNITS - 1) {
			view(c, u_) = text[u_]
		}
		u_ = 0
	}
}

/* Interrupt all CPUs but the first `from`. Their number is in others. */
inline interrupt(from)
{
	d_step {
		others = 0;
		for (c_ : from .. CPUS - 1) {
			if
			:: online & (1 << c_) ->
				ipi[c_] = true;
				others++
			:: else
			fi
		}
		c_ = 0
	}
}

inline batch_begin()
{
	atomic {
		want = (batches % 2 -> OFF : ON);
		settled = false
	}
}

/* The batch is declared done: no CPU can fetch anything but its new text. */
inline batch_end()
{
	d_step {
		for (u_ : 0 .. UNITS - 1) {
			for (c_ : 0 .. CPUS - 1) {
				assert(view(c_, u_) == want ||
				       !(ready & (1 << c_))) /* synced */
			}
		}
		u_ = 0;
		c_ = 0;
		settled = true;
		batches++
	}
}

inline machine_init()
{
	d_step {
		for (u_ : 0 .. UNITS - 1) {
			latest[u_] = OFF;
			text[u_] = OFF;
			for (c_ : 0 .. CPUS - 1) {
				view(c_, u_) = OFF
			}
		}
		u_ = 0;
		c_ = 0
	}
}
