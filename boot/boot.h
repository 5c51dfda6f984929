/* SPDX-License-Identifier: MIT */
/* The functions by which every port's boot code fills struct boot_info. */
#ifndef BOOT_BOOT_H
#define BOOT_BOOT_H

#include <boot/boot_info.h>
#include <kernel/types.h>

/*
 * boot_fail(): firmware data is missing or makes no sense. Prints one line on
 * the polled console and stops the machine with a failing status.
 */
noreturn void boot_fail(const char *fmt, ...) printf_like(1, 2);

/*
 * boot_add_memory(): record usable RAM [start, end), physical bytes, clipped to
 * whole pages, boot_remove_memory(): take [start, end) out of the memory that has been
 * added, splitting ranges. Both fail the boot when the table is full.
 * Context: boot, single CPU. Added ranges must not overlap.
 */
void boot_add_memory(u64 start, u64 end);
void boot_remove_memory(u64 start, u64 end);

/* Copy a command line of at most len bytes, or up to its NUL. */
void boot_set_cmdline(const char *text, size_t len);

#endif
