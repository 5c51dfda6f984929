/* SPDX-License-Identifier: MIT */
/*
 * Registers of the CPU and of malta, for C and for assembly. CPU: "MIPS32
 * Privileged Resource Architecture" (PRA). GCR, CPC, GIC: the "MIPS32 P5600
 * Multiprocessing System Software User's Manual".
 */
#ifndef ARCH_REGS_H
#define ARCH_REGS_H

/* Coprocessor 0: register, select. */
#define C0_INDEX $0
#define C0_ENTRYLO0 $2
#define C0_ENTRYLO1 $3
#define C0_BADVADDR $8
#define C0_COUNT $9
#define C0_ENTRYHI $10
#define C0_COMPARE $11
#define C0_STATUS $12
#define C0_CAUSE $13
#define C0_EPC $14
#define C0_EBASE $15, 1
#define C0_CMGCRBASE $15, 3
#define C0_CONFIG $16
#define C0_CONFIG1 $16, 1
#define C0_CONFIG2 $16, 2
#define C0_CONFIG3 $16, 3

#define STATUS_IE 0x00000001
#define STATUS_IM 0x0000ff00 /* as Cause.IP */
#define STATUS_BEV 0x00400000

#define CAUSE_EXCCODE(c) (((c) >> 2) & 31)
#define CAUSE_IP(n) (0x100 << (n))
#define IP_TIMER CAUSE_IP(7) /* Count/Compare, IntCtl.IPTI */
#define CAUSE_BD 0x80000000
#define CAUSE_DC 0x08000000 /* Count stands */

#define EBASE_CPUNUM 0x3ff
#define CONFIG_AR_SHIFT 10 /* architecture release */
#define CONFIG_AR_MASK 7
#define CONFIG_AR_RELEASE_2 1 /* to 5. 0: release 1, 2: release 6 */
#define CONFIG_M 0x80000000   /* the next Config register exists */
#define CONFIG1_MMUSIZE(c) (((c) >> 25) & 63)
#define CONFIG3_CMGCR 0x20000000 /* there is a coherence manager */

/* Coherence manager: global, core-local, and the core or VP "other". */
#define GCR_CONFIG 0x0000
#define GCR_BASE 0x0008
#define GCR_BASE_MASK 0xffff8000
#define GCR_GIC_BASE 0x0080
#define GCR_CPC_BASE 0x0088
#define GCR_CL_CONFIG 0x2010
#define GCR_CL_OTHER 0x2018
#define GCR_VPS 8 /* that it can name, in three bits */
#define GCR_CO_RESET_BASE 0x4020
#define GCR_BASE_ENABLE 1 /* in GIC_BASE and CPC_BASE */
#define GIC_PHYS 0x1bdc0000
#define CPC_PHYS 0x1bde0000

/* Bit masks of VPs: a 1 written stops or starts one. */
#define CPC_CL_VP_STOP 0x2020
#define CPC_CL_VP_RUN 0x2028
#define CPC_CL_VP_RUNNING 0x2030

/* Interrupt controller: shared section, section of the calling VP, and of the VP
 * that the calling one's OTHER names. */
#define GIC_CONFIG 0x0000
#define GIC_CONFIG_COUNTSTOP 0x10000000
#define GIC_CONFIG_SOURCES(c) (((((c) >> 16) & 255) + 1) * 8)
#define GIC_COUNTER_LO 0x0010
#define GIC_POLARITY(n) (0x0100 + (n) / 32 * 4) /* 1: high or rising */
#define GIC_TRIGGER(n) (0x0180 + (n) / 32 * 4)	/* 1: edge */
#define GIC_I8259 3 /* the i8259s' shared interrupt */
#define GIC_WEDGE 0x0280
#define GIC_WEDGE_SET 0x80000000
#define GIC_SET_MASK(n) (0x0380 + (n) / 32 * 4)
#define GIC_MAP_PIN(n) (0x0500 + (n)*4)
#define GIC_PIN 0x80000000 /* route to a pin of the CPU: IP(pin + 2) */
#define GIC_MAP_VP(n) (0x2000 + (n)*32)
#define GIC_VL_RESET_MASK 0x800c
#define GIC_VL_OTHER 0x8080
#define GIC_VO_COMPARE_LO 0xc0a0

/* The ISA ports of the devices. */
#define ISA_BASE (KSEG1 + 0x18000000)
#define PIC1 0x20
#define PIC2 0xa0
#define PIT 0x40
#define UART 0x3f8

/* Byte offsets into struct clock_words (arch_inline.h). */
#define CLOCK_SEEN 4
#define CLOCK_TURNS 12

#ifndef __ASSEMBLER__
#include <kernel/types.h>
#include <layout.h>

#define C0_STRING(...) #__VA_ARGS__
#define read_c0(reg) read_c0_named(C0_STRING(reg))
#define read_c0_named(name)                                                    \
	({                                                                     \
		u32 c0_value;                                                  \
		asm volatile("mfc0 %0, " name : "=r"(c0_value));               \
		c0_value;                                                      \
	})
/*
 * An instruction, and the barrier that makes the next one see its effect. Without
 * noreorder the assembler moves the ehb into the delay slot of a branch behind it. Only
 * the line notes of -g, with their variables, kept it from that.
 */
#define WITH_EHB(insn)                                                         \
	".set push\n\t.set noreorder\n\t" insn "\n\tehb\n\t.set pop"
#define write_c0(reg, value) write_c0_named(C0_STRING(reg), value)
#define write_c0_named(name, value)                                            \
	asm inline volatile(WITH_EHB("mtc0 %z0, " name)                        \
			    :                                                  \
			    : "Jr"((u32)(value))                               \
			    : "memory")

static inline u32 reg_read(unsigned long block, unsigned int offset)
{
	return *(volatile u32 *)(block + offset);
}

static inline void reg_write(unsigned long block, unsigned int offset, u32 v)
{
	*(volatile u32 *)(block + offset) = v;
}

static inline u8 isa_in(unsigned int port)
{
	return *(volatile u8 *)(ISA_BASE + port);
}

static inline void isa_out(unsigned int port, u8 v)
{
	*(volatile u8 *)(ISA_BASE + port) = v;
}
#endif
#endif
