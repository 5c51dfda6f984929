/* SPDX-License-Identifier: MIT */
/*
 * The scheduler's core. Each CPU has a run queue under one lock. A ready task is in
 * exactly one of these states, all decided under its queue's lock:
 *
 *   running   on_cpu, on no list: schedule() takes the next task off its list
 *   queued    on a list of cpus[t->cpu].rq
 *   placed    neither: the CPU that took it off a list is about to call
 *             sched_place()
 *
 * The lock is held across arch_switch(): the next task releases it in
 * sched_finish_switch(), after clearing on_cpu. So a CPU that holds the lock and sees
 * on_cpu false knows that the task's stack and context are at rest, and may move the
 * task to another CPU. kernel/sched/balance.c does that.
 */
#include <kernel/event/event.h>
#include <kernel/event/latency.h>
#include <kernel/assert.h>
#include <kernel/lib/bits.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/printk.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/sched/sched.h>

void (*sched_switch_hook)(struct task *prev, struct task *next);

void sched_init(void)
{
	for (unsigned int c = 0; c < MAX_CPUS; c++) {
		struct run_queue *rq = &cpus[c].rq;

		spin_init(&rq->lock, "run_queue");
		for (unsigned int p = 0; p < NR_PRIORITIES; p++)
			list_init(&rq->queue[p]);
	}
}

/* ---- preemption ---- */

/*
 * The count is the CPU's, not the task's: between finding the CPU and changing
 * its count the task may not move, hence interrupts off.
 */
notrace void preempt_disable(void)
{
	irq_state_t state = arch_irq_save();

	preempt_count_up(&arch_this_cpu()->head);
	arch_irq_restore(state);
}

notrace void preempt_enable(void)
{
	irq_state_t state = arch_irq_save();
	bool was_off = arch_irq_was_off(state);

	preempt_count_down(&arch_this_cpu()->head, was_off);
	if (arch_this_cpu()->head.preempt_count == PREEMPT_RESCHED &&
	    !was_off) {
		/* They are off. But another task turns them off as well, and this one goes on:
		 * the tracer irqsoff must see both. */
		irq_disable();
		sched_preempt();
		irq_enable();
	}
	arch_irq_restore(state);
}

/* Interrupts off, because a task that was moved after it had found its CPU would read another
 * CPU's count. */
notrace u32 preempt_count(void)
{
	irq_state_t state = arch_irq_save();
	u32 count = arch_this_cpu()->head.preempt_count;

	arch_irq_restore(state);
	return count;
}

notrace unsigned int preempt_depth(void)
{
	return preempt_count() & PREEMPT_DEPTH_MASK;
}

bool may_sleep(void)
{
	return !arch_irqs_off() && !(preempt_count() & ~PREEMPT_RESCHED);
}

void sched_need_resched(void)
{
	assert_irqs_off();
	arch_this_cpu()->head.preempt_count |= PREEMPT_RESCHED;
}

/*
 * A task that is preempted between wait_prepare() and task_block() must run
 * again, or a condition that came true before would never be looked at: it
 * becomes ready, and its task_block() a mere yield.
 */
void sched_preempt(void)
{
	struct cpu *cpu = arch_this_cpu();

	do {
		preempt_count_up(&cpu->head);
		if (READ_ONCE(cpu->head.current->state) == TASK_BLOCKED)
			sched_set_state(cpu->head.current, TASK_READY);
		schedule();
		cpu = arch_this_cpu(); /* maybe another one by now */
		preempt_count_down(&cpu->head, true);
	} while (cpu->head.preempt_count == PREEMPT_RESCHED);
}

/* ---- queues, all under rq->lock ---- */

void rq_add(struct run_queue *rq, struct task *t, bool first)
{
	struct list *q = &rq->queue[t->prio];

	spin_assert_held(&rq->lock);
	list_add_before(first ? q->next : q, &t->run_link);
	WRITE_ONCE(rq->ready, rq->ready | 1u << t->prio);
	WRITE_ONCE(rq->nr_ready, rq->nr_ready + 1);
}

void rq_del(struct run_queue *rq, struct task *t)
{
	spin_assert_held(&rq->lock);
	list_del(&t->run_link);
	if (list_empty(&rq->queue[t->prio]))
		WRITE_ONCE(rq->ready, rq->ready & ~(1u << t->prio));
	WRITE_ONCE(rq->nr_ready, rq->nr_ready - 1);
}

int rq_top_prio(const struct run_queue *rq)
{
	u32 ready = READ_ONCE(rq->ready);

	return ready ? (int)bit_highest(ready) : -1;
}

static struct task *pick_next_task(struct cpu *cpu)
{
	int p = rq_top_prio(&cpu->rq);
	struct task *t;

	if (p < 0)
		return cpu->idle;
	t = list_entry(cpu->rq.queue[p].next, struct task, run_link);
	rq_del(&cpu->rq, t);
	return t;
}

/*
 * Round robin: a task goes to the tail if its slice is used up. Otherwise it goes to the
 * place that it came from, with the rest of its slice. With a whole slice each time, a task
 * that is preempted more often than slices end would keep its equals from running.
 */
static void requeue_task(struct cpu *cpu, struct task *prev)
{
	u64 now = arch_clock();

	prev->slice_left = 0;
	if (prev == cpu->idle || prev->state != TASK_READY)
		return;
	if (now >= cpu->rq.slice_end)
		cpu->rq.expired = true;
	if (!cpu->rq.expired)
		prev->slice_left = cpu->rq.slice_end - now;
	if (!sched_may_run(prev, cpu->head.index))
		return; /* sched_finish_switch() places it elsewhere */
	rq_add(&cpu->rq, prev, !cpu->rq.expired);
}

static void begin_slice(struct run_queue *rq, const struct task *t)
{
	rq->slice_end =
		arch_clock() +
		(t->slice_left ? t->slice_left : ns_to_clock_delta(TICK_NS));
	rq->expired = false;
}

/* ---- the switch ---- */

static void account_switch(struct run_queue *rq, struct task *prev,
			   struct task *next, u64 now)
{
	prev->run_ticks += now - rq->switched_at;
	next->switches++;
	rq->switches++;
	rq->switched_at = now;
	WRITE_ONCE(rq->running_prio, next->prio);
}

void sched_finish_switch(struct task *prev)
{
	struct cpu *cpu = arch_this_cpu();
	bool ready = prev->state == TASK_READY && prev->prio != PRIO_IDLE;
	bool place = ready && list_empty(&prev->run_link) &&
		     prev != cpu->head.current;
	bool reap = prev->state == TASK_DEAD && prev->detached;

	/* Release: pairs with the acquire in task_join(). From here on the task that
	 * joins prev may free it, unless one of the two is true. */
	if (prev != cpu->head.current)
		__atomic_store_n(&prev->on_cpu, false, __ATOMIC_RELEASE);
	spin_release(&cpu->rq.lock);
	if (place)
		sched_place(prev);
	if (reap)
		task_reap(prev);
	time_program();
}

static void switch_to(struct cpu *cpu, struct task *prev, struct task *next)
{
	void (*hook)(struct task *, struct task *) =
		READ_ONCE(sched_switch_hook);

	account_switch(&cpu->rq, prev, next, arch_clock());
	trace_sched_switch(prev, next);
	if (hook)
		hook(prev, next);
	next->on_cpu = true;
	next->preempted = false;
	cpu->rq.prev = prev;
	prev = arch_switch(prev, next);
	/* Another time, perhaps another CPU: cpu and next are of no use now. */
	sched_finish_switch(prev);
}

noinline void schedule(void)
{
	struct cpu *cpu = arch_this_cpu();
	struct task *prev = cpu->head.current, *next;
	u32 context = cpu->head.preempt_count & ~PREEMPT_RESCHED;

	if (context != 1 || !arch_irqs_off())
		panic("schedule: preempt_count %x: called in an interrupt, or "
		      "with a lock held",
		      context);
	task_check_stack(prev);
	if (!cpu->rq.nr_ready &&
	    (prev == cpu->idle || prev->state != TASK_READY))
		balance_idle(cpu);
	spin_acquire(&cpu->rq.lock);
	cpu->head.preempt_count &= ~PREEMPT_RESCHED;
	requeue_task(cpu, prev);
	next = pick_next_task(cpu);
	if (next != prev || cpu->rq.expired)
		begin_slice(&cpu->rq, next);
	if (next != prev)
		switch_to(cpu, prev, next);
	else
		sched_finish_switch(prev);
}

/* ---- calls of tasks ---- */

/* Interrupts as they were before. The caller's task state says whether it sleeps. */
static void give_up_cpu(bool to_tail)
{
	irq_state_t state = irq_save();

	preempt_count_up(&arch_this_cpu()->head);
	if (to_tail)
		arch_this_cpu()->rq.expired = true;
	schedule();
	preempt_count_down(&arch_this_cpu()->head, true);
	if (arch_this_cpu()->head.preempt_count == PREEMPT_RESCHED)
		sched_preempt();
	irq_restore(state);
}

/* With no other task ready, a loop around this is a spin loop. */
void sched_yield(void)
{
	if (!READ_ONCE(arch_this_cpu()->rq.nr_ready))
		arch_cpu_relax();
	give_up_cpu(true);
}

void task_block(void)
{
	give_up_cpu(false);
}

/* ---- the tick ---- */

u64 sched_slice_end(void)
{
	struct cpu *cpu = arch_this_cpu();

	return cpu->head.current == cpu->idle ? ~0ull : cpu->rq.slice_end;
}

void scheduler_tick(u64 now)
{
	struct cpu *cpu = arch_this_cpu();
	struct task *t = cpu->head.current;

	if (t == cpu->idle || now < cpu->rq.slice_end)
		return;
	cpu->rq.slice_end = now + ns_to_clock_delta(TICK_NS);
	if (rq_top_prio(&cpu->rq) >= t->prio) {
		cpu->rq.expired = true;
		sched_need_resched();
	}
	balance_tick(cpu);
}

static void idle_wait(void)
{
	irq_off_idly();
	arch_cpu_idle();
}

static void idle_here(void)
{
	cpu_idle_check();
	if (!(arch_this_cpu()->head.preempt_count & PREEMPT_RESCHED))
		idle_wait();
}

void sched_idle(void)
{
	for (;;) {
		irq_disable();
		if (arch_this_cpu()->head.preempt_count & PREEMPT_RESCHED)
			sched_preempt();
		else
			idle_here();
		irq_enable();
	}
}
