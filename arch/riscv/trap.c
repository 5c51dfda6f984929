/* SPDX-License-Identifier: MIT */
/* Traps: set-up on each CPU, and which of the kernel's entries each one is for. */
#include <arch/arch_lab.h>
#include <arch/arch_trace.h>
#include <kernel/cpu/cpu.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/sched/task.h>
#include <kernel/trap.h>

const unsigned int arch_fault_unit = 1;

static_assert(TASK_STACK_SIZE == STACK_SIZE, "trap_entry's check");

static char trap_stacks[MAX_CPUS][TRAP_STACK_SIZE]
	__attribute__((aligned(PAGE_SIZE)));
CPU_ARRAY(trap_stacks);

/* scause without its interrupt bit. */
enum { IRQ_SOFTWARE = 1, IRQ_SUPERVISOR_TIMER = 5, IRQ_EXTERNAL = 9 };
static const char *const fault_names[] = {
	[0] = "misaligned jump",
	[1] = "bus error (execute)",
	[SCAUSE_ILLEGAL] = "illegal instruction",
	[SCAUSE_BREAKPOINT] = "breakpoint",
	[4] = "misaligned load",
	[5] = "bus error (read)",
	[6] = "misaligned store",
	[7] = "bus error (write)",
	[12] = "page fault (execute)",
	[13] = "page fault (read)",
	[15] = "page fault (write)",
};

void arch_trap_init(void)
{
	struct cpu_head *head = &arch_this_cpu()->head;
	char *stack = head->index ? arch_this_cpu()->idle->stack : boot_stack;

	head->trap_stack = (unsigned long)&trap_stacks[head->index + 1];
	head->scratch[SCRATCH_STACK] = (unsigned long)stack;
	csr_write(stvec, trap_entry);
}

static void handle_interrupt(struct trap_frame *f)
{
	irq_enter(f);
	switch (f->cause & ~SCAUSE_INTERRUPT) {
	case IRQ_SUPERVISOR_TIMER:
		timer_silence();
		irq_event(IRQ_TIMER);
		break;
	case IRQ_SOFTWARE:
		ipi_acknowledge();
		irq_event(IRQ_IPI);
		break;
	case IRQ_EXTERNAL:
		plic_interrupt();
		break;
	default:
		irq_event(IRQ_SPURIOUS);
	}
	irq_exit(f);
}

static void handle_fault(struct trap_frame *f)
{
	const char *what = NULL;

	if (f->cause < ARRAY_SIZE(fault_names))
		what = fault_names[f->cause];
	trap_fault(f, what ? what : "unknown trap", f->tval);
}

/* stack_lost: the frame stands on the emergency stack, see trap_entry. */
void trap_handler(struct trap_frame *f, bool stack_lost)
{
	if (stack_lost)
		trap_fault(f, "stack overflow", f->reg[REG_SP]);
	else if (f->cause & SCAUSE_INTERRUPT)
		handle_interrupt(f);
	else
		handle_fault(f);
}

const char *const arch_register_names[] = {
	"pc", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
	"a1", "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
	"s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
};

void arch_frame_print(const struct trap_frame *f)
{
	trap_print_registers(arch_register_names, f->reg, 32);
	printk("sstatus %lx scause %lx stval %lx\n", f->status, f->cause,
	       f->tval);
}
