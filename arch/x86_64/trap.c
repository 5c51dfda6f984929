/* SPDX-License-Identifier: MIT */
/* Descriptor tables, and the meaning of each vector. */
#include <arch/arch_trace.h>
#include <arch/uart16550.h>
#include <kernel/cpu/cpu.h>
#include <kernel/irq.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/sched/task.h>
#include <kernel/trap.h>

const unsigned int arch_fault_unit = 1;

const char arch_name[] = "x86_64";

struct gate {
	u16 offset_0;
	u16 selector;
	u8 ist;
	u8 type;
	u16 offset_16;
	u32 offset_32;
	u32 reserved;
};
static_assert(sizeof(struct gate) == 16, "SDM 3A, 6.14.1");

struct tss {
	u32 reserved_0;
	u64 rsp[3];
	u64 reserved_28;
	u64 ist[7];
	u64 reserved_92;
	u16 reserved_100;
	u16 io_map;
} __attribute__((packed));
static_assert(sizeof(struct tss) == 104, "SDM 3A, 7.7");

struct table_pointer {
	u16 limit;
	u64 base;
} __attribute__((packed));

#define GATE_INTERRUPT 0x8e /* present, ring 0, clears IF */
#define IST_DOUBLE_FAULT 1
#define IST_NMI 2
#define EMERGENCY_STACK_SIZE (2 * PAGE_SIZE)
#define NMI_STACK_SIZE PAGE_SIZE

enum {
	VECTOR_DOUBLE_FAULT = 8,
	VECTOR_PAGE_FAULT = 14,
	NR_EXCEPTIONS = 32,
};

static const char *const exception_names[NR_EXCEPTIONS] = {
	"divide error",
	"debug exception",
	"NMI",
	"breakpoint",
	"overflow",
	"bound range exceeded",
	"invalid opcode",
	"device not available",
	"double fault",
	"coprocessor overrun",
	"invalid TSS",
	"segment not present",
	"stack segment fault",
	"general protection fault",
	"page fault",
	NULL,
	"x87 error",
	"alignment check",
	"machine check",
	"SIMD error",
	"virtualisation exception",
	"control protection exception"
};

static struct gate idt[NR_VECTORS];
static struct tss tss[MAX_CPUS];
static u64 gdt[MAX_CPUS][6];
static char emergency_stacks[MAX_CPUS][EMERGENCY_STACK_SIZE]
	__attribute__((aligned(PAGE_SIZE)));
CPU_ARRAY(emergency_stacks);
static char nmi_stacks[MAX_CPUS][NMI_STACK_SIZE]
	__attribute__((aligned(PAGE_SIZE)));
CPU_ARRAY(nmi_stacks);

/* Every CPU writes the same bytes, so a later CPU changes nothing. */
static void idt_fill(void)
{
	for (unsigned int v = 0; v < NR_VECTORS; v++) {
		u64 stub = (u64)trap_vectors + v * VECTOR_STUB_SIZE;

		idt[v] = (struct gate){
			.offset_0 = stub,
			.offset_16 = stub >> 16,
			.offset_32 = stub >> 32,
			.selector = SEG_CODE64,
			.type = GATE_INTERRUPT,
		};
	}
	idt[VECTOR_DOUBLE_FAULT].ist = IST_DOUBLE_FAULT;
	idt[VECTOR_NMI].ist = IST_NMI;
}

/* The segments stay loaded: their selectors mean the same in this table. */
static void load_tables(u64 *table)
{
	struct table_pointer gdtr = { sizeof(gdt[0]) - 1, (u64)table };
	struct table_pointer idtr = { sizeof(idt) - 1, (u64)idt };

	asm volatile("lgdt %0; lidt %1; ltr %w2"
		     :
		     : "m"(gdtr), "m"(idtr), "r"(SEG_TSS)
		     : "memory");
}

/*
 * Where a page fault finds no stack to push its frame on, the CPU takes a double fault,
 * which has a stack of its own. An NMI has one too, because it may come while no other
 * stack is usable.
 */
void arch_trap_init(void)
{
	struct cpu *cpu = arch_this_cpu();
	unsigned int i = cpu->head.index;
	struct tss *t = &tss[i];
	u64 base = (u64)t;

	if (i == 0)
		idt_fill();
	cpu->head.trap_stack =
		(unsigned long)emergency_stacks[i] + EMERGENCY_STACK_SIZE;
	t->ist[IST_DOUBLE_FAULT - 1] = cpu->head.trap_stack;
	t->ist[IST_NMI - 1] = (u64)nmi_stacks[i] + NMI_STACK_SIZE;
	t->io_map = sizeof(*t);

	gdt[i][SEG_CODE32 / 8] = DESC_CODE32;
	gdt[i][SEG_CODE64 / 8] = DESC_CODE64;
	gdt[i][SEG_DATA / 8] = DESC_DATA;
	/* Available 64-bit TSS, its base in three pieces (SDM 3A, 7.2.3). */
	gdt[i][SEG_TSS / 8] = (sizeof(*t) - 1) | (base & 0xffffff) << 16 |
			      0x89ull << 40 | (base >> 24 & 0xff) << 56;
	gdt[i][SEG_TSS / 8 + 1] = base >> 32;
	load_tables(gdt[i]);
}

static const char *page_fault_name(const struct trap_frame *f)
{
	if (f->error & 0x10)
		return "page fault (execute)";
	return f->error & 2 ? "page fault (write)" : "page fault (read)";
}

static void trap_other(struct trap_frame *f, unsigned long cr2)
{
	const char *what = exception_names[f->vector];
	unsigned long addr = 0;

	if (f->vector == VECTOR_PAGE_FAULT) {
		what = page_fault_name(f);
		addr = cr2;
	} else if (f->vector == VECTOR_DOUBLE_FAULT) {
		/* Pushing the first fault's frame failed just below rsp. */
		if (f->rsp - cr2 <= sizeof(*f)) {
			what = "stack overflow";
			addr = cr2;
		}
	}
	trap_fault(f, what ? what : "reserved exception", addr);
}

/*
 * An NMI may have interrupted anything: a CPU that holds a lock, stands in the entry
 * trampoline, or is just writing text. So nothing here is a site. The mark in
 * preempt_count tells the tracer that this CPU may be in the middle of an event
 * although interrupts are off, and tells a breakpoint's handler not to return by IRET
 * (entry.S).
 */
static void trap_nmi(struct cpu *cpu)
{
	cpu->head.preempt_count |= PREEMPT_NMI;
	cpu->irq_counts[IRQ_NMI]++;
	irq_nmi();
	cpu->head.preempt_count &= ~PREEMPT_NMI;
}

/* The tracer's first of all. rip is behind the int3. */
static bool trap_int3(struct trap_frame *f)
{
	f->rip--;
	return patch_trap(f);
}

static void trap_interrupt(struct trap_frame *f)
{
	unsigned int v = f->vector;

	/* wait_irq(), entry.S: an interrupt that comes before HLT skips it. */
	if (f->rip >= (u64)wait_nop && f->rip <= (u64)wait_hlt)
		f->rip = (u64)wait_hlt + 1;
	irq_enter(f);
	if (v == VECTOR_CONSOLE)
		uart_interrupt();
	else if (v == VECTOR_IPI)
		irq_event(IRQ_IPI);
	else if (v != VECTOR_TIMER)
		irq_event(IRQ_SPURIOUS);
	else if (clock_timer_expired())
		irq_event(IRQ_TIMER);
	/* A spurious one sets no bit in service: ending it would end another. */
	if (v >= VECTOR_CONSOLE && v != VECTOR_SPURIOUS)
		lapic_write(LAPIC_EOI, 0);
	irq_exit(f);
}

void trap_dispatch(struct trap_frame *f)
{
	/* First: any further fault overwrites it. */
	unsigned long cr2 = read_cr2();

	if (f->vector == VECTOR_BREAKPOINT && trap_int3(f))
		return;
	if (f->vector == VECTOR_NMI)
		trap_nmi(arch_this_cpu());
	else if (f->vector < NR_EXCEPTIONS)
		trap_other(f, cr2);
	else
		trap_interrupt(f);
}

void arch_frame_print(const struct trap_frame *f)
{
	printk("rip %016lx %pS\n", f->rip, (void *)f->rip);
	printk("rax %016lx rbx %016lx rcx %016lx rdx %016lx\n", f->rax, f->rbx,
	       f->rcx, f->rdx);
	printk("rsi %016lx rdi %016lx rbp %016lx rsp %016lx\n", f->rsi, f->rdi,
	       f->rbp, f->rsp);
	printk("r8  %016lx r9  %016lx r10 %016lx r11 %016lx\n", f->r8, f->r9,
	       f->r10, f->r11);
	printk("r12 %016lx r13 %016lx r14 %016lx r15 %016lx\n", f->r12, f->r13,
	       f->r14, f->r15);
	printk("rflags %08lx vector %lu error %lx cs %lx ss %lx\n", f->rflags,
	       f->vector, f->error, f->cs, f->ss);
}
