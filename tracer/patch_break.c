/*
 * Strategy `breakpoint`: works whatever a store of the live instruction looks
 * like to those who fetch it, and stops nobody. A live instruction is a first
 * unit, which one store changes, and a tail. For each chunk of the batch:
 *
 *	step		first unit	tail	a CPU that runs the site
 *	(before)	old		old	runs the old instruction
 *	PATCH_BREAK	breakpoint	old	the old one, or traps
 *	  all sync				traps
 *	PATCH_TAIL	breakpoint	new	traps: the tail is not looked at
 *	  all sync
 *	PATCH_FIRST	new		new	traps, or runs the new one
 *	  all sync				runs the new instruction
 *
 * Each "all sync" keeps any CPU from seeing two of the stores in the wrong order:
 * without the first, an old first unit with a new tail; without the second, a
 * new first unit with an old tail. Where the unit is the whole instruction there
 * is no tail, and no step for it.
 *
 * The trap acts as the site's NEW state from the first breakpoint on: were it to
 * act as a NOP, calls would get lost while the state is "on" all the time (H13).
 *
 * The vector that the trap searches is published before the first breakpoint can
 * be seen, and stays until every CPU has synchronised after the last step: by
 * then no CPU can fetch a breakpoint any more, and since traps run with interrupts
 * off, which the synchronisation's interrupt waits for, none is still in one.
 */
#include <tracer/patch_live.h>

#include <kernel/patch_path.h>
#include <tracer/patch_log.h>

static struct patch_chunk chunk;

/* Of chunk, how many a trap may look at: none while it is being filled. */
static u32 published;

bool patch_break_find(unsigned long pc, bool *on)
{
	unsigned int lo = 0, hi, mid;
	u32 wanted = (u32)(pc - (unsigned long)_text) << 1;

	/*
	 * The breakpoint was fetched, now the vector is loaded: the fence keeps
	 * the loads behind the fetch. Pairs with the release in publish().
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	hi = READ_ONCE(published);
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (chunk.entry[mid] < wanted)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == READ_ONCE(published) || chunk.entry[lo] >> 1 != wanted >> 1)
		return false;
	*on = chunk.entry[lo] & 1;
	return true;
}

/* Release: the entries before the count, both before any breakpoint, which
 * arch_text_open() does not order. Pairs with the fence in patch_break_find(). */
static void publish(u32 count)
{
	__atomic_store_n(&published, count, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* ---- Steps ------------------------------------------------------------------ */

static always_inline void write_one(unsigned long live, bool on, long delta,
				    enum patch_step step)
{
	if (step == PATCH_BREAK)
		arch_unit_write(live + delta, arch_break_insn);
	else if (step == PATCH_TAIL)
		arch_tail_write(live + delta,
				on ? arch_live_on(live) : arch_live_off(live));
	else
		arch_unit_write(live + delta,
				on ? arch_live_on(live) : arch_live_off(live));
}

static always_inline void write_all(enum patch_step step)
{
	long delta = arch_text_open();
	const u32 *e, *end = chunk.entry + chunk.count;

	for (e = chunk.entry; e < end; e++)
		write_one(patch_entry_live(*e), *e & 1, delta, step);
	arch_text_close();
}

/* The step is decided once, not for each site. */
static void break_write(enum patch_step step)
{
	if (step == PATCH_BREAK)
		write_all(PATCH_BREAK);
	else if (step == PATCH_TAIL)
		write_all(PATCH_TAIL);
	else
		write_all(PATCH_FIRST);
}
PATCH_ROOT(break_write);

static void log_stores(enum patch_log_store kind)
{
	for (unsigned int i = 0; i < chunk.count; i++)
		patch_log_store(patch_entry_live(chunk.entry[i]), kind,
				chunk.entry[i] & 1);
}

static void store(enum patch_step step, enum patch_log_store kind)
{
	u64 start = arch_clock();

	break_write(step);
	patch_count_window(arch_clock() - start);
	if (READ_ONCE(patch_log_on))
		log_stores(kind);
}

static void break_sync(void *arg)
{
	(void)arg;
	if (patch_sabotage_skips())
		return;
	patch_log(LOG_SYNC, 0, 0);
	if (arch_sync_each_site)
		for (unsigned int i = 0; i < chunk.count; i++)
			arch_text_sync_site(patch_entry_live(chunk.entry[i]));
	arch_text_sync();
}
PATCH_ROOT(break_sync);

static void carry_out_step(enum patch_step step, enum patch_log_store kind)
{
	patch_step_begin(step, chunk.count);
	store(step, kind);
	patch_step_end(step, break_sync, NULL);
}

void patch_break_flush(void)
{
	if (!chunk.count)
		return;
	publish(chunk.count);
	carry_out_step(PATCH_BREAK, STORE_BREAK);
	if (arch_break_length < arch_live_length)
		carry_out_step(PATCH_TAIL, STORE_TAIL);
	carry_out_step(PATCH_FIRST, STORE_FIRST);
	if (patch_must_settle())
		store(PATCH_FIRST, STORE_AGAIN);
	publish(0);
	chunk.count = 0;
}

void patch_break_add(unsigned long live, bool on)
{
	if (chunk.count == PATCH_CHUNK)
		patch_break_flush();
	patch_chunk_add(&chunk, live, on);
}

static int break_carry_out(struct patch_batch *b)
{
	const u32 *entry;
	unsigned int w;
	u32 diff, on;

	patch_for_each (b, w, entry, diff, on)
		patch_break_add(arch_site_live(site_entry_address(entry)),
				on & 1);
	patch_break_flush();
	return 0;
}
PATCH_STRATEGY(breakpoint, .name = "breakpoint", .carry_out = break_carry_out);
