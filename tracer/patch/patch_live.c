/* SPDX-License-Identifier: MIT */
/* Steps of a strategy that stops no CPU: all CPUs synchronise after each. */
#include <tracer/patch/patch_live.h>

#include <kernel/cpu/cpu.h>
#include <kernel/event/event.h>
#include <kernel/patch_path.h>
#include <tracer/patch/patch_log.h>

static u64 window_max;

void patch_count_window(u64 ticks)
{
	window_max = max(window_max, ticks);
}

u64 patch_longest_window(void)
{
	return window_max;
}

void (*patch_step_hook)(enum patch_step step, bool synced);

static void tell_lab(enum patch_step step, bool synced)
{
	if (patch_step_hook)
		patch_step_hook(step, synced);
}

EVENT_WORD(step_break, "break");
EVENT_WORD(step_tail, "tail");
EVENT_WORD(step_first, "first");
EVENT_WORD(step_word, "word");

const char *const patch_step_words[] = {
	[PATCH_BREAK] = step_break,
	[PATCH_TAIL] = step_tail,
	[PATCH_FIRST] = step_first,
	[PATCH_WORD] = step_word,
};

void patch_step_begin(enum patch_step step, unsigned int sites)
{
	trace_patch_step(patch_step_words[step], sites);
	patch_log(LOG_STEP, step, sites);
	if (fault_happens(&fault_sync_early))
		patch_sync_early();
}

/*
 * A CPU is asked if it was online when cpu_call() looked, which is after the
 * stores and this fence. One that comes online sets its bit, has a full fence
 * (cpu_join()) and then synchronises. So either cpu_call() sees the bit, or that
 * CPU's own synchronisation sees the stores (H19).
 *
 * cpu_call() interrupts every CPU, and traps run with interrupts off: so when it
 * returns, every trap has ended that was taken before.
 */
void patch_step_end(enum patch_step step, void (*sync)(void *arg), void *arg)
{
	tell_lab(step, false);
	patch_fault_trap();
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	cpu_call(~0u, sync, arg);
	tell_lab(step, true);
}

static void log_stores_of(const struct patch_batch *part,
			  enum patch_store_kind kind, bool words, bool on,
			  bool back)
{
	const u32 *entry;
	unsigned int w;
	u32 diff;

	patch_for_each (part, w, entry, diff, on) {
		struct live l = live_of_entry(part->set, entry);

		if (!words || arch_live_word(l))
			patch_log_store(l.at, kind, on != back);
	}
}

void patch_log_stores(const struct patch_batch *part,
		      enum patch_store_kind kind, bool words, bool back)
{
	log_stores_of(part, kind, words, true, back);
	log_stores_of(part, kind, words, false, back);
}

static always_inline void sync_sites_of_kind(const struct patch_batch *b,
					     bool on, bool jumps)
{
	const u32 *entry;
	unsigned int w;
	u32 diff;

	patch_for_each (b, w, entry, diff, on)
		arch_text_sync_site(live_of_kind(b->set, entry, jumps).at);
}

static void sync_sites(const struct patch_batch *b)
{
	if (arch_sync_each_site)
		PATCH_BY_STATE(b, sync_sites_of_kind, b);
}

void patch_write_back(void)
{
	if (arch_sync_each_site)
		arch_text_sync();
}

/* A jump label would be text that changes on the path on which text changes. */
void patch_tell_sync(unsigned int sites)
{
	if (READ_ONCE(key_event_patch_sync.on))
		event_patch_sync(sites);
}

void patch_sync_batch(void *batch)
{
	const struct patch_batch *b = batch;

	if (patch_fault_no_sync())
		return;
	patch_log(LOG_SYNC, 0, 0);
	sync_sites(b);
	arch_text_sync();
	patch_tell_sync(b->on + b->off);
}
PATCH_ROOT(patch_sync_batch);

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

/*
 * QEMU drops its translations of an instruction shortly before it stores to it. A CPU that
 * translates in between keeps the old instruction for ever, no matter how it synchronises. The next
 * store to the instruction ends that. After the last step there is none, so the same bytes are
 * stored once more: by then no CPU is in a translation that it began before it answered the
 * interrupt of the synchronisation. On a machine without that fault these stores change nothing.
 * One CPU alone never translates while it stores.
 */
bool patch_must_settle(void)
{
	return cpus_online & (cpus_online - 1);
}
