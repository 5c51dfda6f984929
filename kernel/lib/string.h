/* SPDX-License-Identifier: MIT */
/* The C library's part that a kernel needs, semantics as in C and POSIX. */
#ifndef KERNEL_STRING_H
#define KERNEL_STRING_H

#include <kernel/types.h>

void *memset(void *d, int c, size_t n);
void *memcpy(void *d, const void *s, size_t n);
void *memmove(void *d, const void *s, size_t n);
int memcmp(const void *a, const void *b, size_t n);
/* The place of a text in another, or NULL: strstr(). */
char *string_find(const char *s, const char *part);
/* The rest of C's that the tree uses is inline: a trace prints functions' names, and a name of one
 * word says little. A program of the host has its own. */
#if __STDC_HOSTED__
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t n);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);
char *strstr(const char *s, const char *part);
#else
#include <kernel/lib/string_inline.h>
#endif
/* Copies at most size - 1 bytes and terminates. Returns strlen(s). */
size_t string_copy(char *d, const char *s, size_t size);

/*
 * Parse a whole unsigned number, 0x for hex, with an optional K or M suffix.
 * 0, -EINVAL (not a number, or text after it) or -ERANGE.
 */
int parse_u64(const char *s, u64 *value);

/*
 * Parse a whole number as Linux's control files take it: a "+" or none, and digits, without a
 * suffix. The base is 10 or 16, and then 0x is refused, or it is 0: 0x begins a hexadecimal
 * number, another leading 0 an octal one. Errors as parse_u64().
 */
int parse_in_base(const char *s, unsigned int base, u64 *value);

#endif
