/* SPDX-License-Identifier: MIT */
/* A reader of multiboot2's tags, for ports that such a loader starts (BOOT_SRCS in port.mk). */
#ifndef BOOT_MULTIBOOT_H
#define BOOT_MULTIBOOT_H

#include <kernel/types.h>

#define MULTIBOOT2_MAGIC 0x36d76289 /* the loader's, in a register */

/* An entry of the memory map. */
struct multiboot_memory {
	u64 start, size;
	u32 type, reserved;
};

/* Physical addresses of the loader's words, which stay where they are. 0: there are none. */
struct multiboot_info {
	u64 cmdline; /* ends with NUL */
	u64 rsdp;    /* ACPI's, whole: 20 bytes, or 36 from revision 2 on */
	u64 memory_map;
	u32 nr_memory_map;
};

/*
 * Read the tags at pa. Fails the boot when they make no sense. mapped(): where the port has
 * mapped [pa, pa + size). It fails the boot where it has not.
 */
void multiboot_read(u64 pa, struct multiboot_info *info,
		    const void *(*mapped)(u64 pa, u64 size, const char *what));

#endif
