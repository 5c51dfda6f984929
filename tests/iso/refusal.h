/* SPDX-License-Identifier: MIT */
/* boot_fail() in a program of the host: the words are kept, and the reader is left by longjmp(). */
#ifndef ISO_REFUSAL_H
#define ISO_REFUSAL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

static jmp_buf given_up;
static char why[256];

void boot_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	longjmp(given_up, 1);
}

#endif
