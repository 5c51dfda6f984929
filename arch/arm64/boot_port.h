/* SPDX-License-Identifier: MIT */
/* Facts about the machine that only this port needs: part of boot_info. */
#ifndef ARCH_ARM64_BOOT_PORT_H
#define ARCH_ARM64_BOOT_PORT_H

#include <kernel/types.h>

struct boot_port {
	/* Physical addresses. 0: there is none. */
	u64 uart;	    /* PL011 */
	u64 gicd;	    /* the GIC's distributor */
	u64 gicr, gicr_end; /* GICv3: the redistributors */
	u64 gicc;	    /* GICv2: the CPU interface */

	/* Interrupt numbers at the GIC. */
	u32 uart_irq;
	u32 timer_irq; /* the virtual timer's, private to each CPU */

	bool psci; /* the firmware is called by hvc */
};

#endif
