/* SPDX-License-Identifier: MIT */
/* Helpers for the text that files take and give: ctl_text.h. */
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

char *ctl_strip(char *text)
{
	size_t n = strlen(text);

	while (n && is_blank(text[n - 1]))
		text[--n] = '\0';
	while (is_blank(*text))
		text++;
	return text;
}

int ctl_number(struct ctl_handle *h, const char *text, u64 most,
	       const char *kind, u64 *value)
{
	u64 v;
	int err = parse_in_base(text, 10, &v);

	if (err || v > most)
		return ctl_error(h, err ? err : -ERANGE, "'%.32s' is no %s",
				 text, kind);
	*value = v;
	return 0;
}

int ctl_bool(struct ctl_handle *h, const char *text, bool *value)
{
	u64 v;
	int err = parse_in_base(text, 10, &v);

	if (err || v > 1)
		return ctl_error(h, err ? err : -EINVAL,
				 "'%.32s' is neither 0 nor 1", text);
	*value = v;
	return 0;
}

int ctl_int(struct ctl_handle *h, char *text, const char *kind, int *value)
{
	char *digits = ctl_strip(text);
	bool minus = *digits == '-';
	u64 v;

	if (*digits == '+' || digits[minus] == '+' ||
	    parse_in_base(digits + minus, 0, &v) || v > ~0u / 2 + (u64)minus)
		return ctl_error(h, -EINVAL, "'%.32s' is no %s", digits, kind);
	*value = minus ? -v : v;
	return 0;
}

char *ctl_word(char **text)
{
	char *word, *end;

	for (word = *text; is_blank(*word); word++)
		;
	for (end = word; *end && !is_blank(*end); end++)
		;
	*text = end + !!*end;
	*end = '\0';
	return *word ? word : NULL;
}

int ctl_error(struct ctl_handle *h, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	format_args(h->error, sizeof(h->error), fmt, ap);
	va_end(ap);
	return err;
}

const char *ctl_error_text(int err)
{
	switch (err) {
	case -ENOENT:
		return "no such file";
	case -EISDIR:
		return "is a directory";
	case -EPERM:
		return "may not be done with this file; ls -l shows what may";
	case -ENOMEM:
		return "out of memory";
	case -EBUSY:
		return "busy";
	case -EINTR:
		return "interrupted";
	case -E2BIG:
		return "too long";
	default:
		return "refused";
	}
}
