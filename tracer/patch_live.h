/*
 * What the strategies that stop nobody share: sites are switched in chunks, so
 * that interrupts are never off for longer than one chunk takes, whatever the
 * size of the batch. All of it under trace_mutex.
 */
#ifndef TRACER_PATCH_LIVE_H
#define TRACER_PATCH_LIVE_H

#include <arch/arch_trace.h>
#include <kernel/symbols.h>
#include <tracer/patch.h>

#define PATCH_CHUNK 64

struct patch_chunk {
	unsigned int count;
	/* Ascending: the live instruction's offset from _text << 1 | on. One
	 * word, so that a trap that looks reads an address and its own state. */
	u32 entry[PATCH_CHUNK];
};

static inline unsigned long patch_entry_live(u32 entry)
{
	return (unsigned long)_text + (entry >> 1);
}

/* Put a live instruction in its place, in whatever order they come. There must
 * be room. */
void patch_chunk_add(struct patch_chunk *c, unsigned long live, bool on);

/*
 * Carry out one step on all of a chunk: write, then have every online CPU
 * synchronise. When it returns all have. Context: a task, interrupts on.
 */
void patch_chunk_step(const struct patch_chunk *c, enum patch_step step);

/* After the last step: write once more what it wrote. */
void patch_chunk_settle(const struct patch_chunk *c, enum patch_step last);

/* For SABOTAGE_EARLY (patch_log.h): what comes after the write, before it. */
void patch_sync_early(void);

/* The writing alone, through the alias; how long that took, arch_clock(). */
u64 patch_chunk_write(const struct patch_chunk *c, enum patch_step step);

/* Switch a site by breakpoint, together with others: at the latest in flush. */
void patch_break_add(unsigned long live, bool on);
void patch_break_flush(void);

/*
 * Is there a breakpoint of a batch at address pc? Then also *on, the state that
 * the site is to get. For patch_trap(): any context, no site.
 */
bool patch_break_find(unsigned long pc, bool *on);

#endif
