/* SPDX-License-Identifier: MIT */
/* Facts about the machine that only this port needs: part of boot_info. */
#ifndef ARCH_RISCV_BOOT_PORT_H
#define ARCH_RISCV_BOOT_PORT_H

#include <kernel/types.h>

struct boot_port {
	/* Physical addresses. 0: there is none. */
	u64 uart; /* ns16550 */
	u64 plic, plic_size;
	u64 power; /* sifive,test0 */

	u32 uart_shift; /* its registers stand 1 << uart_shift bytes apart */
	u32 uart_irq;	/* source number at the PLIC */
	/* By CPU index: the PLIC context of that hart's supervisor mode. */
	u32 plic_context[MAX_CPUS];

	/* Every hart has the stimecmp register (Sstc). */
	bool sstc;
};

#endif
