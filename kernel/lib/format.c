/* SPDX-License-Identifier: MIT */
/* vsnprintf(): see kernel/printk.h for what it understands. */
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>

struct out {
	char *buf;
	size_t size, len; /* len counts what did not fit as well */
};

struct spec {
	bool left, zero, plus, space, alt, upper;
	int width, precision; /* precision < 0: none given */
	char length;	      /* 0, h, H (hh), l, L (ll), z */
};

static void put_char(struct out *o, char c)
{
	if (o->len + 1 < o->size)
		o->buf[o->len] = c;
	o->len++;
}

static void put_repeated(struct out *o, char c, int n)
{
	while (n-- > 0)
		put_char(o, c);
}

static void put_padded_text(struct out *o, const struct spec *s,
			    const char *text, int n)
{
	if (!s->left)
		put_repeated(o, ' ', s->width - n);
	for (int i = 0; i < n; i++)
		put_char(o, text[i]);
	if (s->left)
		put_repeated(o, ' ', s->width - n);
}

static void put_string(struct out *o, const struct spec *s, const char *text)
{
	if (!text)
		text = "(null)";
	put_padded_text(o, s, text,
			strnlen(text, s->precision < 0 ? (size_t)-1 >> 1 :
							 (size_t)s->precision));
}

/* Digits of v, backwards. Returns how many: none for 0. */
static int make_digits(char *digits, u64 v, unsigned int base, bool upper)
{
	const char *set = upper ? "0123456789ABCDEF" : "0123456789abcdef";
	int n = 0;

	/* Most numbers are short, and 64-bit division is not cheap anywhere. */
	for (; v > 0xffffffff; v /= base)
		digits[n++] = set[v % base];
	for (u32 low = v; low; low /= base)
		digits[n++] = set[low % base];
	return n;
}

static void put_number(struct out *o, const struct spec *s, u64 v,
		       unsigned int base, bool negative)
{
	char digits[24], prefix[3];
	int n = make_digits(digits, v, base, s->upper), np = 0;
	int zeros = (s->precision < 0 ? 1 : s->precision) - n, pad;

	if (negative)
		prefix[np++] = '-';
	else if (s->plus)
		prefix[np++] = '+';
	else if (s->space)
		prefix[np++] = ' ';
	if (s->alt && base == 16 && v) {
		prefix[np++] = '0';
		prefix[np++] = s->upper ? 'X' : 'x';
	}
	zeros = max(zeros, 0);
	pad = s->width - n - zeros - np;
	if (s->zero && !s->left && s->precision < 0 && pad > 0) {
		zeros += pad;
		pad = 0;
	}
	if (!s->left)
		put_repeated(o, ' ', pad);
	for (int i = 0; i < np; i++)
		put_char(o, prefix[i]);
	put_repeated(o, '0', zeros);
	while (n)
		put_char(o, digits[--n]);
	if (s->left)
		put_repeated(o, ' ', pad);
}

static u64 get_number(const struct spec *s, va_list *ap, bool sign)
{
	s64 v;

	switch (s->length) {
	case 'L':
		return va_arg(*ap, unsigned long long);
	case 'l':
	case 'z':
		v = va_arg(*ap, long);
		return sign ? (u64)v : (u64)(unsigned long)v;
	}
	v = va_arg(*ap, int);
	if (s->length == 'h')
		v = sign ? (short)v : (unsigned short)v;
	else if (s->length == 'H')
		v = sign ? (signed char)v : (unsigned char)v;
	return sign ? (u64)v : (u64)(u32)v;
}

static const char *parse_flags(struct spec *s, const char *f)
{
	for (;; f++) {
		switch (*f) {
		case '-':
			s->left = true;
			break;
		case '0':
			s->zero = true;
			break;
		case '+':
			s->plus = true;
			break;
		case ' ':
			s->space = true;
			break;
		case '#':
			s->alt = true;
			break;
		default:
			return f;
		}
	}
}

static const char *parse_count(const char *f, int *n, va_list *ap)
{
	*n = 0;
	if (*f == '*') {
		*n = va_arg(*ap, int);
		return f + 1;
	}
	for (; *f >= '0' && *f <= '9'; f++)
		*n = *n * 10 + *f - '0';
	return f;
}

static const char *parse_spec(struct spec *s, const char *f, va_list *ap)
{
	memset(s, 0, sizeof(*s));
	f = parse_flags(s, f);
	f = parse_count(f, &s->width, ap);
	if (s->width < 0) {
		s->left = true;
		s->width = -s->width;
	}
	s->precision = -1;
	if (*f == '.')
		f = parse_count(f + 1, &s->precision, ap);
	while (*f == 'h' || *f == 'l' || *f == 'z') {
		/* A doubled letter is kept as its capital: ll is L, hh is H. */
		s->length = s->length == *f ? *f - 0x20 : *f;
		f++;
	}
	return f;
}

/* %p: 0x and digits. %pS: what symbol_format() says of the address. %pB: of a return address. */
static const char *put_pointer(struct out *o, struct spec *s, const char *f,
			       void *p)
{
	char buf[SYMBOL_BUF];

	if (f[1] == 'S' || f[1] == 'B') {
		symbol_format(buf, sizeof(buf), (unsigned long)p, f[1] == 'B');
		put_string(o, s, buf);
		return f + 1;
	}
	s->alt = true;
	put_number(o, s, (unsigned long)p, 16, false);
	return f;
}

static const char *put_spec(struct out *o, const char *f, va_list *ap)
{
	struct spec s;
	s64 v;
	char c;

	f = parse_spec(&s, f, ap);
	switch (*f) {
	case 'd':
	case 'i':
		v = get_number(&s, ap, true);
		put_number(o, &s, v < 0 ? -(u64)v : (u64)v, 10, v < 0);
		break;
	case 'u':
		put_number(o, &s, get_number(&s, ap, false), 10, false);
		break;
	case 'X':
		s.upper = true;
		/* fall through */
	case 'x':
		put_number(o, &s, get_number(&s, ap, false), 16, false);
		break;
	case 'c':
		c = va_arg(*ap, int);
		put_padded_text(o, &s, &c, 1);
		break;
	case 's':
		put_string(o, &s, va_arg(*ap, const char *));
		break;
	case 'p':
		f = put_pointer(o, &s, f, va_arg(*ap, void *));
		break;
	case '%':
		put_char(o, '%');
		break;
	default: /* not ours: shown as it stands, so that it is noticed */
		put_char(o, '%');
		return f;
	}
	return f + 1;
}

int vsnprintf(char *buf, size_t size, const char *fmt, va_list args)
{
	struct out o = { buf, size, 0 };
	va_list ap;

	va_copy(ap, args);
	while (*fmt) {
		if (*fmt == '%')
			fmt = put_spec(&o, fmt + 1, &ap);
		else
			put_char(&o, *fmt++);
	}
	va_end(ap);
	if (size)
		buf[min(o.len, size - 1)] = '\0';
	return o.len;
}

int snprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, size, fmt, ap);
	va_end(ap);
	return n;
}

int scnprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, size, fmt, ap);
	va_end(ap);
	return size ? min(n, (int)size - 1) : 0;
}
