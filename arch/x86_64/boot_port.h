/* SPDX-License-Identifier: MIT */
/* Facts about the machine that only this port needs: part of boot_info. */
#ifndef X86_64_BOOT_PORT_H
#define X86_64_BOOT_PORT_H

#include <kernel/types.h>
#include <kernel/console.h>

struct boot_port {
	u64 lapic; /* physical addresses of registers */
	u64 ioapic;
	u32 ioapic_gsi;	 /* global interrupt number of its first pin */
	u32 console_gsi; /* COM1's, after the MADT's overrides */
	bool console_level, console_low;
	u16 pm_timer; /* I/O ports, from the FADT. 0: none */
	u16 pm_control;
	u64 ram_top;	  /* end of RAM within the direct map */
	u64 ram_left_out; /* bytes of RAM beyond it */
};

#endif
