/* SPDX-License-Identifier: MIT */
/*
 * Which CPU runs which task. A task that becomes ready goes to an idle CPU if its
 * affinity allows, else to a CPU that runs a less urgent task. An idle CPU pulls a task
 * that waits elsewhere. Every few ticks a busy CPU pulls one if another CPU has more
 * tasks waiting. Two run queues' locks are taken in the order of their CPUs.
 *
 * A CPU first reads other CPUs' queues without their locks, as a hint. It decides again
 * once it holds the locks.
 */
#include <kernel/event/event.h>
#include <kernel/sched/task_list.h>
#include <kernel/event/latency.h>
#include <kernel/printk.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/sched/balance.h>
#include <kernel/test/fault.h>

#define BALANCE_TICKS 4

struct run_queue *sched_lock_task(struct task *t, irq_state_t *state)
{
	for (;;) {
		unsigned int c = READ_ONCE(t->cpu);

		*state = spin_lock(&cpus[c].rq.lock);
		if (c == t->cpu)
			return &cpus[c].rq;
		spin_unlock(&cpus[c].rq.lock, *state);
	}
}

void sched_set_state(struct task *t, enum task_state s)
{
	irq_state_t state;
	struct run_queue *rq = sched_lock_task(t, &state);

	t->state = s;
	spin_unlock(&rq->lock, state);
}

static irq_state_t lock_two(unsigned int a, unsigned int b)
{
	irq_state_t state = spin_lock(&cpus[min(a, b)].rq.lock);

	if (a != b)
		spin_acquire(&cpus[max(a, b)].rq.lock);
	return state;
}

static void unlock_two(unsigned int a, unsigned int b, irq_state_t state)
{
	if (a != b)
		spin_release(&cpus[max(a, b)].rq.lock);
	spin_unlock(&cpus[min(a, b)].rq.lock, state);
}

/* Hint only: the lower, the sooner t will run there. */
static unsigned int cpu_crowding(const struct cpu *cpu, const struct task *t)
{
	int running = READ_ONCE(cpu->rq.running_prio);
	unsigned int ready = READ_ONCE(cpu->rq.nr_ready);

	return (running < t->prio ? running : NR_PRIORITIES) * 1024 + ready;
}

static cpumask_t allowed_cpus(const struct task *t)
{
	cpumask_t active = READ_ONCE(cpus_active);
	cpumask_t allowed = READ_ONCE(t->affinity) & active;

	return allowed ? allowed : active;
}

bool sched_may_run(const struct task *t, unsigned int c)
{
	return allowed_cpus(t) & (1u << c);
}

/* Behind the last CPU comes the first. */
static unsigned int cpu_behind(unsigned int c)
{
	return c + 1 < nr_cpus ? c + 1 : 0;
}

/* The CPU where t last ran wins a draw. */
static unsigned int select_cpu(const struct task *t)
{
	cpumask_t allowed = allowed_cpus(t);
	unsigned int best = MAX_CPUS, best_crowd = 0, c = t->cpu;

	for (unsigned int i = 0; i < nr_cpus; i++, c = cpu_behind(c)) {
		unsigned int crowd;

		if (!(allowed & (1u << c)))
			continue;
		crowd = cpu_crowding(&cpus[c], t);
		if (best == MAX_CPUS || crowd < best_crowd) {
			best = c;
			best_crowd = crowd;
		}
	}
	return best;
}

void cpu_kick(unsigned int cpu)
{
	irq_state_t state = irq_save();

	if (cpu == cpu_index())
		sched_need_resched();
	else
		ipi_send(cpu, IPI_RESCHED);
	irq_restore(state);
}

/* Under the lock of c's queue, and of t->cpu's. */
static void put_on(unsigned int c, struct task *t)
{
	if (t->cpu != c)
		trace_sched_migrate_task(t, t->cpu, c);
	if (t->waking) {
		trace_sched_wakeup(t, c);
		if (static_branch(&key_wakeup))
			latency_hooks->woken(t, c, LATENCY_PARENT);
	}
	t->waking = false;
	t->cpu = c;
	rq_add(&cpus[c].rq, t, false);
	if (t->prio > cpus[c].rq.running_prio)
		cpu_kick(c);
}

FAULT(place_late, "a task's CPU is chosen 1 ms before the task is put there");

/* Where it may run can change until both locks are held: then choose again. */
void sched_place(struct task *t)
{
	for (;;) {
		unsigned int from = t->cpu, to = select_cpu(t);
		irq_state_t state;
		bool fits;

		if (fault_happens(&fault_place_late))
			fault_dawdle();
		state = lock_two(from, to);
		fits = sched_may_run(t, to);
		if (fits)
			put_on(to, t);
		unlock_two(from, to, state);
		if (fits)
			return;
	}
}

static bool wake_from(struct task *t, enum task_state from)
{
	irq_state_t state;
	struct run_queue *rq = sched_lock_task(t, &state);
	bool woken = t->state == from, place = woken && !t->on_cpu;

	if (woken) {
		t->state = TASK_READY;
		t->waking = place;
	}
	if (woken && !place)
		trace_sched_wakeup(t, t->cpu);
	/* Preemption stays off until t is placed, because no other CPU would do it. */
	preempt_disable();
	spin_unlock(&rq->lock, state);
	if (place)
		sched_place(t);
	preempt_enable();
	return woken;
}

bool task_wake(struct task *t)
{
	return wake_from(t, TASK_BLOCKED);
}

void task_release(struct task *t)
{
	wake_from(t, TASK_HELD);
}

/* Under the lock of t's queue, which this gives back: off a CPU that t may not run
 * on. */
static void leave_wrong_cpu(struct run_queue *rq, struct task *t,
			    irq_state_t state)
{
	bool queued = !list_empty(&t->run_link);
	bool wrong;

	wrong = !sched_may_run(t, t->cpu);
	if (wrong && queued)
		rq_del(rq, t);
	else if (wrong && t->on_cpu)
		cpu_kick(t->cpu);
	preempt_disable();
	spin_unlock(&rq->lock, state);
	if (wrong && queued)
		sched_place(t);
	preempt_enable();
}

void sched_set_affinity(struct task *t, cpumask_t mask)
{
	irq_state_t state;
	struct run_queue *rq = sched_lock_task(t, &state);

	WRITE_ONCE(t->affinity, mask);
	leave_wrong_cpu(rq, t, state);
}

/* ---- CPUs that come and go ---- */

/*
 * A CPU puts a task on c's queue under the queue's lock, after a look at cpus_active. So
 * a task either came before the last pass here, which takes it along, or that CPU found c
 * gone.
 */
void sched_cpu_drain(unsigned int c)
{
	struct run_queue *rq = &cpus[c].rq;
	struct task *t;

	do {
		irq_state_t state = spin_lock(&rq->lock);
		int p = rq_top_prio(rq);

		t = p < 0 ? NULL :
			    list_entry(rq->queue[p].next, struct task,
				       run_link);
		if (t)
			rq_del(rq, t);
		preempt_disable();
		spin_unlock(&rq->lock, state);
		if (t)
			sched_place(t);
		preempt_enable();
	} while (t);
}

static bool check_place(struct task *t, void *arg)
{
	irq_state_t state;

	(void)arg;
	/* The affinity itself is the task's: it may change at this moment. */
	if (t->prio != PRIO_IDLE)
		leave_wrong_cpu(sched_lock_task(t, &state), t, state);
	return true;
}

void sched_cpu_back(unsigned int c)
{
	task_for_each(check_place, NULL);
	cpu_kick(c); /* it is idle: perhaps others have too much to do */
}

/* ---- pulling ---- */

/* Under both locks: the first task that may move, of priority `least` or more. */
static struct task *find_movable(struct run_queue *rq, unsigned int to,
				 int least)
{
	struct task *t;

	for (int p = rq_top_prio(rq); p >= least; p--)
		list_for_each (t, &rq->queue[p], run_link)
			if (sched_may_run(t, to))
				return t;
	return NULL;
}

static bool pull_task(unsigned int to, unsigned int from, int least)
{
	irq_state_t state = lock_two(to, from);
	struct task *t = find_movable(&cpus[from].rq, to, least);

	if (t) {
		rq_del(&cpus[from].rq, t);
		put_on(to, t);
	}
	unlock_two(to, from, state);
	return t;
}

/* From schedule(), before it takes its own queue's lock. */
void balance_idle(struct cpu *cpu)
{
	unsigned int me = cpu->head.index;

	for (unsigned int c = cpu_behind(me); c != me; c = cpu_behind(c))
		if (READ_ONCE(cpus[c].rq.ready) && pull_task(me, c, 1))
			return;
}

/* Pull a task that is more urgent than the running one. Or pull one from a CPU that has at least
 * two ready tasks more. */
static void balance_busy(struct cpu *cpu)
{
	unsigned int me = cpu->head.index, c;
	int running = cpu->rq.running_prio;

	for_each_online_cpu (c) {
		struct run_queue *rq = &cpus[c].rq;

		if (c == me)
			continue;
		if (rq_top_prio(rq) > running && pull_task(me, c, running + 1))
			return;
		if (READ_ONCE(rq->nr_ready) >= cpu->rq.nr_ready + 2 &&
		    pull_task(me, c, running))
			return;
	}
}

/* An idle CPU has no tick, so it does not look by itself for tasks that wait here. */
static void kick_idle_cpu(void)
{
	unsigned int c;

	for_each_online_cpu (c) {
		struct run_queue *rq = &cpus[c].rq;

		if (!READ_ONCE(rq->running_prio) && !READ_ONCE(rq->nr_ready)) {
			cpu_kick(c);
			return;
		}
	}
}

void balance_tick(struct cpu *cpu)
{
	if (cpu->rq.nr_ready)
		kick_idle_cpu();
	if (++cpu->rq.ticks % BALANCE_TICKS == 0)
		balance_busy(cpu);
}
