/* SPDX-License-Identifier: MIT */
/* The part of an interrupt that all ports share: count, handle, maybe switch tasks. */
#include <kernel/cpu/cpu.h>
#include <kernel/event/event.h>
#include <kernel/event/latency.h>
#include <kernel/irq.h>
#include <kernel/printk.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/time.h>
#include <kernel/console.h>

const char *const irq_kind_names[NR_IRQ_KINDS] = {
	[IRQ_TIMER] = "timer",	   [IRQ_IPI] = "ipi",
	[IRQ_CONSOLE] = "console", [IRQ_SPURIOUS] = "spurious",
	[IRQ_NMI] = "nmi",
};

void (*irq_nmi_hook)(void);

notrace void irq_nmi(void)
{
	void (*hook)(void) = READ_ONCE(irq_nmi_hook);

	if (hook)
		hook();
}

notrace bool in_interrupt(void)
{
	return preempt_count() & (PREEMPT_IRQ_MASK | PREEMPT_NMI);
}

struct trap_frame *irq_frame(void)
{
	return arch_this_cpu()->irq_frame;
}

void irq_enter(struct trap_frame *f)
{
	struct cpu *cpu = arch_this_cpu();

	cpu->head.preempt_count += PREEMPT_IRQ_ONE;
	if (static_branch(&key_irqsoff))
		latency_hooks->irqs_off(arch_frame_pc(f));
	cpu->irq_frame = f;
}

void irq_event(enum irq_kind kind)
{
	arch_this_cpu()->irq_counts[kind]++;
	if (kind == IRQ_IPI) {
		ipi_interrupt();
		return;
	}
	trace_irq_handler_entry(kind, irq_kind_names[kind]);
	if (kind == IRQ_TIMER)
		timer_interrupt();
	else if (kind == IRQ_CONSOLE)
		console_interrupt();
	trace_irq_handler_exit(kind);
}

/* This may switch to another task. The interrupted task comes back to here later, maybe
 * on another CPU. */
static void irq_leave(struct trap_frame *f)
{
	struct cpu *cpu = arch_this_cpu();
	struct task *t = cpu->head.current;
	u32 left = cpu->head.preempt_count -= PREEMPT_IRQ_ONE;

	cpu->irq_frame = NULL;
	if (left & ~PREEMPT_RESCHED)
		return;
	task_check_stack(t);
	if (!task_hold_here(t, f) && !left)
		return;
	t->frame = f;
	t->preempted = true;
	sched_preempt();
	t->preempted = false;
	t->frame = NULL;
}

/* The port then returns through the frame on the stack of the task that it has interrupted. */
void irq_exit(struct trap_frame *f)
{
	irq_leave(f);
	if (static_branch(&key_irqsoff))
		latency_hooks->irqs_on(arch_frame_pc(f));
	/* As a last call it would come from the port. */
	asm volatile("");
}
