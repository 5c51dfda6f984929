/* SPDX-License-Identifier: MIT */
/* Binary pages for a reader of the other byte order: a program of the host's (kernel/p9). */
#include <tracer/show/raw_swap.h>

#include <kernel/lib/string.h>
#include <tracer/show/lines.h>
#include <tracer/show/raw.h>

#define DELTA_MASK ((1u << RAW_DELTA_BITS) - 1)
#define TYPE_BITS (32 - RAW_DELTA_BITS)
#define TYPE_MASK ((1u << TYPE_BITS) - 1)

/* Swap a word, and return the number that it is. */
static u32 swap_word(char *at)
{
	u32 word;

	memcpy(&word, at, sizeof(word));
	raw_swap(at, sizeof(word));
	return word;
}

/* The type stands in the lowest bits of a little-endian word, and in the highest of the other. */
static u32 swap_header(char *at)
{
	u32 word, type, delta;

	memcpy(&word, at, sizeof(word));
	type = STORED_BIG_ENDIAN ? word >> RAW_DELTA_BITS : word & TYPE_MASK;
	delta = STORED_BIG_ENDIAN ? word & DELTA_MASK : word >> TYPE_BITS;
	word = STORED_BIG_ENDIAN ? type | delta << TYPE_BITS :
				   type << RAW_DELTA_BITS | delta;
	memcpy(at, &word, sizeof(word));
	raw_swap(at, sizeof(word));
	return type;
}

/* Returns the next entry. */
static char *swap_entry(char *at)
{
	const struct trace_lines *lines;
	u32 type = swap_header(at), len = 4 * type;

	at += sizeof(u32);
	if (type == RAW_TYPE_EXTEND || !type) {
		len = swap_word(at) - sizeof(u32);
		at += sizeof(u32);
	}
	if (type == RAW_TYPE_EXTEND)
		return at;
	for_each_registered (lines, trace_lines)
		if (lines->swap)
			lines->swap(at);
	return at + len;
}

void raw_page_swap(char *page)
{
	char *at = page + RAW_HEAD, *end;
	unsigned long commit;

	memcpy(&commit, page + sizeof(u64), sizeof(commit));
	end = at + (commit & (PAGE_SIZE - 1));
	raw_swap(page, sizeof(u64));
	raw_swap(page + sizeof(u64), sizeof(commit));
	if (commit & RAW_LOST_COUNT)
		raw_swap(end, sizeof(commit));
	while (at < end)
		at = swap_entry(at);
}
