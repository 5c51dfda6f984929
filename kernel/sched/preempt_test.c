/* SPDX-License-Identifier: MIT */
/*
 * Proves that a task which is moved to another CPU while it asks about its own preempt_count is
 * told its own, and not that of the CPU which it has left.
 */
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/string.h>
#include <kernel/sched/balance.h>
#include <kernel/sched/hold.h>
#include <kernel/sched/task.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

/* The test itself stays on this CPU, which the other task leaves. */
#define HERE 1u

#define ASKER_ROUNDS 200
#define ASKER_NS (20 * NSEC_PER_USEC)

static struct {
	struct timer timer;
	u32 asked, wrong;
} asker;

static void interrupt_again(struct timer *timer)
{
	timer_start(timer, ASKER_NS);
}

/* The loop's length changes, so that the timer finds the task at every instruction. */
static void ask_until_stopped(void *arg)
{
	(void)arg;
	for (u32 i = 0; !task_should_stop(); i++) {
		for (u32 n = i % 7; n--;)
			asm volatile("");
		if (!may_sleep() || preempt_depth())
			asker.wrong++;
		WRITE_ONCE(asker.asked, asker.asked + 1);
	}
}

/* Hold the task that asks in f, and let it go on where this CPU's count is not its own. */
static bool asks_elsewhere(struct task *s, void (*f)(void))
{
	struct symbol sym;
	u32 before;
	bool held;
	u64 end;

	if (!symbol_at((unsigned long)f, &sym))
		return false;
	task_hold(s, sym.start, sym.start + sym.size);
	timer_start(&asker.timer, ASKER_NS);
	held = task_wait_held(s, KWAIT_NS);
	timer_cancel(&asker.timer);
	if (!held)
		return false;
	task_hold(s, 0, 0);
	task_set_affinity(s, HERE << 1);
	before = READ_ONCE(asker.asked);
	preempt_disable();
	task_release(s);
	end = time_ns() + KWAIT_NS;
	while (READ_ONCE(asker.asked) - before < 3 && time_ns() < end)
		arch_cpu_relax();
	preempt_enable();
	task_set_affinity(s, HERE);
	return READ_ONCE(asker.asked) - before >= 3;
}

KTEST(sched_asks_moved, "sched.preempt_count_moved")
{
	struct task *s;

	KNEED_TWO(t);
	if (!boot_info.icount)
		KSKIP(t, "needs -icount: else no interrupt comes within the "
			 "function");
	task_set_affinity(current_task(), HERE);
	memset(&asker, 0, sizeof(asker));
	timer_setup(&asker.timer, interrupt_again);
	s = task_create_expendable("asker", PRIO_LOW, HERE, ask_until_stopped,
				   NULL);
	KASSERT(t, s);
	for (unsigned int i = 0; i < ASKER_ROUNDS; i++)
		KASSERT(t, asks_elsewhere(
				   s, i % 2 ? (void (*)(void))may_sleep :
					      (void (*)(void))preempt_depth));
	KEXPECT_EQ(t, asker.wrong, 0);
	task_stop(s);
	task_join(s);
	task_set_affinity(current_task(), ~0u);
}
