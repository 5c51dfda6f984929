/* SPDX-License-Identifier: MIT */
/*
 * Strategy `stop`: all CPUs held with interrupts off wherever they are, one
 * writes every live instruction of the batch, each synchronises its own fetch
 * before it leaves. A held CPU stands in kernel/cpu/stop.c, which has no sites. The
 * tasks that were preempted earlier may stand on any instruction of any site,
 * and that is all right: only live instructions change, each as a whole.
 *
 * Order: change() stores the text. The rendezvous' step from CHANGE to SYNC is a
 * release on this CPU and an acquire on the others (kernel/cpu/stop.c), so their
 * patch_sync_batch() comes after the stores are visible to them.
 */
#include <tracer/patch/patch.h>

#include <arch/arch_trace.h>
#include <kernel/cpu/cpu.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/cpu/stop.h>
#include <kernel/time.h>
#include <tracer/patch/patch_live.h>
#include <tracer/patch/patch_log.h>

static always_inline void stop_write_kind(const struct patch_batch *b,
					  long delta, bool on, bool jumps)
{
	const u32 *entry;
	unsigned int w;
	u32 diff;

	patch_for_each (b, w, entry, diff, on) {
		struct live l = live_of_kind(b->set, entry, jumps);

		arch_live_write(l, delta, arch_live_bytes(l, on));
		if (arch_sync_each_site)
			arch_text_sync_site(l.at);
	}
}

static notrace void stop_change(void *arg)
{
	const struct patch_batch *b = arg;
	long delta = arch_text_open();

	PATCH_BY_STATE(b, stop_write_kind, b, delta);
	patch_fault_trap();
	arch_text_close();
	patch_write_back();
	if (READ_ONCE(patch_log_on))
		patch_log_stores(b, STORE_WHOLE, false, false);
	if (fault_happens(&fault_stop_waits))
		patch_fault_wait();
}

static notrace void take_interrupt(void *unused)
{
	(void)unused;
}

/*
 * A test's fault: the change without the rendezvous, so that the rules show its purpose.
 * Each CPU takes an interrupt before it synchronises, so it runs changed text for certain.
 */
static int carry_out_loose(struct patch_batch *b)
{
	stop_change(b);
	cpu_call(~0u, take_interrupt, NULL);
	return cpu_call(~0u, patch_sync_batch, b);
}

/* A site at most, on any port, where an instruction takes a nanosecond. A slower machine takes
 * longer, but a figure of its own would differ from batch to batch. */
#define SITE_NS 60u

static void foretell_hold(unsigned int sites)
{
	u64 ns = (u64)sites * SITE_NS;

	if (ns > NSEC_PER_MSEC)
		printk("patch: stop is going to hold all CPUs for about %llu "
		       "us, for %u sites; other strategies hold none\n",
		       (unsigned long long)ns / NSEC_PER_USEC, sites);
}

static int stop_carry_out(struct patch_batch *b)
{
	struct stop_work work = {
		.change = stop_change,
		.sync = patch_sync_batch,
		.arg = b,
	};
	int err;

	if (fault_happens(&fault_stop_loose))
		return carry_out_loose(b);
	if (fault_happens(&fault_sync_early))
		patch_sync_early();
	foretell_hold(b->on + b->off);
	err = stop_cpus(&work);
	b->held_ns = work.held_ns;
	return err;
}

PATCH_INDIRECT(stop_lead, stop_change);
PATCH_INDIRECT(stop_lead, patch_sync_batch);
PATCH_INDIRECT(stop_hold, patch_sync_batch);

PATCH_STRATEGY(stop, .name = "stop", .carry_out = stop_carry_out);
