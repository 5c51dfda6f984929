/* SPDX-License-Identifier: MIT */
/*
 * Strategy `breakpoint`: it works however a store of the live instruction looks to a CPU that
 * fetches it, and it stops no CPU. A live instruction is a first unit, which one store changes, and
 * a tail. For each chunk of the batch:
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
 * Each "all sync" keeps any CPU from seeing two of the stores in the wrong order.
 * Without the first one a CPU could see an old first unit with a new tail, without
 * the second one a new first unit with an old tail. Where the unit is the whole
 * instruction there is no tail, and no step for it.
 *
 * The trap acts as the site's NEW state from the first breakpoint on. If it acted as
 * a NOP, calls would get lost while the state is "on" all the time (H13).
 *
 * The vector that the trap searches is published before any CPU can see the first
 * breakpoint. It stays until every CPU has synchronised after the last step. By then
 * no CPU can fetch a breakpoint any more. No CPU is still in a trap either, because
 * traps run with interrupts off, and the synchronisation's interrupt waits for that.
 */
#include <tracer/patch/patch_live.h>

#include <kernel/event/event.h>
#include <kernel/patch_path.h>
#include <tracer/patch/patch_log.h>
#include <tracer/patch/patch_break.h>

static struct patch_chunk chunk;

/* Of chunk, how many a trap may look at: none while it is being filled. */
static u32 published;

bool patch_chunk_find(const struct patch_chunk *c, u32 count, unsigned long pc,
		      struct live *l, bool *on)
{
	unsigned int lo = 0, hi = count, mid;
	u32 wanted = (u32)(pc - (unsigned long)_text) << 1;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (c->site[mid].entry < wanted)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == count || c->site[lo].entry >> 1 != wanted >> 1)
		return false;
	*l = patch_chunk_live(c, lo);
	*on = c->site[lo].entry & 1;
	return true;
}

bool patch_break_find(unsigned long pc, struct live *l, bool *on)
{
	/*
	 * The breakpoint was fetched, now the vector is loaded: the fence keeps
	 * the loads behind the fetch. Pairs with the release in publish_breaks().
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return patch_chunk_find(&chunk, READ_ONCE(published), pc, l, on);
}

/* Release: the entries before the count, both before any breakpoint, which
 * arch_text_open() does not order. Pairs with the fence in patch_break_find(). */
static void publish_breaks(u32 count)
{
	__atomic_store_n(&published, count, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* ---- Steps ------------------------------------------------------------------ */

static always_inline void write_all(const struct patch_chunk *c,
				    enum patch_step step, bool jumps)
{
	long delta = arch_text_open();

	for (unsigned int i = 0, n = c->count; i < n; i++) {
		struct live l = patch_chunk_live(c, i);

		if (!jumps)
			l.target = LIVE_CALL;
		patch_break_write(l, c->site[i].entry & 1, delta, step);
		if (arch_sync_each_site)
			arch_text_sync_site(l.at);
	}
	arch_text_close();
	patch_write_back();
}

static always_inline void write_kind(const struct patch_chunk *c,
				     enum patch_step step)
{
	if (c->site[0].target != LIVE_CALL)
		write_all(c, step, true);
	else
		write_all(c, step, false);
}

/* The step and the kind are decided once, not for each site. */
static noinline void break_write(const struct patch_chunk *c,
				 enum patch_step step)
{
	if (step == PATCH_BREAK)
		write_all(c, PATCH_BREAK, false);
	else if (step == PATCH_TAIL)
		write_kind(c, PATCH_TAIL);
	else
		write_kind(c, PATCH_FIRST);
}
PATCH_ROOT(break_write);

static void store_step(const struct patch_chunk *c, enum patch_step step,
		       enum patch_store_kind kind)
{
	u64 start = arch_clock();

	break_write(c, step);
	patch_count_window(arch_clock() - start);
	/* Of batches alone: the lab has steps of its own. */
	if (READ_ONCE(patch_log_on) && c == &chunk)
		for (unsigned int i = 0; i < c->count; i++)
			patch_log_store(patch_chunk_live(c, i).at, kind,
					c->site[i].entry & 1);
}

static void break_sync(void *arg)
{
	const struct patch_chunk *c = arg;

	if (patch_fault_no_sync())
		return;
	patch_log(LOG_SYNC, 0, 0);
	if (arch_sync_each_site)
		for (unsigned int i = 0, n = c->count; i < n; i++)
			arch_text_sync_site(patch_chunk_live(c, i).at);
	arch_text_sync();
	patch_tell_sync(c->count);
}
PATCH_ROOT(break_sync);

void patch_chunk_step(struct patch_chunk *c, enum patch_step step)
{
	static const u8 kind[] = {
		[PATCH_BREAK] = STORE_BREAK,
		[PATCH_TAIL] = STORE_TAIL,
		[PATCH_FIRST] = STORE_FIRST,
	};

	patch_step_begin(step, c->count);
	store_step(c, step, kind[step]);
	patch_step_end(step, break_sync, c);
}

void patch_chunk_settle(const struct patch_chunk *c, enum patch_step last)
{
	if (patch_must_settle())
		store_step(c, last, STORE_AGAIN);
}

void patch_break_flush(void)
{
	if (!chunk.count)
		return;
	publish_breaks(chunk.count);
	patch_chunk_step(&chunk, PATCH_BREAK);
	if (live_length(patch_chunk_live(&chunk, 0)) > arch_break_length)
		patch_chunk_step(&chunk, PATCH_TAIL);
	patch_chunk_step(&chunk, PATCH_FIRST);
	patch_chunk_settle(&chunk, PATCH_FIRST);
	publish_breaks(0);
	chunk.count = 0;
}

static always_inline void add_one(struct live l, bool on)
{
	if (chunk.count == PATCH_CHUNK)
		patch_break_flush();
	patch_chunk_add(&chunk, l, on);
}

void patch_break_add(struct live l, bool on)
{
	add_one(l, on);
}

static always_inline void break_add_kind(const struct patch_batch *b, bool on,
					 bool jumps)
{
	const u32 *entry;
	unsigned int w;
	u32 diff;

	patch_for_each (b, w, entry, diff, on)
		add_one(live_of_kind(b->set, entry, jumps), on);
}

static int break_carry_out(struct patch_batch *b)
{
	PATCH_BY_STATE(b, break_add_kind, b);
	patch_break_flush();
	return 0;
}
PATCH_STRATEGY(breakpoint, .name = "breakpoint", .carry_out = break_carry_out);
