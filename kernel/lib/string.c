/* SPDX-License-Identifier: MIT */
/*
 * Strings and memory. The compiler may call the mem* functions from
 * anywhere, the tracer and a stopped CPU included. So they have no site.
 */
#include <kernel/errno.h>
#include <kernel/lib/string.h>

#define WORD sizeof(unsigned long)
#define ALIGNED(p) (((uintptr_t)(p) & (WORD - 1)) == 0)

typedef unsigned long __attribute__((may_alias)) word_t;

notrace void *memset(void *d, int c, size_t n)
{
	u8 *p = d;

	for (; n >= 3 * WORD && !ALIGNED(p); n--) {
		*p++ = c;
		OPAQUE(p);
	}
	if (ALIGNED(p)) {
		word_t fill = (u8)c * (~0ul / 0xff);

		for (; n >= 4 * WORD; n -= 4 * WORD, p += 4 * WORD) {
			word_t *w = (word_t *)p;

			w[0] = w[1] = w[2] = w[3] = fill;
			OPAQUE(p);
		}
		for (; n >= WORD; n -= WORD, p += WORD) {
			*(word_t *)p = fill;
			OPAQUE(p);
		}
	}
	for (; n; n--) {
		*p++ = c;
		OPAQUE(p);
	}
	return d;
}

/* Bytes of two words, from `skew` bits behind the beginning of the first one on, as one word. */
static always_inline word_t join_words(word_t first, word_t second,
				       unsigned int skew)
{
	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		return first >> skew | second << (8 * WORD - skew);
	return first << skew | second >> (8 * WORD - skew);
}

/*
 * Copy whole words to an aligned place from one that is not, and return where the copy ends. Loads
 * are aligned, because some CPUs have no others. The copy has bytes of each word that is loaded.
 */
static always_inline u8 *copy_skewed(u8 *to, const u8 *from, size_t n)
{
	unsigned int skew = 8 * ((uintptr_t)from & (WORD - 1));
	const word_t *w = (const word_t *)((uintptr_t)from & ~(WORD - 1));
	word_t first = *w, second;

	for (; n >= WORD; n -= WORD, to += WORD, first = second) {
		second = *++w;
		*(word_t *)to = join_words(first, second, skew);
		OPAQUE(to);
	}
	return to;
}

notrace void *memcpy(void *d, const void *s, size_t n)
{
	u8 *to = d, *end = to + n;
	const u8 *from = s;

	/* Single bytes are quicker where there are few. */
	for (; n >= 3 * WORD && !ALIGNED(to); n--) {
		*to++ = *from++;
		OPAQUE(to);
	}
	if (ALIGNED(to) && ALIGNED(from)) {
		for (; n >= WORD; n -= WORD, to += WORD, from += WORD) {
			*(word_t *)to = *(const word_t *)from;
			OPAQUE(to);
		}
	} else if (n >= 2 * WORD && ALIGNED(to)) {
		to = copy_skewed(to, from, n);
		from += n & ~(WORD - 1);
	}
	while (to != end) {
		*to++ = *from++;
		OPAQUE(to);
	}
	return d;
}

notrace void *memmove(void *d, const void *s, size_t n)
{
	u8 *to = d;
	const u8 *from = s;

	if (to <= from || to >= from + n) {
		/* Forwards, byte by byte: memcpy() may copy in any order. */
		for (; n; n--) {
			*to++ = *from++;
			OPAQUE(to);
		}
		return d;
	}
	while (n--) {
		to[n] = from[n];
		OPAQUE(to);
	}
	return d;
}

notrace int memcmp(const void *a, const void *b, size_t n)
{
	const u8 *x = a, *y = b;

	for (; n; n--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

char *string_find(const char *s, const char *part)
{
	size_t n = strlen(part);

	for (;; s++) {
		if (!n || (*s == *part && !strncmp(s, part, n)))
			return (char *)s;
		if (!*s)
			return NULL;
	}
}

size_t string_copy(char *d, const char *s, size_t size)
{
	size_t n = strlen(s);

	if (size) {
		size_t fits = min(n, size - 1);

		memcpy(d, s, fits);
		d[fits] = '\0';
	}
	return n;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return 16;
}

static unsigned int suffix_shift(const char **s)
{
	char c = **s | 0x20;

	if (c != 'k' && c != 'm')
		return 0;
	(*s)++;
	return c == 'k' ? 10 : 20;
}

/* The digits at *s, at least one, and *s moved past them. */
static int parse_digits(const char **s, int base, u64 *value)
{
	u64 v = 0;

	if (digit_value(**s) >= base)
		return -EINVAL;
	for (; digit_value(**s) < base; (*s)++) {
		if (v > (~0ull - digit_value(**s)) / base)
			return -ERANGE;
		v = v * base + digit_value(**s);
	}
	*value = v;
	return 0;
}

static bool skip_0x(const char **s)
{
	bool hex = (*s)[0] == '0' && ((*s)[1] | 0x20) == 'x';

	*s += hex ? 2 : 0;
	return hex;
}

int parse_in_base(const char *s, unsigned int base, u64 *value)
{
	int err;
	u64 v;

	s += *s == '+';
	if (!base)
		base = skip_0x(&s) ? 16 : *s == '0' ? 8 : 10;
	err = parse_digits(&s, base, &v);
	if (err || *s)
		return err ? err : -EINVAL;
	*value = v;
	return 0;
}

int parse_u64(const char *s, u64 *value)
{
	unsigned int shift;
	u64 v;
	int err = parse_digits(&s, skip_0x(&s) ? 16 : 10, &v);

	if (err)
		return err;
	shift = suffix_shift(&s);
	if (*s)
		return -EINVAL;
	if (v > ~0ull >> shift)
		return -ERANGE;
	*value = v << shift;
	return 0;
}
