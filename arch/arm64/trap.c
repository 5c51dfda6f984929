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

/* ESR_EL1: the class, and of an abort its kind and whether it was a store. */
enum {
	CLASS_UNKNOWN = 0x00,
	CLASS_VECTOR_OFF = 0x07,
	CLASS_STATE = 0x0e,
	CLASS_FETCH = 0x21,
	CLASS_PC = 0x22,
	CLASS_DATA = 0x25,
};
#define ABORT_STORE (1ul << 6)
#define ABORT_KIND(esr) ((esr)&0x3f)
enum { ABORT_EXTERNAL = 0x10, ABORT_ALIGNMENT = 0x21 };

void arch_trap_init(void)
{
	struct cpu_head *head = &arch_this_cpu()->head;
	char *stack = head->index ? arch_this_cpu()->idle->stack : boot_stack;

	head->trap_stack = (unsigned long)&trap_stacks[head->index + 1];
	head->scratch[SCRATCH_STACK] = (unsigned long)stack;
	reg_write(vbar_el1, trap_vectors);
	insn_sync();
	asm volatile("msr daifclr, %0" ::"i"(DAIF_SET_A));
}

static const char *abort_name(unsigned long esr)
{
	static const char *const names[][3] = {
		{ "page fault (execute)", "page fault (read)",
		  "page fault (write)" },
		{ "bus error (execute)", "bus error (read)",
		  "bus error (write)" },
		{ "misaligned jump", "misaligned load", "misaligned store" },
	};
	unsigned int how = 0, kind = 0;

	if (esr >> ESR_CLASS_SHIFT == CLASS_DATA)
		how = esr & ABORT_STORE ? 2 : 1;
	if (ABORT_KIND(esr) >= ABORT_EXTERNAL)
		kind = ABORT_KIND(esr) == ABORT_ALIGNMENT ? 2 : 1;
	return names[kind][how];
}

static const char *fault_name(const struct trap_frame *f)
{
	if (f->kind != KIND_SYNC)
		return "bus error, or a fast interrupt";
	switch (f->cause >> ESR_CLASS_SHIFT) {
	case CLASS_FETCH:
	case CLASS_DATA:
		return abort_name(f->cause);
	case CLASS_UNKNOWN:
	case CLASS_VECTOR_OFF:
	case CLASS_STATE:
		return "illegal instruction";
	case CLASS_PC:
		return "misaligned jump";
	case ESR_BRK:
		return "breakpoint";
	default:
		return "unknown trap";
	}
}

void trap_handler(struct trap_frame *f)
{
	if (f->kind & KIND_LOST) {
		trap_fault(f, "stack overflow", f->reg[REG_SP]);
	} else if (f->kind == KIND_IRQ) {
		irq_enter(f);
		gic_interrupt();
		irq_exit(f);
	} else {
		trap_fault(f, fault_name(f), f->address);
	}
}

const char *const arch_register_names[] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",
	"x8",  "x9",  "x10", "x11", "x12", "x13", "x14", "x15",
	"x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23",
	"x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",
};

void arch_frame_print(const struct trap_frame *f)
{
	trap_print_registers(arch_register_names, f->reg, 32);
	printk("pc %lx spsr %lx esr %lx far %lx\n", f->pc, f->status, f->cause,
	       f->address);
}
