/* SPDX-License-Identifier: MIT */
/*
 * Where the image lies, for the linker script, assembly and C. All physical memory is
 * mapped once, at KERNEL_OFFSET. The image is part of that direct map, so there is no second
 * mapping of text that could be left writable.
 *
 * Real addresses 0 to 0x1fff are each CPU's own (its prefix area, "lowcore"). The second of
 * these pages is also mapped at its own number, so that one instruction reaches it. The first is
 * not, so address 0 is unmapped.
 */
#ifndef ARCH_S390X_LAYOUT_H
#define ARCH_S390X_LAYOUT_H

#define KERNEL_OFFSET 0x8000000000
/* QEMU enters an image here, and writes the command line and the initrd's place
 * into it, as into Linux's. */
#define KERNEL_PHYS 0x10000
#define KERNEL_VIRT (KERNEL_PHYS + KERNEL_OFFSET)
#define ENTRY_IS_PHYSICAL
#define COMMAND_LINE 0x10480
#define COMMAND_LINE_SIZE 4096
#define INITRD_START 0x10408
#define INITRD_SIZE 0x10410

/* Of physical memory that start.S maps, and the alias. */
#define IMAGE_MIB 8

#define LOWCORE_SIZE 0x2000
/* The kernel's own words there. */
#define LC_CPU 0x1400	  /* struct cpu of the CPU */
#define LC_CURRENT 0x1408 /* its running task */
#define LC_REGS 0x1410	  /* a trap's r0 to r15, until stored */

#endif
