/* SPDX-License-Identifier: MIT */
/*
 * A port's reader of what loader and firmware say (FIRMWARE, boot/NAME/firmware.c) in a program of
 * the host: what it calls in the kernel, as far as a test looks at it. Included once.
 */
#ifndef ISO_HOST_H
#define ISO_HOST_H

#include <arch/arch.h>

/* The kernel's end, for the host's own _end is none that firmware can know. */
#define IMAGE_END 0x345678ul
#define arch_virt_to_phys(p) ((void)(p), IMAGE_END)
/* The host moves this program from CPU to CPU. */
#define THIS_CPU_ID 0xb0
#define cpuid_apic_id() THIS_CPU_ID

#include FIRMWARE

#include "refusal.h"

#include <stdlib.h>

struct boot_info boot_info;
struct cpu cpus[MAX_CPUS];

/* What boot_add_memory() and boot_remove_memory() were told. */
static struct told {
	u64 start, end;
	bool removed;
} told[32];
static unsigned int nr_told;
/* What the tags of multiboot2 say. */
static struct multiboot_info tags;

static void tell_memory(u64 start, u64 end, bool removed)
{
	if (start > end || nr_told == sizeof(told) / sizeof(told[0]))
		boot_fail("memory from %#lx to %#lx\n", start, end);
	told[nr_told++] = (struct told){ start, end, removed };
}

void boot_add_memory(u64 start, u64 end)
{
	tell_memory(start, end, false);
}

void boot_remove_memory(u64 start, u64 end)
{
	tell_memory(start, end, true);
}

void boot_set_cmdline(const char *s, size_t len)
{
	(void)s, (void)len;
}

void multiboot_read(u64 pa, struct multiboot_info *to,
		    const void *(*mapped)(u64, u64, const char *))
{
	(void)pa, (void)mapped;
	*to = tags;
}

void arch_console_init(void)
{
}

noreturn void kernel_main(void)
{
	abort();
}

/* Nothing is read yet. */
static void forget(void)
{
	why[0] = '\0';
	nr_told = 0;
	memset(&boot_info, 0, sizeof(boot_info));
}

#endif
