/* SPDX-License-Identifier: MIT */
/*
 * Where the image lies, for the linker script, assembly and C. All physical
 * memory and all devices are mapped once, at KERNEL_OFFSET: the lowest address
 * of Sv39's upper half. The image is part of that direct map, so there is no
 * second mapping of text that could be left writable.
 */
#ifndef ARCH_RISCV_LAYOUT_H
#define ARCH_RISCV_LAYOUT_H

#define KERNEL_OFFSET 0xffffffc000000000
/* OpenSBI occupies the 2 MiB below on QEMU's virt. */
#define KERNEL_PHYS 0x80200000
#define KERNEL_VIRT (KERNEL_PHYS + KERNEL_OFFSET)

#endif
