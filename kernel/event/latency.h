/* SPDX-License-Identifier: MIT */
/*
 * Where interrupts and preemption are turned off and on again, for the tracers irqsoff,
 * preemptoff and preemptirqsoff (tracer/latency/). While none of them runs, each such place
 * costs one instruction.
 *
 * The kernel calls irq_save() and its like. Code that must not be watched calls
 * arch_irq_save(): the tracer itself, the path on which text is patched, and a panic.
 */
#ifndef KERNEL_LATENCY_H
#define KERNEL_LATENCY_H

#include <arch/arch.h>
#include <arch/jump_label.h>

struct task;

STATIC_KEY_DECLARE(irqsoff);
STATIC_KEY_DECLARE(preemptoff);
STATIC_KEY_DECLARE(wakeup);

/*
 * The tracer's functions for these places. They run with interrupts off. The function that calls
 * one of them contains the place, and `parent` is an address in that function's caller.
 */
struct latency_hooks {
	/* Interrupts have been turned off, if they were on, and they will be on at once. */
	void (*irqs_off)(unsigned long parent);
	void (*irqs_on)(unsigned long parent);
	/* The depth of preempt_disable() will be 1 at once, and it has become 0. irqs_off:
	 * interrupts stay off then. */
	void (*preempt_off)(unsigned long parent);
	void (*preempt_on)(unsigned long parent, bool irqs_off);
	/* t was asleep, and is given to CPU cpu. Under the lock of that CPU's run queue. */
	void (*woken)(const struct task *t, unsigned int cpu,
		      unsigned long parent);
};
/* Set once, before any of the keys is on. */
extern const struct latency_hooks *latency_hooks;

#define LATENCY_PARENT ((unsigned long)__builtin_return_address(0))

static always_inline irq_state_t irq_save(void)
{
	irq_state_t state = arch_irq_save();

	if (static_branch(&key_irqsoff))
		latency_hooks->irqs_off(LATENCY_PARENT);
	return state;
}

static always_inline void irq_restore(irq_state_t state)
{
	if (static_branch(&key_irqsoff) && !arch_irq_was_off(state))
		latency_hooks->irqs_on(LATENCY_PARENT);
	arch_irq_restore(state);
}

static always_inline void irq_disable(void)
{
	arch_irq_disable();
	if (static_branch(&key_irqsoff))
		latency_hooks->irqs_off(LATENCY_PARENT);
}

static always_inline void irq_enable(void)
{
	if (static_branch(&key_irqsoff))
		latency_hooks->irqs_on(LATENCY_PARENT);
	arch_irq_enable();
}

/* Interrupts stay off, and no task of this CPU waits for them: the CPU is about to sleep until the
 * next interrupt, or to leave. The section ends here. */
static always_inline void irq_off_idly(void)
{
	if (static_branch(&key_irqsoff))
		latency_hooks->irqs_on(LATENCY_PARENT);
}

/* Count an outermost preempt_disable(), or its end. Interrupts off, which irqs_off says of the
 * time after it. */
static always_inline void preempt_count_up(struct cpu_head *head)
{
	if (static_branch(&key_preemptoff) &&
	    !(head->preempt_count & PREEMPT_DEPTH_MASK))
		latency_hooks->preempt_off(LATENCY_PARENT);
	head->preempt_count++;
}

static always_inline void preempt_count_down(struct cpu_head *head,
					     bool irqs_off)
{
	head->preempt_count--;
	if (static_branch(&key_preemptoff) &&
	    !(head->preempt_count & PREEMPT_DEPTH_MASK))
		latency_hooks->preempt_on(LATENCY_PARENT, irqs_off);
}

#endif
