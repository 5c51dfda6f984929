/* SPDX-License-Identifier: MIT */
/*
 * Registers of the processor and of the PC around it, as named in Intel's
 * Software Developer's Manual (SDM) and the ACPI specification, and the few
 * functions that the port's own files share.
 */
#ifndef X86_64_REGS_H
#define X86_64_REGS_H

#define CR0_PE 0x1
#define CR0_ET 0x10
#define CR0_NE 0x20
#define CR0_WP 0x10000 /* the kernel obeys read-only pages, too */
#define CR0_PG 0x80000000
#define CR4_PAE 0x20

#define MSR_APIC_BASE 0x1b
#define MSR_TSC_DEADLINE 0x6e0
#define MSR_EFER 0xc0000080
#define MSR_GS_BASE 0xc0000101

#define APIC_BASE_X2APIC 0x400
#define EFER_LME 0x100
#define EFER_NXE 0x800

#define RFLAGS_IF_BIT 9
#define RFLAGS_IF (1 << RFLAGS_IF_BIT)

/* Segments: the same selectors in the boot table and in each CPU's own. */
#define SEG_CODE32 0x08
#define SEG_CODE64 0x10
#define SEG_DATA 0x18
#define SEG_TSS 0x20
/* Accessed bits set: the processor need not write to the table. */
#define DESC_CODE32 0x00cf9b000000ffff
#define DESC_CODE64 0x00af9b000000ffff
#define DESC_DATA 0x00cf93000000ffff

#define PTE_PRESENT 0x1
#define PTE_WRITE 0x2
#define PTE_UNCACHED 0x18 /* write-through and cache-disable */
#define PTE_LARGE 0x80

/* Interrupt vectors. A higher 16 is served first. */
#define VECTOR_NMI 2
#define VECTOR_BREAKPOINT 3
#define VECTOR_PIC 0x20 /* to 0x2f: masked, but a spurious one can come */
#define VECTOR_CONSOLE 0x30
#define VECTOR_TIMER 0xe0
#define VECTOR_IPI 0xe8
#define VECTOR_NAP 0xf0 /* alone in its class: ends a nap, entry.S */
#define VECTOR_SPURIOUS 0xff
#define NR_VECTORS 256
#define LAPIC_EOI 0xb0 /* the other registers: below */

#define COM1 0x3f8
#define DEBUG_EXIT 0x501 /* QEMU's isa-debug-exit, as in machine.json */

#ifndef __ASSEMBLER__
#include <kernel/types.h>

#define PTE_NX (1ull << 63)

struct trap_frame;

#define PORT_IO(suffix, type)                                                  \
	static inline void out##suffix(u16 port, type v)                       \
	{                                                                      \
		asm volatile("out" #suffix " %0, %1" : : "a"(v), "Nd"(port));  \
	}                                                                      \
	static inline type in##suffix(u16 port)                                \
	{                                                                      \
		type v;                                                        \
		asm volatile("in" #suffix " %1, %0" : "=a"(v) : "Nd"(port));   \
		return v;                                                      \
	}
PORT_IO(b, u8)
PORT_IO(w, u16)
PORT_IO(l, u32)
#undef PORT_IO

static inline void wrmsr(u32 msr, u64 v)
{
	asm volatile("wrmsr"
		     :
		     : "c"(msr), "a"((u32)v), "d"((u32)(v >> 32))
		     : "memory");
}

static inline u64 rdmsr(u32 msr)
{
	u32 lo, hi;

	asm volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr));
	return (u64)hi << 32 | lo;
}

static inline unsigned long read_cr2(void)
{
	unsigned long v;

	asm volatile("movq %%cr2, %0" : "=r"(v));
	return v;
}

static inline u64 read_cr3(void)
{
	u64 v;

	asm volatile("movq %%cr3, %0" : "=r"(v));
	return v;
}

static inline void write_cr3(u64 v)
{
	asm volatile("movq %0, %%cr3" : : "r"(v) : "memory");
}

struct cpuid {
	u32 eax, ebx, ecx, edx;
};

/* Also serialises instruction execution. */
static inline struct cpuid cpuid(u32 leaf)
{
	struct cpuid r = { .eax = leaf };

	asm volatile("cpuid"
		     : "+a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx)
		     : "2"(0)
		     : "memory");
	return r;
}

/* Does a hypervisor (QEMU, too) say that it runs this machine? */
static inline bool cpu_is_virtual(void)
{
	return cpuid(1).ecx >> 31;
}

/* The APIC id that this CPU got at reset: its hwid. */
static inline u32 cpuid_apic_id(void)
{
	return cpuid(1).ebx >> 24;
}

/* mmu.c: map one page of device registers, uncached. Panics past 2 MiB. */
volatile u32 *mmu_map_device(u64 pa);
/* mmu.c: CR3 of the kernel, and of the CPU that writes text. */
extern u64 kernel_root, alias_root;

/* irq.c: the local APIC's registers, by their offset in its page. */
#define LAPIC_TPR 0x80
#define LAPIC_SVR 0xf0
#define LAPIC_ICR 0x300
#define LAPIC_ICR_HIGH 0x310
#define LAPIC_LVT_TIMER 0x320
#define LAPIC_LVT_LINT0 0x350
#define LAPIC_LVT_LINT1 0x360
#define LAPIC_LVT_ERROR 0x370
#define LAPIC_TIMER_INITIAL 0x380
#define LAPIC_TIMER_CURRENT 0x390
#define LAPIC_TIMER_DIVIDE 0x3e0

#define LVT_MASKED 0x10000
#define LVT_NMI 0x400
#define LVT_TSC_DEADLINE 0x40000
#define ICR_INIT 0x4500 /* assert */
#define ICR_STARTUP 0x4600
#define ICR_FIXED 0x4000
#define ICR_NMI 0x4400

u32 lapic_read(unsigned int reg);
void lapic_write(unsigned int reg, u32 v);
/* Send an interrupt command to the CPU with this APIC id. Any context. */
void lapic_command(hwid_t dest, u32 command);
/* Where they are, for entry.S. */
extern volatile u32 *lapic;
/* Map the local APIC: arch_clock_init() does, which needs its timer. */
void lapic_map(void);
/* Send interrupt `gsi` of the I/O APIC to the boot CPU as `vector`. */
void ioapic_route(u32 gsi, u8 vector, bool level, bool low);

/* clock.c: VECTOR_TIMER arrived. True if the deadline was reached. */
bool clock_timer_expired(void);
/* clock.c: this CPU's timer is used no more until arch_timer_init(). */
void clock_leave(void);

/* trap.c: entry.S calls this for every vector. */
void trap_dispatch(struct trap_frame *f);
/* entry.S: sleep until an interrupt, which is on then, and its NOP and HLT. */
void wait_irq(void);
extern const char wait_nop[], wait_hlt[];
/* entry.S: one stub of VECTOR_STUB_SIZE bytes for each vector. */
extern const char trap_vectors[];

/* cpu.c: where secondary.S arrives. */
noreturn void secondary_main(struct cpu *cpu);

#endif

#define VECTOR_STUB_SIZE 16

#endif
