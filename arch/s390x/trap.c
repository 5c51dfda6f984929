/* SPDX-License-Identifier: MIT */
/* Traps: set-up on each CPU, and which of the kernel's entries each one is for. */
#include <arch/arch_lab.h>
#include <arch/arch_trace.h>
#include <kernel/cpu/cpu.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/sched/task.h>
#include <kernel/trap.h>

const unsigned int arch_fault_unit = PAGE_SIZE;

static_assert(TASK_STACK_SIZE == STACK_SIZE, "trap_entry's check");

static char trap_stacks[MAX_CPUS][TRAP_STACK_SIZE]
	__attribute__((aligned(PAGE_SIZE)));
CPU_ARRAY(trap_stacks);

enum {
	CODE_PRIVILEGED = 0x02,
	CODE_PROTECTION = 0x04,
	CODE_ADDRESSING = 0x05,
	CODE_SPECIFICATION = 0x06,
	CODE_SEGMENT = 0x10,
	CODE_PAGE = 0x11,
	CODE_ASCE = 0x38,
	CODE_REGION3 = 0x3b,
};
/* Of the fault's address: its page, and how it was used. */
#define HOW_EXECUTE 0x80 /* execution protection */
#define HOW_STORE 0x400

static void set_new_psw(unsigned int at, void (*fn)(void))
{
	*low_psw(at) = (struct psw){ PSW_KERNEL, (u64)fn };
}

/* The CPU that comes out of arch_cpu_park() has another external PSW until then. */
void arch_trap_init(void)
{
	struct cpu_head *head = &arch_this_cpu()->head;
	char *stack = head->index ? arch_this_cpu()->idle->stack : boot_stack;

	head->trap_stack = (unsigned long)&trap_stacks[head->index + 1];
	head->scratch[SCRATCH_STACK] = (unsigned long)stack;
	set_new_psw(LOW_EXTERNAL_NEW, trap_external);
	set_new_psw(LOW_PROGRAM_NEW, trap_vectors);
	set_new_psw(LOW_SVC_NEW, trap_machine);
	set_new_psw(LOW_MACHINE_NEW, trap_machine);
	set_new_psw(LOW_IO_NEW, trap_machine);
	set_new_psw(LOW_RESTART_NEW, trap_machine);
}

/* The CPU tells a page. An instruction that lies in it was to be fetched there. */
static const char *page_fault_name(const struct trap_frame *f)
{
	if (f->address & HOW_STORE)
		return "page fault (write)";
	if (f->pc >> PAGE_SHIFT == f->address >> PAGE_SHIFT)
		return "page fault (execute)";
	return "page fault (read)";
}

static const char *fault_name(const struct trap_frame *f)
{
	if (f->kind != KIND_PROGRAM)
		return "machine check, or a trap that nothing enabled";
	switch (f->cause & 0x7f) {
	case PROGRAM_OPERATION:
	case CODE_PRIVILEGED:
		return "illegal instruction";
	case CODE_PROTECTION:
		return f->address & HOW_EXECUTE ? "page fault (execute)" :
						  "page fault (write)";
	case CODE_ADDRESSING:
		return "bus error";
	case CODE_SPECIFICATION:
		return "misaligned jump or operand";
	case CODE_SEGMENT:
	case CODE_PAGE:
	case CODE_ASCE ... CODE_REGION3:
		return page_fault_name(f);
	default:
		return "unknown trap";
	}
}

static bool has_address(const struct trap_frame *f)
{
	unsigned int code = f->cause & 0x7f;

	return f->kind == KIND_PROGRAM &&
	       (code == CODE_PROTECTION || code >= CODE_SEGMENT);
}

void trap_handler(struct trap_frame *f)
{
	if (f->kind & KIND_LOST) {
		trap_fault(f, "stack overflow", f->reg[REG_SP]);
	} else if (f->kind == KIND_EXTERNAL) {
		irq_enter(f);
		external_interrupt(f);
		irq_exit(f);
	} else {
		trap_fault(f, fault_name(f),
			   has_address(f) ? ALIGN_DOWN(f->address, PAGE_SIZE) :
					    0);
	}
}

/* r0 once more at the end: lab_registers() returns 0 if all is well. */
const char *const arch_register_names[] = {
	"r0", "r1",  "r2",  "r3",  "r4",  "r5",	 "r6",	"r7", "r8",
	"r9", "r10", "r11", "r12", "r13", "r14", "r15", "r0",
};

void arch_frame_print(const struct trap_frame *f)
{
	trap_print_registers(arch_register_names, f->reg, 16);
	printk("pc %lx psw mask %lx cause %lx address %lx\n", f->pc, f->mask,
	       f->cause, f->address);
}
