/* SPDX-License-Identifier: MIT */
/* Spinlocks that know their holder. */
#ifndef KERNEL_LOCK_H
#define KERNEL_LOCK_H

#include <arch/cpu_head.h>
#include <kernel/lib/list.h>
#include <kernel/types.h>

/*
 * A ticket lock. A CPU takes it with interrupts off, so interrupt handlers may take
 * it too. A CPU that spins longer than spin_complain_ms prints once which CPU holds
 * the lock since which PC, and goes on waiting. A CPU that takes the lock twice
 * panics.
 */
struct spinlock {
	u32 next, owner; /* tickets, atomic */
	int holder;	 /* CPU index + 1, or 0 */
	u32 complaints;	 /* of CPUs that have spun for it too long */
	unsigned long holder_pc;
	const char *name;
};

#define SPINLOCK_INIT(n)                                                       \
	{                                                                      \
		.name = (n)                                                    \
	}

/* After how long a CPU complains. A test lowers it. */
extern u32 spin_complain_ms;

/* A flag that becomes 0 when a CPU complains. NULL: there is none. */
extern u32 *cleared_by_complaint;

void spin_init(struct spinlock *l, const char *name);
irq_state_t spin_lock(struct spinlock *l);
/* 0 and *state set, or -EBUSY at once. */
int spin_trylock(struct spinlock *l, irq_state_t *state);
void spin_unlock(struct spinlock *l, irq_state_t state);

/* This CPU holds l. For functions that need it held. See kernel/assert.h. */
void spin_assert_held(const struct spinlock *l);

/*
 * The bare lock, for the scheduler, which hands a held lock from one task to the
 * next: interrupts are off already, and preempt_count is left alone.
 */
void spin_acquire(struct spinlock *l);
void spin_release(struct spinlock *l);

#endif
