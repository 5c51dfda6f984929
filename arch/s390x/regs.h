/* SPDX-License-Identifier: MIT */
/*
 * The program status word, control registers, translation tables, assigned storage and
 * orders to CPUs. Facts from the z/Architecture Principles of Operation (SA22-7832, "PoP",
 * chapters 3, 4 and 6).
 */
#ifndef ARCH_S390X_REGS_H
#define ARCH_S390X_REGS_H

#define PSW_DAT 0x0400000000000000
#define PSW_EXTERNAL 0x0100000000000000
#define PSW_WAIT 0x0002000000000000
#define PSW_64 0x0000000180000000
#define PSW_KERNEL 0x0400000180000000	   /* DAT, interrupts off */
#define PSW_KERNEL_WAIT 0x0502000180000000 /* and enabled wait */
/* Of the first byte: */
#define PSW_EXTERNAL_BIT 0x01
#define PSW_EXTERNAL_OFF 0xfe

/* Control register 0: instruction-execution protection, external interrupts. */
#define CR0_KERNEL 0x100000
#define CR0_EMERGENCY 0x4000
#define CR0_CALL 0x2000
#define CR0_CLOCK 0x800
#define CR0_SERVICE 0x200

/* Translation: 4096 bytes of a region-third table map 1 TiB, a segment table 2 GiB, a
 * page table 1 MiB. An address space's designation has the table's address and its type. */
#define ROOT_ENTRIES 512
#define REGION_SHIFT 31
#define SEGMENTS 2048
#define SEGMENT_SHIFT 20
#define PTES 256
#define ASCE_REGION3 0x4
#define REGION3_INVALID 0x24
#define REGION3_TABLE 0x7 /* with a whole segment table below */
#define REGION3_SHORT 0x4 /* with the first 4096 bytes of one */
#define SEGMENT_INVALID 0x20
#define PTE_INVALID 0x400
#define PTE_READ_ONLY 0x200
#define PTE_NO_EXEC 0x100

/* Assigned storage: real addresses in the CPU's own page 0. */
#define LOW_EXTERNAL 0x80 /* parameter, CPU address, code */
#define LOW_PROGRAM 0x88  /* 4 bytes else, instruction's length, code */
#define LOW_ADDRESS 0xa8  /* of a translation or protection fault, and how */
#define LOW_EXTERNAL_OLD 0x130
#define LOW_PROGRAM_OLD 0x150
#define LOW_MACHINE_OLD 0x160
#define LOW_RESTART_NEW 0x1a0
#define LOW_EXTERNAL_NEW 0x1b0
#define LOW_SVC_NEW 0x1c0
#define LOW_PROGRAM_NEW 0x1d0
#define LOW_MACHINE_NEW 0x1e0
#define LOW_IO_NEW 0x1f0

#define PROGRAM_OPERATION 0x01
#define PROGRAM_TRANSLATION                                                    \
	0x10 /* from here on the old PSW names the instruction itself */

#define EXTERNAL_CLOCK 0x1004
#define EXTERNAL_EMERGENCY 0x1201
#define EXTERNAL_CALL 0x1202
#define EXTERNAL_SERVICE 0x2401

#define SIGP_SENSE 0x01
#define SIGP_CALL 0x02
#define SIGP_EMERGENCY 0x03
#define SIGP_STOP 0x05
#define SIGP_RESTART 0x06
#define SIGP_SET_PREFIX 0x0d
#define SIGP_BUSY 2
#define SIGP_NO_CPU 3

/* objdump does not know it: SERVICE CALL, command and block. */
#define SCLP_READ_INFO 0x00020001
#define SCLP_WRITE_MASK 0x00780005
#define SCLP_WRITE_DATA 0x00760005
#define SCLP_READ_DATA 0x00770005
#define SCLP_DONE 0x0020

#ifndef __ASSEMBLER__
#include <kernel/types.h>

struct psw {
	u64 mask, address;
};

static inline void control_load0(u64 v)
{
	asm volatile("lctlg 0,0,%0" ::"Q"(v) : "memory");
}

static inline u64 control_read0(void)
{
	u64 v;

	asm volatile("stctg 0,0,%0" : "=Q"(v));
	return v;
}

/* An order to a CPU, which may be busy with another. Returns the condition code. */
static inline unsigned int sigp_order(u32 cpu, unsigned int order,
				      u64 parameter)
{
	register u64 status asm("r0") = 0;
	register u64 r1 asm("r1") = parameter;
	unsigned int cc = SIGP_BUSY;

	while (cc == SIGP_BUSY)
		asm volatile("sigp %1,%3,0(%4)\n\t"
			     "ipm %0\n\t"
			     "srl %0,28"
			     : "=d"(cc), "+d"(status), "+d"(r1)
			     : "d"((u64)cpu), "a"((u64)order)
			     : "cc", "memory");
	return cc;
}

/* Call the service processor. The block is in the first 2 GiB. */
static inline void sclp_call(u32 command, u64 block)
{
	asm volatile(".insn rre,0xb2200000,%0,%1" ::"d"((u64)command),
		     "d"(block)
		     : "cc", "memory");
}
#endif
#endif
