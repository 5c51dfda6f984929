/* SPDX-License-Identifier: MIT */
/* Batches: verification, and the books about the sites that are on. */
#include <tracer/patch/patch_live.h>
#include <tracer/patch/patch_log.h>
#include <tracer/base/instance.h>
#include <tracer/patch/patch_break.h>
#include <tracer/patch/patch_bypass.h>

#include <kernel/lib/bits.h>
#include <kernel/cpu/cpu.h>
#include <kernel/event/event.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/test/ktest.h>
#include <kernel/param.h>
#include <kernel/patch_path.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/panic.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/time.h>
#include <kernel/lock/mutex.h>

static const struct patch_strategy *strategy = PATCH_STRATEGY_DEFAULT;
static struct patch_stats stats;
static unsigned int jumps_enabled;

/*
 * Only the task that holds trace_mutex writes text, so bytes that have been verified here are still
 * there when the strategy writes.
 */
static always_inline int verify_kind(struct patch_batch *b, bool on, bool jumps)
{
	const u32 *entry;
	unsigned int w;
	u32 diff;

	patch_for_each (b, w, entry, diff, on) {
		struct live l = live_of_kind(b->set, entry, jumps);
		u64 found = arch_live_read(l);
		u64 expected = arch_live_bytes(l, !on);

		if (found != expected) {
			b->bad_site = entry - b->set->table;
			b->found = found;
			b->expected = expected;
			return -EIO;
		}
	}
	return 0;
}

static int verify_batch(struct patch_batch *b)
{
	int err = LIVE_BY_KIND(b->set, verify_kind, b, true);

	return err ? err : LIVE_BY_KIND(b->set, verify_kind, b, false);
}

/* Allocated at boot and not with each batch: to switch tracing off must not need memory. */
/* The sites that change in the batch which holds trace_mutex. */
static u32 *changes;

static void changes_alloc(void)
{
	changes = kmalloc_zeroed((max(site_capacity(), jump_count) / 32 + 1) *
				 sizeof(u32));
	if (!changes)
		panic("no memory for batches of %u sites", site_capacity());
}
INIT_HOOK(INIT_SITES, changes_alloc);

/* A caller says which sites it wants on, 32 at a time. The difference to the sites that are on is
 * the batch: a site that two tracers want is written once. */
static void find_changes(struct patch_batch *b, patch_want_fn *want,
			 const void *arg)
{
	for (unsigned int w = b->lo; w < b->hi; w++) {
		u32 enabled = b->set->enabled[w];

		changes[w] = (want(w, arg) & b->set->patchable[w]) ^ enabled;
		b->on += bit_count(changes[w] & ~enabled);
		b->off += bit_count(changes[w] & enabled);
	}
}

static void count_batch_stats(const struct patch_batch *b)
{
	if (b->set == &live_calls)
		stats.enabled += b->on - b->off;
	else
		jumps_enabled += b->on - b->off;
	stats.batches++;
	stats.sites_written += b->on + b->off;
	stats.fallback += b->fallback;
	stats.held_ns_max = max(stats.held_ns_max, b->held_ns);
}

/*
 * A task that died here would leave a batch half written, and no task could bring it to its end. So
 * a fault of the task that patches ends the machine, even where the task is expendable.
 */
static int carry_out_batch(struct patch_batch *b)
{
	struct task *t = current_task();
	bool expendable = t->expendable;
	int err;

	t->expendable = false;
	err = strategy->carry_out(b);
	t->expendable = expendable;
	return err;
}

FAULT(batch_refused, "a site is found with bytes that it should not have");

/*
 * Verify all, write all, then the books. A bad site is found before the first store, so a batch is
 * carried out whole or not at all. The caller's interrupts must be on: a strategy waits for
 * other CPUs, which may wait for this one.
 */
static int apply_batch(const struct live_set *set, struct patch_batch *b,
		       unsigned int lo, unsigned int hi, patch_want_fn *want,
		       const void *arg)
{
	int err;

	mutex_assert_held(&trace_mutex);
	if (arch_irqs_off() || in_interrupt())
		return -EDEADLK;
	*b = (struct patch_batch){
		.set = set, .lo = lo, .hi = hi, .changes = changes
	};
	find_changes(b, want, arg);
	err = verify_batch(b);
	if (err || !(b->on + b->off))
		return err;
	if (fault_happens_here(&fault_batch_refused))
		return -EIO;
	trace_patch_batch(strategy->name, b->on, b->off);
	patch_log(LOG_BATCH, b->on + b->off,
		  strategy - __start_patch_strategies);
	err = carry_out_batch(b);
	patch_log(LOG_DONE, 0, 0);
	if (err)
		return err;
	for (unsigned int w = lo; w < hi; w++) {
		set->enabled[w] ^= changes[w];
		if (set->touched)
			set->touched[w] |= set->enabled[w];
	}
	count_batch_stats(b);
	return 0;
}

int patch_apply(struct patch_batch *b, unsigned int lo, unsigned int hi,
		patch_want_fn *want, const void *arg)
{
	return apply_batch(&live_calls, b, lo, hi, want, arg);
}

int patch_apply_jumps(struct patch_batch *b, patch_want_fn *want,
		      const void *arg)
{
	return apply_batch(&live_jumps, b, 0, (jump_count + 31) / 32, want,
			   arg);
}

u32 patch_want_on(unsigned int w, const void *arg)
{
	(void)w;
	(void)arg;
	return ~0u;
}

u32 patch_want_off(unsigned int w, const void *arg)
{
	(void)w;
	(void)arg;
	return 0;
}

struct one_site {
	unsigned int site;
	bool on;
};

static u32 want_one(unsigned int w, const void *arg)
{
	const struct one_site *one = arg;
	u32 bit = 1u << one->site % 32;

	return one->on ? live_calls.enabled[w] | bit :
			 live_calls.enabled[w] & ~bit;
}

int patch_site(struct patch_batch *b, unsigned int site, bool on)
{
	struct one_site one = { site, on };

	return patch_apply(b, site / 32, site / 32 + 1, want_one, &one);
}

/* ---- Strategies ---------------------------------------------------------- */

const char *patch_refused(const struct patch_strategy *s)
{
	if (arch_live_insns > 1 && s != &patch_strategy_bypass)
		return "its sites have several live instructions, which only "
		       "bypass switches";
	return s->refused ? s->refused() : NULL;
}

static const struct patch_strategy *strategy_find(const char *name)
{
	const struct patch_strategy *s;

	for_each_registered (s, patch_strategies)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

int patch_strategy_set(const char *name, const char **why)
{
	const struct patch_strategy *s = strategy_find(name);

	mutex_assert_held(&trace_mutex);
	if (!s)
		return -EINVAL;
	*why = patch_refused(s);
	if (*why)
		return -ENOSYS;
	strategy = s;
	return 0;
}

const char *patch_strategy_name(void)
{
	return READ_ONCE(strategy)->name;
}

static const char *strategy_wanted;

static int strategy_param(const char *value)
{
	if (!strategy_find(value))
		return -EINVAL;
	strategy_wanted = value;
	return 0;
}
KERNEL_PARAM(patch_strategy, "patch_strategy", "stop breakpoint word bypass",
	     strategy_param);

/* The strategies that a CPU refuses may depend on its NOP, which is chosen after parameters are
 * read. Alone: nothing is patched before. */
static void strategy_boot(void)
{
	const char *why;

	mutex_lock(&trace_mutex);
	if (strategy_wanted && patch_strategy_set(strategy_wanted, &why))
		printk("param: patch_strategy=%s is not possible on this CPU: "
		       "%s; %s it is\n",
		       strategy_wanted, why, strategy->name);
	mutex_unlock(&trace_mutex);
}
INIT_HOOK(INIT_TASK, strategy_boot);

/* ---- Traps ---------------------------------------------------------------- */

/* The lab's, whose instructions stand in no table. */
bool (*patch_trap_hook)(struct trap_frame *f);

/* Is pc a live instruction that may be switched? Its set, then also *l, and its entry. */
static const struct live_set *at_live(unsigned long pc, struct live *l,
				      unsigned int *entry)
{
	unsigned int i = site_lower_bound(pc + 1);
	int jump;

	if (i-- && site_test(live_calls.patchable, i)) {
		*l = live_of_site(site_address(i));
		*entry = i;
		if (l->at == pc)
			return &live_calls;
	}
	jump = jump_find(pc);
	if (jump < 0 || !site_test(live_jumps.patchable, jump))
		return NULL;
	*l = jump_live(jump);
	*entry = jump;
	return &live_jumps;
}

static bool is_break(u64 bytes)
{
	return patch_break_unit(bytes) == patch_break_unit(arch_break_insn);
}

/* A jump label would be text that changes on the path on which text changes. */
static void tell_trap(unsigned long pc, bool on)
{
	if (READ_ONCE(key_event_patch_trap.on))
		event_patch_trap(pc, on);
}

/*
 * A CPU that has trapped on a breakpoint which is no longer in memory goes on as
 * memory says now. If it returned to the same address, it could trap for ever, with
 * interrupts off, while other CPUs wait for it. That is done only at a live
 * instruction: any other breakpoint does not belong to the tracer.
 *
 * Memory is read first, the vector then. A breakpoint that is found in memory has
 * been published before, and stays so while this CPU has interrupts off.
 */
bool patch_trap(struct trap_frame *f)
{
	bool (*hook)(struct trap_frame * f) = READ_ONCE(patch_trap_hook);
	unsigned long pc;
	const struct live_set *set;
	unsigned int entry;
	struct live l;
	bool on;
	u64 now = 0;

	if (hook && hook(f))
		return true;
	pc = arch_frame_pc(f);
	if (pc < (unsigned long)_text || pc >= (unsigned long)_etext)
		return false;
	set = at_live(pc, &l, &entry);
	if (set)
		now = arch_live_read(l);
	if (patch_break_find(pc, &l, &on) ||
	    (set && is_break(now) && patch_bypass_find(set, entry, &on))) {
		arch_break_resume(f, l, on);
		count_up(&stats.traps);
		tell_trap(pc, on);
		return true;
	}
	if (!set)
		return false;
	on = now == arch_live_bytes(l, true);
	if (!on && now != arch_live_bytes(l, false))
		return false;
	arch_break_resume(f, l, on);
	count_up(&stats.late);
	tell_trap(pc, on);
	return true;
}
PATCH_ROOT(patch_trap);

int patch_explain(const struct patch_batch *b, char *buf, size_t size)
{
	struct live l = live_of_entry(b->set, &b->set->table[b->bad_site]);
	int digits = 2 * (int)live_length(l);

	if (b->left)
		return snprintf(
			buf, size,
			"task %d, %s, has stood in a site for a second; "
			"nothing was changed",
			b->left->pid, b->left->name);
	return snprintf(buf, size,
			"%pS: found %0*llx, expected %0*llx; "
			"nothing was written",
			(void *)l.at, digits, (unsigned long long)b->found,
			digits, (unsigned long long)b->expected);
}

void patch_stats(struct patch_stats *s)
{
	*s = stats;
	s->strategy = strategy->name;
	s->window_ns_max = clock_delta_to_ns(patch_longest_window());
}

static unsigned long enabled_sites(void)
{
	return stats.enabled;
}
KTEST_RESOURCE(enabled_sites, "enabled sites", enabled_sites);

static unsigned long enabled_jumps(void)
{
	return jumps_enabled;
}
KTEST_RESOURCE(enabled_jumps, "enabled jump labels", enabled_jumps);
