/* SPDX-License-Identifier: MIT */
/*
 * Shared by the strategies that stop no CPU. Sites are switched in chunks, so interrupts are never
 * off for longer than one chunk takes, even in a large batch. Each step ends with every CPU
 * synchronising. All of it under trace_mutex.
 */
#ifndef TRACER_PATCH_LIVE_H
#define TRACER_PATCH_LIVE_H

#include <arch/arch_trace.h>
#include <kernel/image/symbols.h>
#include <tracer/patch/patch.h>
#include <tracer/patch/patch_check.h>

/* ---- Steps --------------------------------------------------------------- */

extern const char *const patch_step_words[]; /* by enum patch_step */

/* Before a step's stores. */
void patch_step_begin(enum patch_step step, unsigned int sites);

/*
 * After them: have every online CPU run sync(arg), which is to synchronise its
 * fetch. When it returns all have. Context: a task, interrupts on.
 */
void patch_step_end(enum patch_step step, void (*sync)(void *arg), void *arg);

/* Must the stores of the last step be made again? See patch_live.c. */
bool patch_must_settle(void);

/*
 * The CPU that wrote sites, each with its arch_text_sync_site(), calls this before any other CPU
 * is told to synchronise. Where each CPU keeps its own caches (MIPS), the others would otherwise
 * refill from memory that does not have the new text yet (H32). Nothing on machines whose
 * arch_sync_each_site is false. No site.
 */
void patch_write_back(void);

/* This CPU's part of a sync, of the sites of a struct patch_batch. No site. */
void patch_sync_batch(void *batch);

/*
 * A batch in parts, in each of which a site changes: the next one behind *part, false if there is
 * none. Of the bitmaps, 32 sites a word. One store a site: more than PATCH_CHUNK take as long as
 * one step of those.
 */
#define PATCH_PART_WORDS 4
static inline struct patch_batch patch_no_part(const struct patch_batch *b)
{
	return (struct patch_batch){ .set = b->set,
				     .hi = b->lo,
				     .changes = b->changes };
}

static inline bool patch_next_part(const struct patch_batch *b,
				   struct patch_batch *part)
{
	u32 diff = 0;

	while (!diff && part->hi < b->hi) {
		part->lo = part->hi;
		part->hi = min(part->lo + PATCH_PART_WORDS, b->hi);
		for (unsigned int w = part->lo; w < part->hi; w++)
			diff |= part->changes[w];
	}
	return diff;
}

/* For the event patch_sync: this CPU has synchronised. No site. */
void patch_tell_sync(unsigned int sites);

/* A strategy wrote text with interrupts off for so many ticks of arch_clock(). And the most that
 * one did. */
void patch_count_window(u64 ticks);
u64 patch_longest_window(void);

/* Log a store to each site of a batch, or of a part. words: to those of arch_live_word() alone.
 * back: of the state that they had. */
void patch_log_stores(const struct patch_batch *part,
		      enum patch_store_kind kind, bool words, bool back);

/* For fault_sync_early (patch_log.h): all synchronise, but before the stores. */
void patch_sync_early(void);

#endif
