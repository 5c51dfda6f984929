/* SPDX-License-Identifier: MIT */
/*
 * Where the image lies, physically and virtually, read by the linker script,
 * by assembly and by C.
 *
 * virtual                            contents
 * KERNEL_OFFSET + 0 .. + 1 GiB       direct map. The image is a part of it
 * DEVICE_BASE .. + 2 MiB             device registers, uncached
 * ALIAS_BASE  .. + 1 GiB             image, writable: in alias_root alone
 */
#ifndef X86_64_LAYOUT_H
#define X86_64_LAYOUT_H

#define KERNEL_PHYS 0x200000
#define KERNEL_OFFSET 0xffffffff80000000
#define KERNEL_VIRT (KERNEL_OFFSET + KERNEL_PHYS)

/* RAM beyond the direct map is left out. */
#define DIRECT_MAP_SIZE 0x40000000
#define DEVICE_BASE 0xffffffffc0000000
#define ALIAS_BASE 0xffffff0000000000

/* The page below 1 MiB where other CPUs wake up in real mode. */
#define SECONDARY_PAGE 0x8000

/* The PVH entry is 32-bit code without paging. */
#define ENTRY_IS_PHYSICAL

#endif
