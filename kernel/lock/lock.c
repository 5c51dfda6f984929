/* SPDX-License-Identifier: MIT */
/*
 * Ticket spinlocks. A ticket is a place in the queue: CPUs get the lock in the order
 * in which they came, so none starves. A CPU that spins for too long prints once
 * which CPU holds the lock, or which one has its turn and does not go on.
 */
#include <kernel/assert.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/event/latency.h>
#include <kernel/panic.h>
#include <kernel/printk.h>
#include <kernel/time.h>
#include <kernel/image/unwind.h>

#define SPIN_PANIC_NS (100 * NSEC_PER_MSEC)
/* More than 64 rounds of spinning take on any machine that runs. */
#define SPIN_GAP_NS (2 * NSEC_PER_MSEC)

u32 spin_complain_ms = 1000;
u32 *cleared_by_complaint;

void spin_init(struct spinlock *l, const char *name)
{
	*l = (struct spinlock)SPINLOCK_INIT(name);
}

static void set_holder(struct spinlock *l, unsigned long pc)
{
	WRITE_ONCE(l->holder_pc, pc);
	WRITE_ONCE(l->holder, (int)cpu_index() + 1);
}

/*
 * The CPU whose ticket is next, or -1. Where the lock is free, that CPU is the one
 * that does not go on: it was not woken, or its host does not run it.
 */
static int next_cpu(const struct spinlock *l, u32 owner)
{
	for (unsigned int c = 0; c < nr_cpus; c++)
		if (READ_ONCE(cpus[c].spins_for) == l &&
		    READ_ONCE(cpus[c].spin_ticket) == owner)
			return c;
	return -1;
}

static noinline void spin_complain(struct spinlock *l, unsigned long pc)
{
	int holder = READ_ONCE(l->holder), next;
	u32 *clears = READ_ONCE(cleared_by_complaint);

	if (clears)
		WRITE_ONCE(*clears, 0);
	count_up(&l->complaints);
	if (holder) {
		printk_urgent("lock %s: CPU %u at %pS has spun for %u ms; held "
			      "by CPU %d since %pS\n",
			      l->name, cpu_index(), (void *)pc,
			      spin_complain_ms, holder - 1,
			      (void *)READ_ONCE(l->holder_pc));
		return;
	}
	next = next_cpu(l, READ_ONCE(l->owner));
	if (next < 0)
		return; /* taken or given back at this moment */
	printk_urgent("lock %s: CPU %u at %pS has spun for %u ms; the lock is "
		      "free, and it is the turn of CPU %d, which has looked "
		      "%u times at %pS and does not go on\n",
		      l->name, cpu_index(), (void *)pc, spin_complain_ms, next,
		      READ_ONCE(cpus[next].spin_rounds),
		      (void *)READ_ONCE(cpus[next].spin_pc));
}

/* A CPU's record of its wait, between two looks at the clock. */
struct spin_wait {
	u64 looked; /* arch_clock() */
	u64 spun;   /* ticks in which this CPU did spin */
	bool said;
};

/*
 * A CPU that spins asks this from time to time. True: stop waiting. In a panic the
 * holder may be a CPU that was stopped while it held the lock. The panic's report is
 * worth more than the data under the lock, so the panicking CPU takes the lock then.
 *
 * Only the time that this CPU has spun counts. Between two looks lie 64 rounds, which
 * never take SPIN_GAP_NS, unless the host ran something else meanwhile. A whole machine
 * that stands still is no deadlock.
 */
static bool spun_too_long(struct spinlock *l, struct spin_wait *w,
			  unsigned long pc)
{
	u64 now = arch_clock();

	w->spun += min(now - w->looked, ns_to_clock_delta(SPIN_GAP_NS));
	w->looked = now;
	if (panic_here() && clock_delta_to_ns(w->spun) > SPIN_PANIC_NS)
		return true;
	if (!w->said &&
	    clock_delta_to_ns(w->spun) > spin_complain_ms * NSEC_PER_MSEC) {
		w->said = true;
		spin_complain(l, pc);
	}
	return false;
}

static noinline void spin_slow(struct spinlock *l, u32 ticket, unsigned long pc)
{
	struct cpu *cpu = arch_this_cpu();
	struct spin_wait w = { .looked = arch_clock() };

	if (READ_ONCE(l->holder) == (int)cpu_index() + 1 && !panic_here())
		panic("lock %s: taken again at %pS; held by this CPU since %pS",
		      l->name, (void *)pc, (void *)l->holder_pc);
	cpu->spin_ticket = ticket;
	cpu->spin_pc = pc;
	WRITE_ONCE(cpu->spins_for, l);
	/* Acquire: pairs with the release in spin_release(). Only each 64th
	 * round reads the clock, because that may be slow. */
	for (u32 n = 1; __atomic_load_n(&l->owner, __ATOMIC_ACQUIRE) != ticket;
	     n++) {
		WRITE_ONCE(cpu->spin_rounds, n);
		if (n % 64 == 0 && spun_too_long(l, &w, pc)) {
			WRITE_ONCE(l->owner, ticket);
			break;
		}
		arch_cpu_relax();
	}
	WRITE_ONCE(cpu->spins_for, NULL);
}

static inline void acquire_at(struct spinlock *l, unsigned long pc)
{
	u32 ticket = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);

	/* Acquire: pairs with the release in spin_release(). */
	if (__atomic_load_n(&l->owner, __ATOMIC_ACQUIRE) != ticket)
		spin_slow(l, ticket, pc);
	set_holder(l, pc);
}

#define CALLER unwind_caller((unsigned long)__builtin_return_address(0))

notrace void spin_assert_held(const struct spinlock *l)
{
	if (READ_ONCE(l->holder) != (int)cpu_index() + 1)
		assert_failed("a spinlock is not held that must be");
}

void spin_acquire(struct spinlock *l)
{
	assert_irqs_off();
	acquire_at(l, CALLER);
}

void spin_release(struct spinlock *l)
{
	WRITE_ONCE(l->holder, 0);
	/* Release: pairs with the acquire of the next ticket's owner. */
	__atomic_store_n(&l->owner, l->owner + 1, __ATOMIC_RELEASE);
}

irq_state_t spin_lock(struct spinlock *l)
{
	irq_state_t state = irq_save();

	preempt_disable();
	acquire_at(l, CALLER);
	return state;
}

int spin_trylock(struct spinlock *l, irq_state_t *state)
{
	u32 owner;

	*state = irq_save();
	/* Acquire: pairs with the release in spin_release(), which stores the
	 * owner. The exchange below is of the other word, and orders nothing. */
	owner = __atomic_load_n(&l->owner, __ATOMIC_ACQUIRE);
	if (!__atomic_compare_exchange_n(&l->next, &owner, owner + 1, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		irq_restore(*state);
		return -EBUSY;
	}
	preempt_disable();
	set_holder(l, CALLER);
	return 0;
}

/* Interrupts come back before preemption does: a switch that was wanted in
 * between happens in preempt_enable(), and only if they were on before. */
void spin_unlock(struct spinlock *l, irq_state_t state)
{
	spin_release(l);
	irq_restore(state);
	preempt_enable();
}
