/* SPDX-License-Identifier: MIT */
/*
 * A port's reader of device trees (FIRMWARE, boot/NAME/firmware.c) on the host, with the kernel's
 * own boot/boot.c and boot/fdt.c. It calls tree_read() in the end, where gdb shows boot_info, or
 * why the tree was refused.
 *
 *   firmware BOOT_CPU TREE.dtb     that CPU boots
 */
#include <arch/arch.h>

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

/* Where the image lies, and its end, for the host's own _end is none that firmware can know. */
#define IMAGE_END (KERNEL_PHYS + 0x345678)
/* A tree lies where the firmware has put it. */
#define TREE_AT (KERNEL_PHYS + 0x1000000)
#define TREE_MOST (1 << 20)
static char tree_bytes[TREE_MOST] __attribute__((aligned(8)));
#define arch_phys_to_virt(pa) ((void *)((pa) ? tree_bytes : NULL))
#define arch_virt_to_phys(va)                                                  \
	((const char *)(va) == tree_bytes ? TREE_AT : IMAGE_END)

#define TREE_READ 2 /* and not refused */
static jmp_buf ended;
static char refusal[300];
static unsigned int refusal_length;

static void put_refusal(char c)
{
	refusal[refusal_length++ % sizeof(refusal)] = c;
}

static noreturn void end_reading(int status)
{
	longjmp(ended, status);
}

#define arch_console_putc put_refusal
#define arch_power_off end_reading
#define format_args vsnprintf
#include "../../boot/boot.c"
#include "../../boot/fdt.c"
#include FIRMWARE

struct cpu cpus[MAX_CPUS];

noreturn void kernel_main(void)
{
	longjmp(ended, TREE_READ);
}

/* gdb stops here. The tree was read, or refused. */
noinline void tree_read(bool whole, const char *why);
noinline void tree_read(bool whole, const char *why)
{
	asm volatile("" ::"r"(whole), "r"(why) : "memory");
}

int main(int argc, char **argv)
{
	void (*boot)(u64 cpu, u64 at) = (void (*)(u64, u64))boot_main;
	FILE *f = argc == 3 ? fopen(argv[2], "rb") : NULL;
	int how;

	if (!f || !fread(tree_bytes, 1, TREE_MOST, f))
		return 2;
	how = setjmp(ended);
	if (!how)
		boot(strtoul(argv[1], NULL, 0), TREE_AT);
	tree_read(how == TREE_READ, refusal);
	return 0;
}
