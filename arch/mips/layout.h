/* SPDX-License-Identifier: MIT */
/*
 * Where the image lies. kseg0 is a fixed window on the first 512 MiB of
 * physical memory, cached and without a TLB: the kernel never needs another.
 */
#ifndef ARCH_LAYOUT_H
#define ARCH_LAYOUT_H

#define KERNEL_PHYS 0x00100000
#define KERNEL_VIRT 0x80100000
#define KERNEL_OFFSET (KERNEL_VIRT - KERNEL_PHYS)

/* The ELF entry is the address of _start as linked: firmware jumps to kseg0. */
#define ENTRY_IS_PHYSICAL

#define KSEG0 0x80000000
#define KSEG1 0xa0000000 /* the same memory, uncached: devices */

/*
 * Malta's RAM begins at physical 0. From 256 MiB on lie devices. RAM beyond
 * that appears where kseg0 does not reach.
 */
#define RAM_LIMIT 0x10000000

#define BOOT_STACK_SIZE 16384

#endif
