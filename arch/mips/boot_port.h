/* SPDX-License-Identifier: MIT */
/* Facts about the machine that only this port needs: part of boot_info. */
#ifndef ARCH_BOOT_PORT_H
#define ARCH_BOOT_PORT_H

#include <kernel/types.h>

/*
 * The coherent processing system's register blocks, as kseg1 addresses. 0 when
 * the CPU has none (QEMU's malta with one CPU): then interrupts and the timer
 * are those of the CPU itself.
 */
struct boot_port {
	unsigned long gcr; /* coherence manager */
	unsigned long cpc; /* cluster power controller: starts VPs */
	unsigned long gic; /* global interrupt controller */
	u32 gic_sources;   /* shared interrupts that it has */
	u32 vps;	   /* of the boot VP's core, numbered from 0 */
};

#endif
