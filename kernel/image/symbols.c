/* SPDX-License-Identifier: MIT */
/* Look-ups in the table that tools/mksites makes from the linked image. */
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>

static notrace void symbol_fill(struct symbol *s, unsigned int i)
{
	s->index = i;
	s->name = symbol_names + symbol_name[i];
	s->start = (unsigned long)_text + symbol_offset[i];
	s->size = symbol_size[i];
}

bool symbol_get(unsigned int index, struct symbol *s)
{
	if (index >= symbol_count)
		return false;
	symbol_fill(s, index);
	return true;
}

/* The last symbol at or below addr, by bisection. Then: is it long enough? */
notrace bool symbol_at(unsigned long addr, struct symbol *s)
{
	unsigned int lo = 0, hi = symbol_count;
	unsigned long offset = addr - (unsigned long)_text;

	if (addr < (unsigned long)_text || addr >= (unsigned long)_etext)
		return false;
	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (symbol_offset[mid] <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || offset - symbol_offset[lo - 1] >= symbol_size[lo - 1])
		return false;
	symbol_fill(s, lo - 1);
	return true;
}

bool symbol_find(const char *name, struct symbol *s)
{
	unsigned int lo = 0, hi = symbol_count;
	unsigned int same_lo = 0, same_hi = 0; /* letters of the names around */

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2, same = min(same_lo, same_hi);
		const char *there =
			symbol_names + symbol_name[symbol_by_name[mid]];

		for (; there[same] == name[same]; same++)
			if (!name[same])
				return symbol_get(symbol_by_name[mid], s);
		if ((u8)there[same] < (u8)name[same]) {
			lo = mid + 1;
			same_lo = same;
		} else {
			hi = mid;
			same_hi = same;
		}
	}
	return false;
}
