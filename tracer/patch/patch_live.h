/*
 * What the strategies that stop nobody share: sites are switched in chunks, so
 * that interrupts are never off for longer than one chunk takes, whatever the
 * size of the batch; and each step ends with every CPU synchronising. All of it
 * under trace_mutex.
 */
#ifndef TRACER_PATCH_LIVE_H
#define TRACER_PATCH_LIVE_H

#include <arch/arch_trace.h>
#include <kernel/symbols.h>
#include <tracer/patch/patch.h>

#define PATCH_CHUNK 64 /* sites */

/* ---- Steps --------------------------------------------------------------- */

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
 * What the CPU that wrote the sites of a struct patch_batch does before any other
 * CPU is told to synchronise. Where each CPU keeps its own caches (MIPS), the others
 * would otherwise refill from memory that does not have the new text yet (H32).
 * Nothing on machines whose arch_sync_each_site is false. No site.
 */
void patch_write_back(const struct patch_batch *b);

/* This CPU's part of a sync, of the sites of a struct patch_batch. No site. */
void patch_sync_batch(void *batch);

/* For SABOTAGE_EARLY (patch_log.h): all synchronise, but before the stores. */
void patch_sync_early(void);

/* For a strategy's use: it wrote text with interrupts off for that long. */
void patch_count_window(u64 ticks);

/* ---- Breakpoints --------------------------------------------------------- */

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
static inline void patch_chunk_add(struct patch_chunk *c, unsigned long live,
				   bool on)
{
	u32 entry = (u32)(live - (unsigned long)_text) << 1 | on;
	unsigned int i = c->count++;

	/* Batches come in ascending order, and then nothing moves; but a trap
	 * that searches an unsorted vector kills (H14), so nobody's word is
	 * taken for it. */
	for (; i && c->entry[i - 1] > entry; i--)
		c->entry[i] = c->entry[i - 1];
	c->entry[i] = entry;
}

/*
 * Is pc a live instruction of the first `count` of the chunk, which must be
 * ascending? Then also *on. Any context, no site.
 */
bool patch_chunk_find(const struct patch_chunk *c, u32 count, unsigned long pc,
		      bool *on);

/*
 * Carry out one step of breakpoints on all of a chunk: write, then have every
 * online CPU synchronise. When it returns all have. Context: a task, interrupts
 * on.
 */
void patch_chunk_step(struct patch_chunk *c, enum patch_step step);

/* After the last step: write once more what it wrote, if that must be. */
void patch_chunk_settle(const struct patch_chunk *c, enum patch_step last);

/* Switch a site by breakpoint, together with others: at the latest in flush. */
void patch_break_add(unsigned long live, bool on);
void patch_break_flush(void);

/*
 * Is there a breakpoint of a batch at address pc? Then also *on, the state that
 * the site is to get. For patch_trap(): any context, no site.
 */
bool patch_break_find(unsigned long pc, bool *on);

#endif
