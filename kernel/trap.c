/* SPDX-License-Identifier: MIT */
/* A fault: its report, and the task that it ends. */
#include <kernel/cpu/cpu.h>
#include <kernel/irq.h>
#include <kernel/panic.h>
#include <kernel/printk.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/image/unwind.h>
#include <kernel/trap.h>

void trap_print_registers(const char *const *names, const unsigned long *reg,
			  unsigned int nr)
{
	const int digits = 2 * sizeof(long);

	for (; nr; nr -= 4, names += 4, reg += 4)
		printk("%3s %0*lx %3s %0*lx %3s %0*lx %3s %0*lx\n", names[0],
		       digits, reg[0], names[1], digits, reg[1], names[2],
		       digits, reg[2], names[3], digits, reg[3]);
}

static void report_fault(const struct trap_frame *f, const char *what,
			 unsigned long addr)
{
	printk("fault: %s, address 0x%lx, at %pS, CPU %u, task %s (%d)\n", what,
	       addr, (void *)arch_frame_pc(f), cpu_index(),
	       current_task()->name, current_task()->pid);
	arch_frame_print(f);
	backtrace_print(f, NULL);
}

/* Only a task that holds nothing of the kernel's can be taken out of it. */
static bool may_kill(const struct cpu *cpu)
{
	return cpu->head.current->expendable &&
	       !(cpu->head.preempt_count & ~PREEMPT_RESCHED);
}

/* True: the fault was expected, and its handler has put f right. */
static bool note_fault(struct task_fault *fault, struct trap_frame *f,
		       const char *what, unsigned long addr)
{
	struct unwind_regs regs;

	if (fault->fix && fault->fix(f))
		return true;
	arch_frame_regs(f, &regs);
	fault->what = what;
	fault->pc = regs.pc;
	fault->addr = addr;
	fault->sp = regs.sp;
	return false;
}

/*
 * This may run on the emergency stack, which the next fault on this CPU begins
 * anew. Nothing on it is needed once the task is dead.
 */
void trap_fault(struct trap_frame *f, const char *what, unsigned long addr)
{
	struct cpu *cpu = arch_this_cpu();
	struct task *t = cpu->head.current;

	if (cpu->in_fault)
		panic("%s, address 0x%lx, at %pS, while handling a fault", what,
		      addr, (void *)arch_frame_pc(f));
	cpu->in_fault = true;
	cpu->broken_at = arch_clock();
	if (t->fault && may_kill(cpu)) {
		if (note_fault(t->fault, f, what, addr)) {
			cpu->in_fault = false;
			return;
		}
	} else {
		report_fault(f, what, addr);
		if (!may_kill(cpu))
			panic("%s at %pS", what, (void *)arch_frame_pc(f));
		printk("fault: task %s (%d) is expendable: killed\n", t->name,
		       t->pid);
	}
	cpu->in_fault = false;
	task_kill_current(SIGNAL_FAULT);
}
