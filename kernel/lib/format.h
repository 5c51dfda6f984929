/* SPDX-License-Identifier: MIT */
/* Text from a format. */
#ifndef KERNEL_FORMAT_H
#define KERNEL_FORMAT_H

#include <stdarg.h>

#include <kernel/types.h>

/*
 * Formats: d i u x X c s p % with l, ll, z, h, width, precision, 0, -, +, #, *,
 * and pS (symbol+0xoff/0xsize) with a void *. Returns the length that the whole
 * text has, and writes at most size bytes, always NUL-terminated if size > 0.
 */
int format_args(char *buf, size_t size, const char *fmt, va_list ap);
int snprintf(char *buf, size_t size, const char *fmt, ...) printf_like(3, 4);
/* The same, but returns how many bytes there are before the NUL, not how many there would be.
 * So a text is appended to in pieces: n += format_within(buf + n, sizeof(buf) - n, ...). */
int format_within(char *buf, size_t size, const char *fmt, ...)
	printf_like(3, 4);

#define SYMBOL_BUF 96 /* fits any name+0xoff/0xsize. Longer names are cut */
/* "name+0x12/0x40", or "0x..." for an address in no function. is_return: addr is a return
 * address, and a call that does not return may be the last instruction of its function. */
int symbol_format(char *buf, size_t size, unsigned long addr, bool is_return);

#endif
