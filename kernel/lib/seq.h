/* SPDX-License-Identifier: MIT */
/* The text of a record, put together piece by piece. */
#ifndef KERNEL_SEQ_H
#define KERNEL_SEQ_H

#include <kernel/types.h>

/* Collects the text of one record, which is cut behind CTL_RECORD bytes. */
#define CTL_RECORD 2816 /* the longest stack, with all that options add */
struct seq {
	size_t len;
	char buf[CTL_RECORD];
};
void seq_printf(struct seq *s, const char *fmt, ...) printf_like(2, 3);
/* The same for files of many lines, in a tenth of the time: a text, n characters of one kind, and a
 * decimal number behind as many of `fill` as make it `width` characters, of 20 at most. */
void seq_puts(struct seq *s, const char *text);
void seq_fill(struct seq *s, char fill, int n);
void seq_decimal(struct seq *s, u64 v, int width, char fill);

#endif
