/* SPDX-License-Identifier: MIT */
/* The text of a record: seq.h. */
#include <kernel/lib/format.h>
#include <kernel/lib/seq.h>

void seq_printf(struct seq *s, const char *fmt, ...)
{
	size_t room = sizeof(s->buf) - s->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = format_args(s->buf + s->len, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		s->len += min((size_t)n, room - 1);
}

void seq_puts(struct seq *s, const char *text)
{
	char *to = s->buf + s->len, *end = s->buf + sizeof(s->buf) - 1;

	while (*text && to < end)
		*to++ = *text++;
	*to = '\0';
	s->len = to - s->buf;
}

void seq_fill(struct seq *s, char fill, int n)
{
	char *to = s->buf + s->len, *end = s->buf + sizeof(s->buf) - 1;

	while (n-- > 0 && to < end)
		*to++ = fill;
	*to = '\0';
	s->len = to - s->buf;
}

void seq_decimal(struct seq *s, u64 v, int width, char fill)
{
	char digits[24], *end = digits + sizeof(digits) - 1, *first = end;

	*end = '\0';
	/* As in format_args(): 64-bit division is not cheap anywhere. */
	for (; v > 0xffffffff; v /= 10)
		*--first = '0' + v % 10;
	for (u32 low = v; low || first == end; low /= 10)
		*--first = '0' + low % 10;
	while (end - first < width)
		*--first = fill;
	seq_puts(s, first);
}
