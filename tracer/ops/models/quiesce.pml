/* SPDX-License-Identifier: MIT */
/*
 * How a tracer's ops are retired, tracer/ops/ops.c: nothing leads to them any more, then every
 * task has been seen where it cannot have them, then they are freed. A task that uses
 * freed ops is the mistake that this is about (H16).
 *
 * A task calls traced functions. It loads trace_ops in the trampoline, may be preempted there for
 * any time, uses the ops that it has loaded, and may leave its return address with the ops until
 * the function returns. A CPU sees a store of another CPU late, but at the latest when it takes
 * that CPU's interrupt, or takes over a task from a CPU that had seen it (the run queue's lock).
 *
 * With one of these it must fail:
 *	NO_QUIESCE	the ops are freed at once
 *	ONE_LOOK	tasks that were inside are not looked at again
 *	RUNNING_ONLY	tasks that do not run are taken for outside
 *	RESTING_ONLY	tasks that run are taken for outside
 *	NO_RETURNS	taken returns are not looked at
 *	NO_LOCK	a task at rest is looked at without its run queue's lock, and first
 */
#define TASKS 2
#define CPUS 2
#define NOWHERE CPUS
#ifndef CALLS
#define CALLS 2 /* of each task */
#endif

#define OFF 0
#define OURS 1

byte trace_ops = OURS;
byte view[CPUS] = OURS;	 /* trace_ops, as a CPU would load it now */
byte on[TASKS] = NOWHERE; /* the CPU that runs the task */
bool inside[TASKS];	 /* its pc is in a trampoline */
bool taken[TASKS];	 /* a return of it is left with our ops */
bool knows[TASKS];	 /* the CPU that runs it next sees the store */
bool marked[TASKS];
bool freed;

/* Any task runs on any CPU for any time. */
active proctype scheduler()
{
	byte t, c;

end:	do
	:: atomic {
		select(t : 0 .. TASKS - 1);
		if
		:: on[t] != NOWHERE ->
			knows[t] = knows[t] || view[on[t]] == OFF;
			on[t] = NOWHERE
		:: on[t] == NOWHERE ->
			select(c : 0 .. CPUS - 1);
			if
			:: on[0] != c && on[1] != c ->
				on[t] = c;
				if
				:: knows[t] -> view[c] = OFF
				:: else
				fi
			:: else
			fi
		fi;
		t = 0;
		c = 0
	   }
	od
}

/* A store gets to another CPU some time. */
active proctype memory_system()
{
end:	do
	:: view[0] != trace_ops -> view[0] = trace_ops
	:: view[1] != trace_ops -> view[1] = trace_ops
	od
}

active [TASKS] proctype task()
{
	byte me = _pid - 2, calls, ops;

	do
	:: calls < CALLS ->
		atomic { on[me] != NOWHERE -> inside[me] = true };
		atomic { on[me] != NOWHERE -> ops = view[on[me]] };
		/* Any time may pass here. */
		atomic {
			on[me] != NOWHERE;
			assert(!(ops == OURS && freed)); /* used */
			if
			:: ops == OURS -> taken[me] = true
			:: true
			fi
		};
		atomic { on[me] != NOWHERE -> inside[me] = false };
		/* The function. */
		atomic {
			on[me] != NOWHERE;
			if
			:: taken[me] ->
				inside[me] = true;
				assert(!freed) /* used */
			:: else
			fi
		};
		atomic {
			on[me] != NOWHERE;
			taken[me] = false;
			inside[me] = false;
			ops = OFF;
			calls++
		}
	:: else -> break
	od
}

#ifdef NO_RETURNS
#define outside(t) (!inside[t])
#else
#define outside(t) (!inside[t] && !taken[t])
#endif

/* look_here(), on CPU c: the task that the interrupt has interrupted. */
inline look_here(c)
{
	atomic {
		view[c] = trace_ops;
		t = 0;
		do
		:: t < TASKS ->
			if
#ifdef RESTING_ONLY
			:: on[t] == c -> marked[t] = true
#else
			:: on[t] == c && outside(t) -> marked[t] = true
#endif
			:: else
			fi;
			t++
		:: else -> break
		od
	}
}

/* look_at_rest(): a task that cannot begin to run meanwhile. */
inline look_at_rest(r)
{
	atomic {
		if
#ifdef RUNNING_ONLY
		:: on[r] == NOWHERE -> marked[r] = true
#else
		:: on[r] == NOWHERE && outside(r) ->
			marked[r] = true;
#ifndef NO_LOCK
			knows[r] = true
#endif
#endif
		:: else
		fi
	}
}

active proctype retire()
{
	byte t;

	trace_ops = OFF;
#ifndef NO_QUIESCE
	do
	:: true ->
#ifdef NO_LOCK
		look_at_rest(0);
		look_at_rest(1);
		look_here(0);
		look_here(1);
#else
		look_here(0);
		look_here(1);
		look_at_rest(0);
		look_at_rest(1);
#endif
#ifdef ONE_LOOK
		break
#else
		if
		:: marked[0] && marked[1] -> break
		:: else
		fi
#endif
	od;
#endif
	freed = true
}
