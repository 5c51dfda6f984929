/* SPDX-License-Identifier: MIT */
/* Shell-style patterns, as Linux's ftrace filters take them. */
#include <kernel/lib/string.h>
#include <kernel/lib/glob.h>

/*
 * Match one character against the class that begins behind '['. Returns where
 * the pattern goes on behind ']', or NULL when the class is not closed: then
 * '[' stands for itself, as in Linux.
 */
static notrace const char *match_class(const char *p, char c, bool *matched)
{
	bool negate = *p == '!', hit = false;
	const char *first;

	p += negate;
	first = p;
	while (*p && (*p != ']' || p == first)) {
		u8 lo = *p++, hi = lo;

		if (p[0] == '-' && p[1] && p[1] != ']') {
			hi = p[1];
			p += 2;
		}
		hit |= lo <= (u8)c && (u8)c <= hi;
	}
	if (!*p)
		return NULL;
	*matched = hit != negate;
	return p + 1;
}

/*
 * One pattern element against one character: the pattern's rest, or NULL. *unclosed is the first
 * '[' that has turned out to have no ']', or NULL. None behind it has one either, and looking for
 * it each time would let the time grow with the square of the lengths.
 */
static notrace const char *match_one(const char *p, char c,
				     const char **unclosed)
{
	const char *rest;
	bool matched;

	switch (*p) {
	case '?':
		return p + 1;
	case '[':
		if (*unclosed && p >= *unclosed)
			break;
		rest = match_class(p + 1, c, &matched);
		if (rest)
			return matched ? rest : NULL;
		*unclosed = p;
		break;
	case '\\':
		if (p[1])
			p++;
		break;
	}
	return *p == c ? p + 1 : NULL;
}

/* Backs up only to the last '*': an earlier one can never do better. No site here: the filters
 * of events call it, on the patching path too. */
notrace bool glob_match(const char *pattern, const char *text)
{
	const char *star = NULL, *star_text = NULL, *unclosed = NULL;

	while (*text) {
		const char *rest = NULL;

		if (*pattern == '*') {
			star = ++pattern;
			star_text = text;
			continue;
		}
		if (*pattern)
			rest = match_one(pattern, *text, &unclosed);
		if (rest) {
			pattern = rest;
			text++;
		} else if (star) {
			pattern = star;
			text = ++star_text;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
