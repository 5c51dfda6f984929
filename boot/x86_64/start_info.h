/* SPDX-License-Identifier: MIT */
/* The words in which a loader describes the machine: PVH's, or multiboot2's put into them. */
#ifndef X86_64_START_INFO_H
#define X86_64_START_INFO_H

#include <kernel/types.h>

/* Xen's public/arch-x86/hvm/start_info.h */
#define START_INFO_MAGIC 0x336ec578
#define MEMORY_RAM 1

/* In eax, from a multiboot2 loader. */
#define MULTIBOOT2_MAGIC 0x36d76289

struct start_info {
	u32 magic, version, flags, nr_modules;
	u64 modules, cmdline, rsdp, memory_map;
	u32 nr_memory_map, reserved;
};

struct start_module {
	u64 start, size, cmdline, reserved;
};

/* An entry of multiboot2's memory map, too. */
struct start_memory {
	u64 start, size;
	u32 type, reserved;
};

/* ACPI 6.4, chapter 5 */
struct rsdp {
	char signature[8];
	u8 checksum;
	char oem[6];
	u8 revision;
	u32 rsdt;
	u32 length;
	u64 xsdt;
	u8 extended_checksum, reserved[3];
} __attribute__((packed));
#define RSDP_1_LENGTH 20

/* firmware.c: [pa, pa + size), which must lie below 4 GiB. Fails the boot otherwise. */
const void *firmware_mapped(u64 pa, u64 size, const char *what);

/* multiboot.c: the tags at pa as a start info. Fails the boot when they make no sense. */
void multiboot_read(u64 pa, struct start_info *info);

#endif
