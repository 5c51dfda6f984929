/* SPDX-License-Identifier: MIT */
/* Messages of the kernel: formatted, then to the console. */
#include <kernel/printk.h>

#include <kernel/console.h>
#include <kernel/lib/format.h>
#include <kernel/lib/string.h>

#define PRINTK_MAX 400 /* longer messages are cut, and end in "...\n" */

static size_t format_message(char *text, const char *fmt, va_list ap)
{
	int n = format_args(text, PRINTK_MAX, fmt, ap);

	if (n < PRINTK_MAX)
		return n;
	memcpy(text + PRINTK_MAX - 5, "...\n", 5);
	return PRINTK_MAX - 1;
}

void printk(const char *fmt, ...)
{
	char text[PRINTK_MAX];
	va_list ap;

	va_start(ap, fmt);
	console_write_whole(text, format_message(text, fmt, ap));
	va_end(ap);
}

void printk_urgent(const char *fmt, ...)
{
	char text[PRINTK_MAX];
	va_list ap;

	va_start(ap, fmt);
	console_write_urgent(text, format_message(text, fmt, ap));
	va_end(ap);
}
