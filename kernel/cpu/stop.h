/*
 * The rendezvous: every CPU held with interrupts off, in the middle of whatever
 * it runs, while one changes what none may see half-changed.
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
 * Carry out w. 0; -EDEADLK with interrupts off or in interrupt context; -EBUSY
 * from within a stop. Others who stop at the same time wait for their turn.
 * Neither function may wait for another CPU, take a lock, or have a site.
 * Context: a task, preemptible or not.
 */
int stop_cpus(struct stop_work *w);

/*
 * What runs while CPUs are held: on each other CPU, from its IPI, and on the
 * caller, once `others` CPUs are held. For kernel/patch_path.h: whoever writes a
 * change() or sync() says PATCH_INDIRECT(stop_lead, change), (stop_lead, sync)
 * and (stop_hold, sync).
 */
void stop_hold(void);
void stop_lead(unsigned int others);

/* The turn of stop_cpus(): no rendezvous is under way, no CPU comes or goes. */
void stop_turn_take(void);
void stop_turn_give(void);

/* Is this CPU inside a rendezvous? For those who must refuse to wait. */
bool stop_active(void);

#endif
