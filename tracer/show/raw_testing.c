/* SPDX-License-Identifier: MIT */
/* A walk over the entries of a binary page: raw_testing.h. */
#include <tracer/show/raw_testing.h>

#include <kernel/mm/page.h>
#include <kernel/test/victim.h>
#include <tracer/show/raw.h>

struct page_walk raw_walk;

u64 raw_number_at(const char *p, unsigned int size)
{
	bool little =
		(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != raw_walk.swapped;
	u64 v = 0;

	for (unsigned int i = 0; i < size; i++)
		v |= (u64)(u8)p[little ? i : size - 1 - i] << 8 * i;
	return v;
}

static u32 word_at(const char *p)
{
	return raw_number_at(p, sizeof(u32));
}

bool raw_next_entry(struct ktest_run *t)
{
	const bool little =
		(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != raw_walk.swapped;
	u32 word, type, delta;

	if (raw_walk.at == raw_walk.end)
		return false;
	word = word_at(raw_walk.at);
	type = little ? word & 31 : word >> 27;
	delta = little ? word >> 5 : word & ((1u << 27) - 1);
	raw_walk.at += 4;
	if (type == 30) {
		raw_walk.time += delta + ((u64)word_at(raw_walk.at) << 27);
		raw_walk.at += 4;
		return raw_next_entry(t);
	}
	raw_walk.time += delta;
	KEXPECT(t, type <= 28);
	raw_walk.len = type ? 4 * type : word_at(raw_walk.at) - 4;
	raw_walk.payload = raw_walk.at + (type ? 0 : 4);
	raw_walk.at = raw_walk.payload + raw_walk.len;
	KEXPECT(t, raw_walk.at <= raw_walk.end);
	return raw_walk.at <= raw_walk.end;
}

u64 raw_walk_begin(struct ktest_run *t, const char *page)
{
	unsigned long commit;

	raw_walk.time = raw_number_at(page, 8);
	commit = raw_number_at(page + 8, sizeof(commit));
	raw_walk.at = page + RAW_HEAD;
	raw_walk.end = raw_walk.at + (commit & 0xfff);
	KEXPECT(t, raw_walk.end <= page + PAGE_SIZE);
	if (!(commit & RAW_LOST))
		return 0;
	KEXPECT(t, commit & RAW_LOST_COUNT);
	return raw_number_at(raw_walk.end, sizeof(commit));
}

void raw_call_victim(unsigned int times)
{
	for (unsigned int i = 0; i < times; i++)
		victim_call(i);
}
