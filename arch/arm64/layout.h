/* SPDX-License-Identifier: MIT */
/*
 * Where the image lies, for the linker script, assembly and C. All physical memory and
 * all devices are mapped once, at KERNEL_OFFSET: the lowest address of TTBR1's half
 * with 39-bit addresses. The image is part of that direct map, so there is no second
 * mapping of text that could be left writable.
 */
#ifndef ARCH_ARM64_LAYOUT_H
#define ARCH_ARM64_LAYOUT_H

#define KERNEL_OFFSET 0xffffff8000000000
/* RAM begins at DEVICE_TREE. QEMU puts the device tree there, below an ELF file's image,
 * without telling the kernel. */
#define DEVICE_TREE 0x40000000
#define KERNEL_PHYS 0x40200000
#define KERNEL_VIRT (KERNEL_PHYS + KERNEL_OFFSET)

#endif
