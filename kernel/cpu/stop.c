/* SPDX-License-Identifier: MIT */
/*
 * The rendezvous. One CPU leads. The others are held in their IPI handler.
 *
 *	leader			every other CPU
 *	stop_cpus: GATHER	takes the IPI, enters stop_hold(), arrives
 *	all have arrived
 *	stop_lead: CHANGE	waits
 *	  change()
 *	  SYNC			sees SYNC
 *	  sync()		sync(), leaves
 *	all have left
 *	  IDLE
 *
 * The leader and every held CPU have interrupts off from the moment that they arrive
 * until their own sync() is over. In between they run nothing but this file, change()
 * and sync(). No function there may have a site, so no CPU fetches a site while it
 * changes. The interrupted tasks may stand anywhere, on a site too.
 *
 * The leader never waits for a CPU that waits for another one. A CPU that waits for
 * an answer to an IPI (cpu_call(), TLB flushes) does so with interrupts on, so it
 * arrives. A CPU that holds a spinlock has interrupts off, but only for a time that
 * ends by itself. From GATHER on, no CPU sends an interrupt.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/event/latency.h>
#include <kernel/cpu/order.h>
#include <kernel/patch_path.h>
#include <kernel/cpu/stop.h>
#include <kernel/time.h>

enum stop_state {
	STOP_IDLE,   /* no rendezvous, the leader alone leaves this state */
	STOP_GATHER, /* IPIs are out. CPUs arrive, interrupts off from there */
	STOP_CHANGE, /* all are in, and the leader's change() runs */
	STOP_SYNC, /* changed, and every CPU runs sync() by itself and leaves */
};

static struct {
	u32 turn;		/* one rendezvous at a time */
	u32 state;		/* enum stop_state, the leader writes */
	u32 arrived, left;	/* others, counted by themselves */
	struct stop_work *work; /* from GATHER to IDLE */
	u64 held[MAX_CPUS];	/* arch_clock() ticks, each CPU its own */
} stop;

notrace bool stop_active(void)
{
	/* A task that may be moved is in none, and could read another CPU's answer. */
	return arch_irqs_off() && arch_this_cpu()->in_stop;
}

/* Release: a CPU that acts on the new state sees all stores before it. Pairs
 * with the acquire in wait_for_word(). */
static notrace void stop_set_state(enum stop_state s)
{
	__atomic_store_n(&stop.state, s, __ATOMIC_RELEASE);
}

static notrace void wait_for_word(const u32 *word, u32 value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		arch_cpu_relax();
}

/* From the IPI handler. The counts' releases pair with wait_for_word()'s acquire. */
notrace void stop_hold(void)
{
	struct cpu *cpu = arch_this_cpu();
	u64 start = arch_clock();

	cpu->in_stop = true;
	order_tell(ORDER_HELD, false);
	__atomic_fetch_add(&stop.arrived, 1, __ATOMIC_RELEASE);
	wait_for_word(&stop.state, STOP_SYNC);
	stop.work->sync(stop.work->arg);
	order_tell(ORDER_FREE, false);
	cpu->in_stop = false;
	stop.held[cpu->head.index] = arch_clock() - start;
	__atomic_fetch_add(&stop.left, 1, __ATOMIC_RELEASE);
}

notrace void stop_lead(unsigned int others)
{
	struct cpu *cpu = arch_this_cpu();
	struct stop_work *w = stop.work;

	order_tell(ORDER_HELD, true);
	stop_set_state(STOP_CHANGE);
	w->change(w->arg);
	stop_set_state(STOP_SYNC);
	w->sync(w->arg);
	order_tell(ORDER_FREE, true);
	cpu->in_stop = false;
	wait_for_word(&stop.left, others);
	stop_set_state(STOP_IDLE);
}

/* Interrupts off. Returns how many others there are, all of them held. */
static unsigned int gather_cpus(struct stop_work *w)
{
	unsigned int c, others = 0;

	stop.work = w;
	stop.arrived = stop.left = 0;
	stop_set_state(STOP_GATHER);
	for_each_online_cpu (c) {
		stop.held[c] = 0;
		if (c == cpu_index())
			continue;
		ipi_send(c, IPI_STOP);
		others++;
	}
	order_tell(ORDER_WAIT, cpus_online & ~(1u << cpu_index()));
	arch_this_cpu()->in_stop = true;
	wait_for_word(&stop.arrived, others);
	order_tell(ORDER_WAITED, 0);
	return others;
}

/* Context: the turn taken, so that no CPU comes or goes. One that went keeps an earlier time. */
static u64 longest_hold(void)
{
	u64 longest = 0;
	unsigned int c;

	for_each_online_cpu (c)
		longest = max(longest, stop.held[c]);
	return clock_delta_to_ns(longest);
}

void stop_turn_take(void)
{
	cpu_turn_take(&stop.turn);
}

void stop_turn_give(void)
{
	cpu_turn_give(&stop.turn);
}

/* A function with a site would run while that site changes. Most work is that of the last time. */
static void check_work(const struct stop_work *w)
{
	static const void *change, *sync;

	if (w->change != READ_ONCE(change)) {
		patch_path_check(stop_lead, w->change);
		WRITE_ONCE(change, w->change);
	}
	if (w->sync != READ_ONCE(sync)) {
		patch_path_check(stop_lead, w->sync);
		patch_path_check(stop_hold, w->sync);
		WRITE_ONCE(sync, w->sync);
	}
}

int stop_cpus(struct stop_work *w)
{
	u64 start;

	if (stop_active())
		return -EBUSY;
	if (arch_irqs_off() || in_interrupt())
		return -EDEADLK;
	check_work(w);
	stop_turn_take();
	irq_disable();
	start = arch_clock();
	stop_lead(gather_cpus(w));
	stop.held[cpu_index()] = arch_clock() - start;
	irq_enable();
	w->held_ns = longest_hold();
	stop_turn_give();
	return 0;
}

PATCH_ROOT(stop_hold);
PATCH_ROOT(stop_lead);
