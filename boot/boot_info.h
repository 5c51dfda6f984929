/* SPDX-License-Identifier: MIT */
/*
 * The firmware's facts about the machine, in one form for every architecture. boot/<arch>
 * fills it before kernel_main(). Nothing later reads a device tree, ACPI,
 * argv or a coherence manager's registers to learn about the machine.
 */
#ifndef BOOT_BOOT_INFO_H
#define BOOT_BOOT_INFO_H

#include <kernel/types.h>
#include <boot_port.h> /* the port's struct boot_port */

#define BOOT_MEM_RANGES 16
#define BOOT_CMDLINE 1024

struct boot_range {
	u64 start; /* physical, bytes */
	u64 end;   /* first byte past it */
};

struct boot_info {
	/* CPUs found. Index 0 is the one that boots. */
	unsigned int nr_cpus;
	hwid_t cpu_hwid[MAX_CPUS];
	/* Found beyond MAX_CPUS, or that cannot be started: said at boot. */
	unsigned int cpus_ignored;

	/*
	 * RAM that the page allocator may have, without the kernel image,
	 * firmware and boot data, and the RAM there is in all, in bytes.
	 */
	unsigned int nr_mem;
	struct boot_range mem[BOOT_MEM_RANGES];
	u64 ram_bytes;

	/* An initrd, or start == end. */
	struct boot_range initrd;

	/* Ticks a second of arch_clock(). 0 = arch_clock_init() measures. */
	u64 clock_hz;

	/* Truncation is said at boot. The text is NUL-terminated. */
	char cmdline[BOOT_CMDLINE];
	bool cmdline_truncated;

	/*
	 * Does QEMU run the machine under -icount, where time is counted in
	 * instructions? The machine cannot tell: tools/run passes icount=1 with
	 * --icount. Tests that claim something about preemption skip without.
	 */
	bool icount;

	/* Interrupt controllers, console and all else that the port found. */
	struct boot_port port;
};

extern struct boot_info boot_info;

#endif
