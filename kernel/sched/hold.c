/* SPDX-License-Identifier: MIT */
/* Tasks that are taken off their CPU at a chosen instruction: hold.h. */
#include <kernel/sched/balance.h>
#include <kernel/sched/hold.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/event/latency.h>
#include <kernel/test/fault.h>

/* Tasks wait here for another task to be held. */
static struct wait_queue hold_wait = WAIT_QUEUE_INIT(hold_wait);

void task_hold_look(void)
{
	wake_all(&hold_wait);
}

FAULT(hold_late, "the end of a range to be held in is set 1 ms late");

void task_hold(struct task *t, unsigned long lo, unsigned long hi)
{
	WRITE_ONCE(t->hold_hi, 0); /* never a range made of old and new */
	WRITE_ONCE(t->hold_lo, lo);
	if (fault_happens(&fault_hold_late))
		fault_dawdle();
	WRITE_ONCE(t->hold_hi, hi);
	/* Pairs with task_hold_here(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool task_hold_here(struct task *t, const struct trap_frame *f)
{
	unsigned long pc = arch_frame_boundary(f), hi = READ_ONCE(t->hold_hi);

	WRITE_ONCE(t->interrupted_pc, pc);
	if (!hi || pc < READ_ONCE(t->hold_lo) || pc >= hi)
		return false;
	sched_set_state(t, TASK_HELD);
	/* A task_stop() before this found nothing to release. Pairs with task_hold(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (READ_ONCE(t->hold_hi) != hi)
		task_release(t);
	task_hold_look();
	return true;
}

void task_hold_self(void)
{
	irq_state_t state = irq_save();

	sched_set_state(current_task(), TASK_HELD);
	task_hold_look();
	task_block();
	irq_restore(state);
}

static bool held_or_dead(const struct task *t)
{
	enum task_state s = READ_ONCE(t->state);

	return s == TASK_HELD || s == TASK_DEAD;
}

bool task_wait_held(struct task *t, u64 ns)
{
	struct task *me = current_task();

	/* In steps, of which each counts as long as it is at most: the host may stop the machine
	 * for a while. */
	for (;;) {
		u64 step = min(ns, TICK_NS + 0ull), begin = time_ns();

		wait_prepare(&hold_wait);
		if (held_or_dead(t) || !ns)
			break;
		timer_start(&me->timer, step);
		task_block();
		ns -= min(time_ns() - begin, step);
	}
	wait_finish(&hold_wait);
	timer_cancel(&me->timer);
	if (READ_ONCE(t->state) != TASK_HELD)
		return false;
	/* Acquire: pairs with the release in sched_finish_switch(): its frame
	 * and context are at rest. */
	while (__atomic_load_n(&t->on_cpu, __ATOMIC_ACQUIRE))
		arch_cpu_relax();
	return true;
}
