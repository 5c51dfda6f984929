/*
 * Chunks: writing one step of one, and having every CPU synchronise. Nobody is
 * stopped: other CPUs fetch these instructions while they are written.
 */
#include <tracer/patch_live.h>

#include <kernel/cpu.h>
#include <kernel/patch_path.h>
#include <kernel/string.h>
#include <tracer/patch_log.h>

void patch_chunk_add(struct patch_chunk *c, unsigned long live, bool on)
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

static always_inline void write_one(unsigned long live, bool on, long delta,
				    enum patch_step step)
{
	u64 bytes = on ? arch_live_on(live) : arch_live_off(live);

	switch (step) {
	case PATCH_BREAK:
		arch_unit_write(live + delta, arch_break_insn);
		break;
	case PATCH_TAIL:
		arch_tail_write(live + delta, bytes);
		break;
	case PATCH_FIRST:
		arch_unit_write(live + delta, bytes);
		break;
	case PATCH_WORD:
		arch_live_write_word(live + delta, bytes);
		break;
	}
}

static always_inline void write_all(const struct patch_chunk *c, long delta,
				    enum patch_step step)
{
	const u32 *e;

	for (e = c->entry; e < c->entry + c->count; e++)
		write_one(patch_entry_live(*e), *e & 1, delta, step);
}

/* As patch_chunk_write() has written. */
static void log_stores(const struct patch_chunk *c, enum patch_log_store kind)
{
	const u32 *e;

	for (e = c->entry; e < c->entry + c->count; e++)
		patch_log_add(LOG_STORE, *e >> 1, kind | (*e & 1) * STORE_ON);
}

/* The step is decided once, not for each site. */
u64 patch_chunk_write(const struct patch_chunk *c, enum patch_step step)
{
	u64 start = arch_clock();
	long delta = arch_text_open();

	switch (step) {
	case PATCH_BREAK:
		write_all(c, delta, PATCH_BREAK);
		break;
	case PATCH_TAIL:
		write_all(c, delta, PATCH_TAIL);
		break;
	case PATCH_FIRST:
		write_all(c, delta, PATCH_FIRST);
		break;
	case PATCH_WORD:
		write_all(c, delta, PATCH_WORD);
		break;
	}
	arch_text_close();
	return arch_clock() - start;
}
PATCH_ROOT(patch_chunk_write);

static void sync_here(void *arg)
{
	const struct patch_chunk *c = arg;
	const u32 *e;

	if (patch_sabotage_skips())
		return;
	patch_log(LOG_SYNC, 0, 0);
	if (arch_sync_each_site)
		for (e = c->entry; e < c->entry + c->count; e++)
			arch_text_sync_site(patch_entry_live(*e));
	arch_text_sync();
}
PATCH_ROOT(sync_here);

/*
 * A CPU is asked if it was online when cpu_call() looked, which is after the
 * stores and this fence; one that comes online sets its bit, has a full fence
 * (cpu_secondary_main()) and then synchronises. So either cpu_call() sees the
 * bit, or that CPU's own synchronisation sees the stores (H19).
 *
 * cpu_call() interrupts every CPU, and traps run with interrupts off: so when it
 * returns, every trap has ended that was taken before.
 */
static void sync_all(const struct patch_chunk *c)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	cpu_call(~0u, sync_here, (void *)c);
}

static void sync_bare(void *arg)
{
	(void)arg;
	patch_log(LOG_SYNC, 0, 0);
	arch_text_sync();
}

void patch_sync_early(void)
{
	cpu_call(~0u, sync_bare, NULL);
}

void (*patch_step_hook)(enum patch_step step, bool synced);

static void step_done(enum patch_step step, bool synced)
{
	if (patch_step_hook)
		patch_step_hook(step, synced);
}

/*
 * QEMU drops its translations of an instruction shortly before it stores to it.
 * A CPU that translates in between keeps what was there before for ever, no
 * matter how it synchronises; the next store to the instruction ends that. After
 * the last step there is none, so the same bytes are stored once more: no CPU
 * translates any longer what it began before it answered the interrupt of the
 * synchronisation. On a machine without that fault these stores change nothing.
 */
void patch_chunk_settle(const struct patch_chunk *c, enum patch_step last)
{
	patch_count_window(patch_chunk_write(c, last));
	if (READ_ONCE(patch_log_on))
		log_stores(c, STORE_AGAIN);
}

static const u8 store_kind[] = {
	[PATCH_BREAK] = STORE_BREAK,
	[PATCH_TAIL] = STORE_TAIL,
	[PATCH_FIRST] = STORE_FIRST,
	[PATCH_WORD] = STORE_WORD,
};

void patch_chunk_step(const struct patch_chunk *c, enum patch_step step)
{
	patch_log(LOG_STEP, step, c->count);
	if (READ_ONCE(patch_sabotage) == SABOTAGE_EARLY)
		patch_sync_early();
	patch_count_window(patch_chunk_write(c, step));
	if (READ_ONCE(patch_log_on))
		log_stores(c, store_kind[step]);
	step_done(step, false);
	sync_all(c);
	step_done(step, true);
}
