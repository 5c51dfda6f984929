/* SPDX-License-Identifier: MIT */
/* Time: nanoseconds since boot, timers, the tick. */
#ifndef KERNEL_TIME_H
#define KERNEL_TIME_H

#include <kernel/lib/list.h>
#include <kernel/test/fault.h>

#define NSEC_PER_SEC 1000000000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_USEC 1000ull
#define TICK_NS (4 * NSEC_PER_MSEC) /* the time slice, idle CPUs have no tick */

/* Nanoseconds since time_init(), the same on every CPU, never backwards. Any
 * context, notrace. */
u64 time_ns(void);
/* Convert ticks of arch_clock(): absolute, and a difference, and back. */
u64 clock_to_ns(u64 clock);
u64 clock_delta_to_ns(u64 ticks);
u64 ns_to_clock_delta(u64 ns);

/*
 * How long a CPU spins for another one. Of the time between two looks SPIN_LOOK_NS count at most,
 * because the host may stop the machine in between. Any context.
 */
#define SPIN_LOOK_NS NSEC_PER_MSEC
struct spin_limit {
	u64 seen, left; /* arch_clock() at the last look, ticks of it */
};
struct spin_limit spin_limit_begin(u64 ns);
bool spin_limit_over(struct spin_limit *l);

struct timer {
	struct list link;
	u64 deadline;		     /* arch_clock() */
	void (*fn)(struct timer *t); /* interrupts off, in interrupt context */
	unsigned int cpu;	     /* where it is queued, or was last */
	bool armed;		     /* under that CPU's timer lock */
};

void timer_setup(struct timer *t, void (*fn)(struct timer *t));
/* Call t's function on this CPU, ns nanoseconds from now. Replaces an earlier request. */
void timer_start(struct timer *t, u64 ns);
/* Undo that. When it returns, the function does not run and will not. The function
 * itself must not call this. */
void timer_cancel(struct timer *t);

void time_init(void);	    /* boot CPU */
void time_init_cpu(void);   /* every CPU, interrupts off */
void timer_interrupt(void); /* from irq_event(IRQ_TIMER), interrupts off */
/* Set this CPU's one-shot timer to the earliest deadline. Interrupts off. */
void time_program(void);

/* Take over the timers of CPU c, which is gone for good. Preemption off. */
void time_take_over(unsigned int c);

FAULT_DECLARE(timer_early);

#endif
