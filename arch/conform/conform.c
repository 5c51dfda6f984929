/* SPDX-License-Identifier: MIT */
/*
 * The functions that the tests of the contract share. A test is named arch.<function> without the
 * arch_, or arch_trace.<function>. A function that does not return, or that runs once
 * at boot, is tested by its effect. The files run in the order of the porting guide,
 * arch/README.md: a test needs only functions that an earlier one has tested.
 */
#include <arch/conform/conform.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/sched/task.h>
#include <kernel/test/victim.h>
#include <kernel/test/again.h>

/* Without IPIs no task has a guarded stack, or begins on another CPU. Where none comes, the test
 * hangs here, and a hang is reported with this function's name. */
static noinline void wait_for_ipi(unsigned int cpu)
{
	u32 before = conform_irq_count(cpu, IRQ_IPI);

	preempt_disable();
	if (cpu != cpu_index()) {
		arch_ipi_send(cpu);
		while (conform_irq_count(cpu, IRQ_IPI) == before)
			arch_cpu_relax();
	}
	preempt_enable();
}

void conform_on_each_cpu(void (*fn)(void *arg), void *arg)
{
	unsigned int c;

	for_each_online_cpu (c)
		wait_for_ipi(c);
	for_each_online_cpu (c)
		task_join(
			task_create("conform", PRIO_NORMAL, 1u << c, fn, arg));
}

int conform_victim(void (*fn)(void *arg), void *arg, unsigned int cpu)
{
	struct task *v = task_create_expendable("victim", PRIO_NORMAL,
						1u << cpu, fn, arg);

	return v ? task_join(v) : -ENOMEM;
}

void conform_store_back(void *word)
{
	u32 same = *(volatile u32 *)word;

	*(volatile u32 *)word = same;
}

u32 conform_irq_count(unsigned int cpu, enum irq_kind kind)
{
	return READ_ONCE(cpus[cpu].irq_counts[kind]);
}

/* A timer's function: it says that the timer has fired. */
static void flag_fired(struct timer *timer)
{
	WRITE_ONCE(container_of(timer, struct conform_flag, timer)->fired,
		   true);
}

void conform_flag_start(struct conform_flag *flag, u64 ns)
{
	flag->fired = false;
	timer_setup(&flag->timer, flag_fired);
	timer_start(&flag->timer, ns);
}

struct caller_timer {
	struct timer timer;
	bool fired;
};

static void call_from_interrupt(struct timer *timer)
{
	victim_call(1);
	WRITE_ONCE(container_of(timer, struct caller_timer, timer)->fired,
		   true);
}

#define INTERRUPTS 600

u64 conform_interrupted_calls(void)
{
	struct caller_timer c = { .fired = false };
	u64 calls = INTERRUPTS;

	timer_setup(&c.timer, call_from_interrupt);
	preempt_disable();
	for (unsigned int i = 0; i < INTERRUPTS; i++) {
		c.fired = false;
		timer_start(&c.timer, 5 * NSEC_PER_USEC);
		for (unsigned int n = i % 64; n--;)
			asm volatile("");
		for (; !READ_ONCE(c.fired); calls++)
			victim_call(1);
	}
	preempt_enable();
	return calls;
}
