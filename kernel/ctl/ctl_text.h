/* SPDX-License-Identifier: MIT */
/* How the functions of a control file treat text: they take words and numbers apart, put a record
 * together, explain an error. ctl.h includes it. */
#ifndef KERNEL_CTL_TEXT_H
#define KERNEL_CTL_TEXT_H

#include <kernel/lib/seq.h>
#include <kernel/types.h>

struct ctl_handle;

/* For writers of one word: text without the blanks at its ends, which it loses. */
char *ctl_strip(char *text);

/* For writers of a decimal number up to `most`, as Linux's files take it. 0 or parse_in_base()'s
 * error, explained in h: "'text' is no `kind`". */
int ctl_number(struct ctl_handle *h, const char *text, u64 most,
	       const char *kind, u64 *value);

#define CTL_SWITCH "number; 0 is off, any other on" /* a kind */

/* Likewise of 0 or 1, and no other number: which it is. */
int ctl_bool(struct ctl_handle *h, const char *text, bool *value);

/* For writers in /proc/sys, as Linux's take a number: an int, negative or not, in base 0 of
 * parse_in_base(), with blanks at both ends. 0. -EINVAL, explained in h as by ctl_number(). */
int ctl_int(struct ctl_handle *h, char *text, const char *kind, int *value);

/* The next word of text, separated by blanks, or NULL. *text goes behind it. */
char *ctl_word(char **text);

/* Set the line that explains an error, and return the error. */
int ctl_error(struct ctl_handle *h, int err, const char *fmt, ...)
	printf_like(3, 4);

/* The words for an error that a file did not explain itself. */
const char *ctl_error_text(int err);

#endif
