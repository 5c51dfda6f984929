/* SPDX-License-Identifier: MIT */
/*
 * Strategy `bypass`, as djprobe did it (seed 3): breakpoints lead every CPU around the sites of
 * the whole batch, until no task is left that stands inside one. Then what stands behind the
 * breakpoints may be anything, so sites of several instructions can change.
 *
 *	step		first unit	behind it	a CPU that runs the site
 *	(before)	old		old		runs the old instructions
 *	PATCH_BREAK	breakpoint	old		the old ones, or is led around
 *	  all sync					is led around
 *	  no task stands behind the first instruction
 *	PATCH_TAIL	breakpoint	new		is led around
 *	  all sync
 *	PATCH_FIRST	new		new		is led around, or runs the new ones
 *	  all sync					runs the new instructions
 *
 * The trap acts as the OLD state, the whole of it: by arch_break_resume(). A task that has not
 * gone in one second is named, and the old first units come back. Until then no call was other
 * than before, so a batch that is taken back has changed nothing.
 *
 * The trap finds the batch's sites by its bitmap. That is published before the first breakpoint,
 * and withdrawn when every CPU has synchronised after the last step (patch_break.c says why).
 */
#include <tracer/patch/patch_bypass.h>

#include <kernel/errno.h>
#include <kernel/patch_path.h>
#include <tracer/patch/patch_break.h>
#include <tracer/patch/patch_live.h>
#include <tracer/patch/patch_log.h>

#define BYPASS_WAIT_NS NSEC_PER_SEC

static const struct patch_batch *led; /* the batch that CPUs are led around */

/* Pairs with the fence in patch_bypass_find(). arch_text_open() orders nothing. */
static void publish_batch(const struct patch_batch *b)
{
	__atomic_store_n(&led, b, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

bool patch_bypass_find(const struct live_set *set, unsigned int i, bool *on)
{
	const struct patch_batch *b;

	/* The breakpoint was read before: see patch_break_find(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	b = READ_ONCE(led);
	if (!b || b->set != set || i / 32 < b->lo || i / 32 >= b->hi ||
	    !site_test(b->changes, i))
		return false;
	*on = site_test(set->enabled, i);
	return true;
}

/* ---- Steps ------------------------------------------------------------------ */

/* A step, or back: the first units of the old state. */
struct bypass_step {
	enum patch_step step;
	enum patch_store_kind kind;
	bool back;
};

static always_inline void bypass_write_kind(const struct patch_batch *part,
					    enum patch_step step, bool back,
					    long delta, bool on, bool jumps)
{
	const u32 *entry;
	unsigned int w;
	u32 diff;

	patch_for_each (part, w, entry, diff, on) {
		struct live l = live_of_kind(part->set, entry, jumps);

		patch_break_write(l, on != back, delta, step);
		if (arch_sync_each_site)
			arch_text_sync_site(l.at);
	}
}

static always_inline void bypass_write_step(const struct patch_batch *part,
					    enum patch_step step, bool back)
{
	long delta = arch_text_open();

	PATCH_BY_STATE(part, bypass_write_kind, part, step, back, delta);
	arch_text_close();
	patch_write_back();
}

static noinline void bypass_write(const struct patch_batch *part,
				  const struct bypass_step *s)
{
	if (s->step == PATCH_BREAK)
		bypass_write_step(part, PATCH_BREAK, false);
	else if (s->step == PATCH_TAIL)
		bypass_write_step(part, PATCH_TAIL, false);
	else
		bypass_write_step(part, PATCH_FIRST, s->back);
}
PATCH_ROOT(bypass_write);

static void bypass_store(const struct patch_batch *part,
			 const struct bypass_step *s,
			 enum patch_store_kind kind)
{
	u64 start = arch_clock();

	bypass_write(part, s);
	patch_count_window(arch_clock() - start);
	if (READ_ONCE(patch_log_on))
		patch_log_stores(part, kind, false, s->back);
}

/*
 * The store that is made again: patch_must_settle(). Here after the breakpoints, too: a CPU that
 * kept the old first instruction would go into the site after the wait.
 */
static void bypass_step(const struct patch_batch *b,
			const struct bypass_step *s)
{
	struct patch_batch part = patch_no_part(b);

	while (patch_next_part(b, &part)) {
		patch_step_begin(s->step, 32 * (part.hi - part.lo));
		bypass_store(&part, s, s->kind);
		patch_step_end(s->step, patch_sync_batch, &part);
		if (s->step != PATCH_TAIL && patch_must_settle())
			bypass_store(&part, s, STORE_AGAIN);
	}
}

/* ---- The wait ----------------------------------------------------------------- */

/* Does pc stand behind the first byte of a site that changes? On the first one is before it. */
static bool inside_led(unsigned long pc)
{
	unsigned int i = site_lower_bound(pc);
	struct live l;

	if (!i-- || i / 32 < led->lo || i / 32 >= led->hi ||
	    !site_test(led->changes, i))
		return false;
	l = live_of_site(site_address(i));
	return pc > l.at && pc - l.at < (fault_happens(&fault_bypass_wide) ?
						 256 :
						 arch_live_length);
}

/* A jump label is one instruction: no task is ever inside. */
static int wait_for_tasks(struct patch_batch *b)
{
	static struct trace_left left;
	int err = 0;

	if (fault_happens(&fault_bypass_loose))
		return 0;
	if (b->set == &live_calls)
		err = trace_quiesce_code(inside_led, BYPASS_WAIT_NS, &left);
	if (err)
		b->left = &left;
	else
		patch_log(LOG_CLEAR, 0, 0);
	return err;
}

static bool has_tail(const struct patch_batch *b)
{
	return (b->set->distance ? arch_jump_length : arch_live_length) >
	       arch_break_length;
}

static int bypass_carry_out(struct patch_batch *b)
{
	static const struct bypass_step lead = { PATCH_BREAK, STORE_BREAK,
						 false },
					tail = { PATCH_TAIL, STORE_TAIL,
						 false },
					first = { PATCH_FIRST, STORE_FIRST,
						  false },
					back = { PATCH_FIRST, STORE_BACK,
						 true };
	int err;

	patch_log(LOG_BYPASS, 0, 0);
	publish_batch(b);
	bypass_step(b, &lead);
	err = wait_for_tasks(b);
	if (!err && has_tail(b))
		bypass_step(b, &tail);
	bypass_step(b, err ? &back : &first);
	publish_batch(NULL);
	return err;
}
PATCH_STRATEGY(bypass, .name = "bypass", .carry_out = bypass_carry_out);
