/* SPDX-License-Identifier: MIT */
/* Strings, by C's names and meanings: a part of string.h. No site. */
#ifndef KERNEL_STRING_INLINE_H
#define KERNEL_STRING_INLINE_H

#include <kernel/types.h>

/*
 * Keeps the compiler from recognising a loop as a function of the C library, which it would call,
 * even from that very function.
 */
#define OPAQUE(p) __asm__("" : "+r"(p))

static always_inline size_t strnlen(const char *s, size_t n)
{
	const char *p = s;

	for (; n && *p; n--) {
		p++;
		OPAQUE(p);
	}
	return p - s;
}

static always_inline size_t strlen(const char *s)
{
	return strnlen(s, ~(size_t)0);
}

static always_inline int strncmp(const char *a, const char *b, size_t n)
{
	while (n && *a && *a == *b)
		a++, b++, n--;
	return n ? (u8)*a - (u8)*b : 0;
}

static always_inline int strcmp(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return (u8)*a - (u8)*b;
}

static always_inline char *strchr(const char *s, int c)
{
	for (; *s != (char)c; s++)
		if (!*s)
			return NULL;
	return (char *)s;
}

static always_inline char *strrchr(const char *s, int c)
{
	const char *last = NULL;

	do {
		if (*s == (char)c)
			last = s;
	} while (*s++);
	return (char *)last;
}

static always_inline char *strstr(const char *s, const char *part)
{
	return string_find(s, part);
}

#endif
