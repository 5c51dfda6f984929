/* SPDX-License-Identifier: MIT */
/* Preconditions as code: assert.h. */
#include <kernel/assert.h>

#include <kernel/irq.h>
#include <kernel/printk.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/image/unwind.h>

noinline notrace void assert_failed(const char *what)
{
	unsigned long caller =
		unwind_caller((unsigned long)__builtin_return_address(0));
	struct task *t = current_task();

	if (!t->expendable || !t->fault || in_interrupt())
		panic("%s, at %pB", what, (void *)caller);
	t->fault->what = what;
	task_kill_current(SIGNAL_ABORT);
}

notrace void assert_irqs_off(void)
{
	if (!arch_irqs_off())
		assert_failed("interrupts are on where they must be off");
}

notrace void assert_preemptible(void)
{
	if (arch_irqs_off() || preempt_depth())
		assert_failed("the task cannot be switched away here");
}

notrace void assert_task_context(void)
{
	if (in_interrupt() || !may_sleep())
		assert_failed("this is no place to sleep");
}
