/* SPDX-License-Identifier: MIT */
/*
 * System registers, page table entries, and the calls to the firmware and to QEMU. Facts
 * from the Arm Architecture Reference Manual (DDI 0487, chapters D8, D17 and D19), the
 * Power State Coordination Interface (DEN 0022) and Semihosting for AArch64.
 */
#ifndef ARCH_ARM64_REGS_H
#define ARCH_ARM64_REGS_H

#define DAIF_I 0x80  /* interrupts are masked */
#define DAIF_SET_I 2 /* of msr daifset and daifclr */
#define DAIF_SET_A 4

/* Page table entries: 4 KiB pages, 39-bit addresses, three levels. */
#define PTE_VALID 0x01
#define PTE_TABLE 0x02		  /* at the last level: a page */
#define PTE_DEVICE_INDEX (1 << 2) /* of MAIR_EL1's bytes */
#define PTE_READ_ONLY 0x80
#define PTE_SHARED 0x300 /* inner shareable */
#define PTE_USED 0x400	 /* the access flag */
#define PTE_NOT_GLOBAL 0x800
#define PTE_PXN (1 << 53)
#define PTE_NORMAL PTE_SHARED
#define PTE_DEVICE PTE_DEVICE_INDEX
#define PTE_BLOCK (PTE_VALID | PTE_USED)

/* Byte 0: normal memory, write-back. Byte 1: device memory, nGnRE. */
#define MAIR_KERNEL 0x04ff

/* Both halves: 25 address bits unused, tables in write-back, inner shareable memory, 4 KiB
 * pages. 40-bit physical addresses. TCR_NO_LOW: the lower half is not mapped at all. */
#define TCR_NO_LOW (1 << 7)
#define TCR_HALF (25 | 1 << 8 | 1 << 10 | 3 << 12)
#define TCR_KERNEL (2 << 32 | 2 << 30 | TCR_HALF << 16 | TCR_HALF | TCR_NO_LOW)

/* Bits that are 1 in every implementation of Armv8.0, caches and paging on, no checks of
 * alignment: a trap must find the stack pointer wrong by itself. */
#define SCTLR_KERNEL (0x30d00800 | 1 << 0 | 1 << 2 | 1 << 12)

#define MMFR0_NO_4K 31 /* the sign bit of ID_AA64MMFR0_EL1.TGran4 */
#define MPIDR_LOW 0xffffff

/* ESR_EL1: why a trap was taken. */
#define ESR_CLASS_SHIFT 26
#define ESR_BRK 0x3c

/* A breakpoint whose operand no compiler emits, and other instructions. */
#define INSN_BRK 0xd42dcde0 /* brk #0x6e6f */
#define INSN_NOP 0xd503201f

#define SEMIHOSTING 0xf000
#define SEMIHOSTING_EXIT 0x18
#define SEMIHOSTING_STOPPED 0x20026

/* PSCI functions: SMC Calling Convention, 32 or 64 bits. */
#define PSCI_CPU_OFF 0x84000002
#define PSCI_CPU_ON 0xc4000003
#define PSCI_AFFINITY_INFO 0xc4000004
#define PSCI_IS_OFF 1 /* an answer of PSCI_AFFINITY_INFO */

#ifdef __ASSEMBLER__
/* clang-format off */

/* The address of a symbol that may be 4 GiB away. */
.macro address register, symbol:vararg
	adrp	\register, \symbol
	add	\register, \register, :lo12:\symbol
.endm

/* The linked address, for code that runs at its physical one. Changes x2. */
.macro linked register, symbol
	address	\register, \symbol
	mov	x2, #KERNEL_OFFSET
	add	\register, \register, x2
.endm

/* No literal pool: data among the code would be read as instructions. */
.macro constant register, value:vararg
	mov	\register, #(\value) & 0xffff
	movk	\register, #(\value) >> 16 & 0xffff, lsl #16
	movk	\register, #(\value) >> 32 & 0xffff, lsl #32
	movk	\register, #(\value) >> 48 & 0xffff, lsl #48
.endm
#else
#include <kernel/types.h>

#undef PTE_PXN
#define PTE_PXN (1ul << 53)
#undef TCR_KERNEL
#define TCR_KERNEL (2ul << 32 | 2ul << 30 | TCR_HALF * 0x10001ul | TCR_NO_LOW)

#define reg_read(reg)                                                          \
	({                                                                     \
		unsigned long reg_v;                                           \
		asm volatile("mrs %0, " #reg : "=r"(reg_v)::"memory");         \
		reg_v;                                                         \
	})
#define reg_write(reg, v)                                                      \
	asm volatile("msr " #reg ", %x0" ::"rZ"((unsigned long)(v)) : "memory")

static inline void insn_sync(void)
{
	asm volatile("isb" ::: "memory");
}

/*
 * Call the firmware. Earlier stores are visible to the CPU that the call concerns.
 */
static inline long psci_call(unsigned long fn, unsigned long arg1,
			     unsigned long arg2, unsigned long arg3)
{
	register unsigned long x0 asm("x0") = fn;
	register unsigned long x1 asm("x1") = arg1;
	register unsigned long x2 asm("x2") = arg2;
	register unsigned long x3 asm("x3") = arg3;

	asm volatile("dsb sy\n\thvc #0"
		     : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
		     :
		     : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
		       "x13", "x14", "x15", "x16", "x17", "memory");
	return (long)x0;
}

/* Device registers: ordered among themselves and against memory. */
#define MMIO(bits, w)                                                          \
	static inline u##bits mmio_read##bits(u64 va)                          \
	{                                                                      \
		u##bits v;                                                     \
                                                                               \
		asm volatile("ldr %" w "0, [%1]\n\tdmb osh"                    \
			     : "=r"(v)                                         \
			     : "r"(va)                                         \
			     : "memory");                                      \
		return v;                                                      \
	}                                                                      \
                                                                               \
	static inline void mmio_write##bits(u64 va, u##bits v)                 \
	{                                                                      \
		asm volatile("dmb osh\n\tstr %" w "1, [%0]"                    \
			     :                                                 \
			     : "r"(va), "r"(v)                                 \
			     : "memory");                                      \
	}
MMIO(32, "w")
MMIO(64, "x")
#endif
#endif
