/* SPDX-License-Identifier: MIT */
/* struct boot_info, and the functions by which every port's boot code fills it. */
#include <stdarg.h>

#include <arch/arch.h>
#include <boot/boot_info.h>
#include <boot/boot.h>
#include <kernel/errno.h>
#include <kernel/param.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>

struct boot_info boot_info;

static void boot_puts(const char *s)
{
	for (; *s; s++) {
		if (*s == '\n')
			arch_console_putc('\r');
		arch_console_putc(*s);
	}
}

void boot_fail(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	format_args(text, sizeof(text), fmt, ap);
	va_end(ap);
	boot_puts("boot: ");
	boot_puts(text);
	boot_puts("\n");
	arch_power_off(1);
}

static void memory_insert(u64 start, u64 end)
{
	if (start >= end)
		return;
	if (boot_info.nr_mem == BOOT_MEM_RANGES)
		boot_fail("memory map has more than %d ranges",
			  BOOT_MEM_RANGES);
	boot_info.mem[boot_info.nr_mem++] = (struct boot_range){ start, end };
}

void boot_add_memory(u64 start, u64 end)
{
	memory_insert(ALIGN_UP(start, (u64)PAGE_SIZE),
		      ALIGN_DOWN(end, (u64)PAGE_SIZE));
}

/* Each range keeps its parts below and above the hole. */
void boot_remove_memory(u64 start, u64 end)
{
	unsigned int n = boot_info.nr_mem;
	struct boot_range old[BOOT_MEM_RANGES];

	if (start >= end)
		return;
	start = ALIGN_DOWN(start, (u64)PAGE_SIZE);
	end = ALIGN_UP(end, (u64)PAGE_SIZE);
	memcpy(old, boot_info.mem, sizeof(old));
	boot_info.nr_mem = 0;
	for (unsigned int i = 0; i < n; i++) {
		memory_insert(old[i].start, min(old[i].end, start));
		memory_insert(max(old[i].start, end), old[i].end);
	}
}

void boot_set_cmdline(const char *text, size_t len)
{
	size_t n = strnlen(text, len);

	boot_info.cmdline_truncated = n >= BOOT_CMDLINE;
	n = min(n, (size_t)BOOT_CMDLINE - 1);
	memcpy(boot_info.cmdline, text, n);
	boot_info.cmdline[n] = '\0';
}

static int icount_param(const char *value)
{
	if (strcmp(value, "0") && strcmp(value, "1"))
		return -EINVAL;
	boot_info.icount = value[0] == '1';
	return 0;
}
KERNEL_PARAM(icount, "icount", "0 or 1", icount_param);
