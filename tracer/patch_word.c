/*
 * Strategy `word`: where one store replaces the live instruction as a whole for
 * everybody who fetches it, that store, and then every CPU synchronises. Until it
 * has, a CPU runs the old instruction or the new one; half of each never exists.
 *
 * Sites where the architecture promises no such thing, misaligned ones above all
 * (H10), are switched by breakpoint, in the same batch, and counted.
 */
#include <tracer/patch_live.h>

static struct patch_chunk chunk;

static void word_flush(void)
{
	if (!chunk.count)
		return;
	patch_chunk_step(&chunk, PATCH_WORD);
	patch_chunk_settle(&chunk, PATCH_WORD);
	chunk.count = 0;
}

static void word_add(unsigned long live, bool on)
{
	if (chunk.count == PATCH_CHUNK)
		word_flush();
	patch_chunk_add(&chunk, live, on);
}

static int word_carry_out(struct patch_batch *b)
{
	const u32 *entry;
	unsigned int w;
	u32 diff, on;

	patch_for_each (b, w, entry, diff, on) {
		unsigned long live = arch_site_live(site_entry_address(entry));

		if (arch_live_word(live)) {
			word_add(live, on & 1);
			continue;
		}
		patch_break_add(live, on & 1);
		b->fallback++;
	}
	word_flush();
	patch_break_flush();
	return 0;
}
PATCH_STRATEGY(word, .name = "word", .refused = arch_word_refused,
	       .carry_out = word_carry_out);
