/* SPDX-License-Identifier: MIT */
/* From an exception to the generic kernel, and frames in print. */
#include <arch/arch_lab.h>
#include <arch/arch_trace.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/irq.h>
#include <kernel/printk.h>
#include <kernel/trap.h>

const unsigned int arch_fault_unit = 1;

enum { CODE_INTERRUPT = 0, CODE_BREAK = 9 };

/* Cause.ExcCode, PRA table "Cause Register ExcCode Field". */
static const char *const exception_names[32] = {
	[0] = "interrupt",
	[1] = "write to a read-only page",
	[2] = "access to an unmapped address (load or fetch)",
	[3] = "access to an unmapped address (store)",
	[4] = "address error (load or fetch)",
	[5] = "address error (store)",
	[6] = "bus error (fetch)",
	[7] = "bus error (load or store)",
	[8] = "system call",
	[9] = "breakpoint",
	[10] = "reserved instruction",
	[11] = "coprocessor unusable",
	[12] = "integer overflow",
	[13] = "trap instruction",
	[14] = "MSA floating-point exception",
	[15] = "floating-point exception",
	[19] = "TLB read inhibit",
	[20] = "TLB execute inhibit",
	[21] = "MSA disabled",
	[23] = "watchpoint",
	[24] = "machine check",
	[25] = "thread exception",
	[26] = "DSP disabled",
};

/*
 * Where a usable stack pointer may lie: trap_stack_span bytes from _data, up to
 * the end of RAM. All CPUs store the same.
 */
u32 trap_stack_span;
static char emergency_stack[MAX_CPUS][EMERGENCY_STACK_SIZE]
	__attribute__((aligned(PAGE_SIZE)));
CPU_ARRAY(emergency_stack);

/*
 * Nothing is ever mapped through the TLB, so that accesses to kuseg (address 0 too) and
 * kseg2 trap. Every entry gets two invalid pages, and an address of its own, because
 * two equal entries are a machine check. The addresses are in kseg0, which the TLB is
 * never asked for.
 */
static void tlb_clear(void)
{
	u32 size = CONFIG1_MMUSIZE(read_c0(C0_CONFIG1)) + 1;

	write_c0(C0_ENTRYLO0, 0);
	write_c0(C0_ENTRYLO1, 0);
	for (u32 i = 0; i < size; i++) {
		write_c0(C0_ENTRYHI, KSEG0 + (i << (PAGE_SHIFT + 1)));
		write_c0(C0_INDEX, i);
		asm inline volatile(WITH_EHB("tlbwi") : : : "memory");
	}
	write_c0(C0_ENTRYHI, 0);
}

void arch_trap_init(void)
{
	extern char trap_vectors[], _data[];
	struct cpu_head *head = &arch_this_cpu()->head;

	head->trap_stack = (unsigned long)emergency_stack[head->index + 1];
	trap_stack_span = KSEG0 + min(boot_info.ram_bytes, (u64)RAM_LIMIT) -
			  (u32)_data + 1; /* sp may be the end */
	tlb_clear();
	/* EBase may change only while BEV is set, PRA "EBase Register". */
	write_c0(C0_STATUS, read_c0(C0_STATUS) | STATUS_BEV);
	write_c0(C0_EBASE, (u32)trap_vectors);
	write_c0(C0_CAUSE, 0);
	write_c0(C0_STATUS, read_c0(C0_STATUS) & ~STATUS_BEV);
}

void trap_handle(struct trap_frame *f)
{
	unsigned int code = CAUSE_EXCCODE(f->cause);
	const char *name = exception_names[code];

	/* Before anything that could have a site, which might be this one. */
	if (code == CODE_BREAK && patch_trap(f))
		return;
	if (code == CODE_INTERRUPT) {
		irq_dispatch(f);
		return;
	}
	/* BadVAddr is written by codes 1 to 5 alone. */
	trap_fault(f, name ? name : "reserved exception code",
		   code <= 5 ? f->badvaddr : 0);
}

noreturn void trap_cache_error(void);
noreturn void trap_cache_error(void)
{
	panic("cache error");
}

const char *const arch_register_names[] = {
	"0",  "at", "v0", "v1", "a0", "a1", "a2", "a3", "t0", "t1", "t2", "t3",
	"t4", "t5", "t6", "t7", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7",
	"t8", "t9", "k0", "k1", "gp", "sp", "s8", "ra", "hi", "lo",
};

void arch_frame_print(const struct trap_frame *f)
{
	const char *const *names = arch_register_names;

	printk("pc %08x status %08x cause %08x%s badvaddr %08x\n", f->epc,
	       f->status, f->cause,
	       f->cause & CAUSE_BD ? " (in the delay slot)" : "", f->badvaddr);
	for (int i = 0; i < 32; i += 4)
		printk("%2s %08x  %2s %08x  %2s %08x  %2s %08x\n", names[i],
		       i ? f->reg[i] : 0, names[i + 1], f->reg[i + 1],
		       names[i + 2], f->reg[i + 2], names[i + 3],
		       f->reg[i + 3]);
	printk("lo %08x  hi %08x\n", f->lo, f->hi);
}
