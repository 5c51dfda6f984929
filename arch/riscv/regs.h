/* SPDX-License-Identifier: MIT */
/*
 * Supervisor registers and the calls to the firmware. Facts from the RISC-V
 * Privileged Architecture (20211203, chapters 4 and 5), its Sstc extension and
 * the SBI specification 1.0.
 */
#ifndef ARCH_RISCV_REGS_H
#define ARCH_RISCV_REGS_H

#define SSTATUS_SIE 0x2 /* interrupts are on */

/* Floating point and vector state: off, so that their instructions trap. */
#define SSTATUS_FS_VS 0x6600

#define SIE_SSIE (1 << 1) /* software: inter-processor */
#define SIE_STIE (1 << 5) /* timer */
#define SIE_SEIE (1 << 9) /* external: PLIC */

#define SCAUSE_INTERRUPT (1ul << 63)
#define SCAUSE_ILLEGAL 2 /* c.ebreak too, without compressed instructions */
#define SCAUSE_BREAKPOINT 3

#define CSR_STIMECMP 0x14d

/* Page table entries (Sv39). */
#define PTE_V 0x01
#define PTE_R 0x02
#define PTE_W 0x04
#define PTE_X 0x08
#define PTE_A 0x40
#define PTE_D 0x80
#define PTE_PPN_SHIFT 10
#define SATP_SV39 (8 << 60)

/* SBI extension and function numbers. */
#define SBI_CONSOLE_PUTCHAR 0x01 /* legacy */
#define SBI_TIME 0x54494d45
#define SBI_TIME_SET 0
#define SBI_IPI 0x735049
#define SBI_IPI_SEND 0
#define SBI_RFENCE 0x52464e43
#define SBI_RFENCE_SFENCE_VMA 1
#define SBI_HSM 0x48534d
#define SBI_HSM_START 0
#define SBI_HSM_STOP 1
#define SBI_HSM_STATUS 2
#define SBI_HSM_STOPPED 1
#define SBI_SRST 0x53525354
#define SBI_SRST_RESET 0

#ifndef __ASSEMBLER__
#include <kernel/types.h>

#undef SATP_SV39
#define SATP_SV39 (8ul << 60)

#define csr_read(csr)                                                          \
	({                                                                     \
		unsigned long csr_v;                                           \
		asm volatile("csrr %0, " #csr : "=r"(csr_v)::"memory");        \
		csr_v;                                                         \
	})
#define csr_write(csr, v) asm volatile("csrw " #csr ", %0" ::"rK"(v) : "memory")
#define csr_set(csr, v) asm volatile("csrs " #csr ", %0" ::"rK"(v) : "memory")
#define csr_clear(csr, v) asm volatile("csrc " #csr ", %0" ::"rK"(v) : "memory")

struct sbi_answer {
	long error; /* 0 for success */
	long value;
};

/*
 * Call the firmware. Earlier stores are visible to the hart or the device that the
 * call concerns.
 */
static inline struct sbi_answer sbi_ask(unsigned long ext, unsigned long fn,
					unsigned long arg0, unsigned long arg1,
					unsigned long arg2, unsigned long arg3)
{
	register unsigned long a0 asm("a0") = arg0;
	register unsigned long a1 asm("a1") = arg1;
	register unsigned long a2 asm("a2") = arg2;
	register unsigned long a3 asm("a3") = arg3;
	register unsigned long a6 asm("a6") = fn;
	register unsigned long a7 asm("a7") = ext;

	asm volatile("fence iorw, iorw\n\tecall"
		     : "+r"(a0), "+r"(a1)
		     : "r"(a2), "r"(a3), "r"(a6), "r"(a7)
		     : "memory");
	return (struct sbi_answer){ (long)a0, (long)a1 };
}

/* The same where only the error matters. */
static inline long sbi_call(unsigned long ext, unsigned long fn,
			    unsigned long arg0, unsigned long arg1,
			    unsigned long arg2, unsigned long arg3)
{
	return sbi_ask(ext, fn, arg0, arg1, arg2, arg3).error;
}

/* Device registers: ordered among themselves and against memory. */
#define MMIO(bits)                                                             \
	static inline u##bits mmio_read##bits(u64 va)                          \
	{                                                                      \
		u##bits v = *(volatile u##bits *)va;                           \
                                                                               \
		asm volatile("fence i, iorw" ::: "memory");                    \
		return v;                                                      \
	}                                                                      \
                                                                               \
	static inline void mmio_write##bits(u64 va, u##bits v)                 \
	{                                                                      \
		asm volatile("fence iorw, o" ::: "memory");                    \
		*(volatile u##bits *)va = v;                                   \
	}
MMIO(8)
MMIO(32)
#endif
#endif
