/* SPDX-License-Identifier: MIT */
/*
 * The rendezvous: every other CPU is held with interrupts off, at any point of its
 * code, while one CPU makes a change that no CPU may see half done.
 */
#ifndef KERNEL_STOP_H
#define KERNEL_STOP_H

#include <kernel/types.h>

struct stop_work {
	/* Runs on the calling CPU alone, all others held. */
	void (*change)(void *arg);
	/* Runs on every CPU, the caller's too, after change and before it leaves. */
	void (*sync)(void *arg);
	void *arg;
	u64 held_ns; /* result: longest time that a CPU was held */
};

/*
 * Carry out w. 0. -EDEADLK: interrupts are off, or this is an interrupt. -EBUSY: the
 * caller is inside a rendezvous. Other callers wait for their turn meanwhile. Neither
 * function of w may wait for another CPU, take a lock, or have a site. Context: a task,
 * preemptible or not.
 */
int stop_cpus(struct stop_work *w);

/*
 * While CPUs are held, each of them runs stop_hold(), from its IPI. The caller runs
 * stop_lead() once `others` CPUs are held. A change() or sync() needs
 * PATCH_INDIRECT(stop_lead, change), PATCH_INDIRECT(stop_lead, sync) and
 * PATCH_INDIRECT(stop_hold, sync) (kernel/patch_path.h). stop_cpus() refuses others.
 */
void stop_hold(void);
void stop_lead(unsigned int others);

/* The turn of stop_cpus(): no rendezvous is under way, no CPU comes or goes. */
void stop_turn_take(void);
void stop_turn_give(void);

/* Is this CPU inside a rendezvous? Then it must refuse to wait for another. */
bool stop_active(void);

#endif
