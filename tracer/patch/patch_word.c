/* SPDX-License-Identifier: MIT */
/*
 * Strategy `word`, for sites where one store replaces the live instruction as a whole
 * for every CPU that fetches it: that store, and then every CPU synchronises. Until a
 * CPU has, it runs the old instruction or the new one, and never half of each. There
 * is no trap, so there is no vector: the bitmaps are gone through in parts.
 *
 * Sites where the architecture does not promise that, misaligned ones above all
 * (H10), are switched by breakpoint in the same batch, and counted.
 */
#include <tracer/patch/patch_live.h>

#include <kernel/patch_path.h>
#include <tracer/patch/patch_log.h>
#include <tracer/patch/patch_break.h>

/* The sites of a part that have to be left to breakpoints: bits as in the
 * bitmaps. */
struct left {
	unsigned int count;
	u32 bits[PATCH_PART_WORDS];
};

static void leave_for_fallback(struct left *left,
			       const struct patch_batch *part, const u32 *entry)
{
	unsigned int i = entry - &part->set->table[32 * part->lo];

	left->bits[i / 32] |= 1u << i % 32;
	left->count++;
}

static always_inline void word_write_kind(const struct patch_batch *part,
					  struct left *left, long delta,
					  bool on, bool jumps)
{
	unsigned int w;
	const u32 *entry;
	u32 diff;

	patch_for_each (part, w, entry, diff, on) {
		struct live l = live_of_kind(part->set, entry, jumps);

		if (!arch_live_word(l)) {
			leave_for_fallback(left, part, entry);
			continue;
		}
		arch_live_write(l, delta, arch_live_bytes(l, on));
		if (arch_sync_each_site)
			arch_text_sync_site(l.at);
	}
}

static void word_write(const struct patch_batch *part, struct left *left)
{
	long delta = arch_text_open();

	PATCH_BY_STATE(part, word_write_kind, part, left, delta);
	arch_text_close();
	patch_write_back();
}
PATCH_ROOT(word_write);

static void word_store(const struct patch_batch *part,
		       enum patch_store_kind kind, struct left *left)
{
	u64 start = arch_clock();

	*left = (struct left){ 0 };
	word_write(part, left);
	patch_count_window(arch_clock() - start);
	if (READ_ONCE(patch_log_on))
		patch_log_stores(part, kind, true, false);
}

static void add_left(const struct patch_batch *part, const struct left *left)
{
	const struct live_set *set = part->set;
	unsigned int first = 32 * part->lo;

	for (unsigned int i = 0; i < 32 * PATCH_PART_WORDS; i++)
		if (left->bits[i / 32] >> i % 32 & 1)
			patch_break_add(live_of_entry(set,
						      &set->table[first + i]),
					!site_test(set->enabled, first + i));
}

static unsigned int word_part(struct patch_batch *part)
{
	struct left left;

	patch_step_begin(PATCH_WORD, 32 * (part->hi - part->lo));
	word_store(part, STORE_WORD, &left);
	patch_step_end(PATCH_WORD, patch_sync_batch, part);
	if (patch_must_settle())
		word_store(part, STORE_AGAIN, &left);
	if (left.count)
		add_left(part, &left);
	return left.count;
}

static int word_carry_out(struct patch_batch *b)
{
	struct patch_batch part = patch_no_part(b);

	while (patch_next_part(b, &part))
		b->fallback += word_part(&part);
	patch_break_flush();
	return 0;
}

static const char *word_strategy_refused(void)
{
	return arch_word_refused;
}

PATCH_STRATEGY(word, .name = "word", .refused = word_strategy_refused,
	       .carry_out = word_carry_out);
