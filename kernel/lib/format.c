/* SPDX-License-Identifier: MIT */
/* format_args(): see format.h for the formats that it understands. */
#include <kernel/lib/format.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>

struct out {
	char *buf;
	size_t size, len; /* len also counts text that did not fit */
};

struct spec {
	bool left, zero, plus, space, alt, upper;
	char length;	      /* 0, h, H (hh), l, L (ll), z */
	int width, precision; /* precision < 0: none given */
};

static void put_char(struct out *o, char c)
{
	if (o->len + 1 < o->size)
		o->buf[o->len] = c;
	o->len++;
}

/* Of n more characters, those that fit. */
static size_t room_for(const struct out *o, size_t n)
{
	return o->len + 1 < o->size ? min(n, o->size - 1 - o->len) : 0;
}

static void put_repeated(struct out *o, char c, int n)
{
	if (n <= 0)
		return;
	memset(o->buf + o->len, c, room_for(o, n));
	o->len += n;
}

static void put_text(struct out *o, const char *text, size_t n)
{
	memcpy(o->buf + o->len, text, room_for(o, n));
	o->len += n;
}

static void put_padded_text(struct out *o, const struct spec *s,
			    const char *text, int n)
{
	if (!s->left)
		put_repeated(o, ' ', s->width - n);
	put_text(o, text, n);
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

/* Digits of v, the last one before `end`. Returns where they begin: at `end` for 0. */
static char *make_digits(char *end, u64 v, unsigned int base, bool upper)
{
	const char *set = upper ? "0123456789ABCDEF" : "0123456789abcdef";

	/* Most numbers are short, and 64-bit division is not cheap anywhere. */
	for (; v > 0xffffffff; v /= base)
		*--end = set[v % base];
	for (u32 low = v; low; low /= base)
		*--end = set[low % base];
	return end;
}

static void put_number(struct out *o, const struct spec *s, u64 v,
		       unsigned int base, bool negative)
{
	char digits[24], prefix[3], *end = digits + sizeof(digits);
	const char *first = make_digits(end, v, base, s->upper);
	int n = end - first, np = 0;
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
	put_text(o, prefix, np);
	put_repeated(o, '0', zeros);
	put_text(o, first, n);
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
	*s = (struct spec){ .precision = -1 };
	f = parse_flags(s, f);
	f = parse_count(f, &s->width, ap);
	if (s->width < 0) {
		s->left = true;
		s->width = -s->width;
	}
	if (*f == '.')
		f = parse_count(f + 1, &s->precision, ap);
	while (*f == 'h' || *f == 'l' || *f == 'z') {
		/* A doubled letter is kept as its capital: ll is L, hh is H. */
		s->length = s->length == *f ? *f - 0x20 : *f;
		f++;
	}
	return f;
}

/* %p: 0x and digits. %pS: symbol_format()'s text for the address. %pB: for a return address. */
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

int format_args(char *buf, size_t size, const char *fmt, va_list args)
{
	struct out o = { buf, size, 0 };
	const char *end;
	va_list ap;

	va_copy(ap, args);
	for (; *fmt; fmt = end) {
		for (end = fmt; *end && *end != '%'; end++)
			;
		put_text(&o, fmt, end - fmt);
		if (*end)
			end = put_spec(&o, end + 1, &ap);
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
	n = format_args(buf, size, fmt, ap);
	va_end(ap);
	return n;
}

int format_within(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = format_args(buf, size, fmt, ap);
	va_end(ap);
	return size ? min(n, (int)size - 1) : 0;
}

int symbol_format(char *buf, size_t size, unsigned long addr, bool is_return)
{
	struct symbol s;

	if (!symbol_at(addr - is_return, &s))
		return snprintf(buf, size, "0x%lx", addr);
	return snprintf(buf, size, "%.64s+0x%lx/0x%lx", s.name, addr - s.start,
			s.size);
}
