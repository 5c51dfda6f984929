/*
 * Strategy `stop`: all CPUs held with interrupts off wherever they are, one
 * writes every live instruction of the batch, each synchronises its own fetch
 * before it leaves. A held CPU stands in kernel/stop.c, which has no sites; the
 * tasks that were preempted earlier may stand on any instruction of any site,
 * and that is all right: only live instructions change, each as a whole.
 *
 * Order: change() stores the text; the rendezvous' step from CHANGE to SYNC is a
 * release on this CPU and an acquire on the others (kernel/stop.c), so their
 * sync() comes after the stores are visible to them.
 */
#include <tracer/patch.h>

#include <arch/arch_trace.h>
#include <kernel/patch_path.h>
#include <kernel/stop.h>

static notrace void stop_change(void *arg)
{
	const struct patch_batch *b = arg;
	long delta = arch_text_open();
	const u32 *entry;
	unsigned int w;
	u32 diff, on;

	patch_for_each (b, w, entry, diff, on) {
		unsigned long live = arch_site_live(site_entry_address(entry));

		arch_live_write(live + delta, on & 1 ? arch_live_on(live) :
						       arch_live_off(live));
	}
	arch_text_close();
}

static notrace void stop_sync(void *arg)
{
	const struct patch_batch *b = arg;
	const u32 *entry;
	unsigned int w;
	u32 diff, on;

	if (arch_sync_each_site)
		patch_for_each (b, w, entry, diff, on)
			arch_text_sync_site(
				arch_site_live(site_entry_address(entry)));
	arch_text_sync();
}

static int stop_carry_out(struct patch_batch *b)
{
	struct stop_work work = {
		.change = stop_change,
		.sync = stop_sync,
		.arg = b,
	};
	int err = stop_cpus(&work);

	b->held_ns = work.held_ns;
	return err;
}

PATCH_INDIRECT(stop_lead, stop_change);
PATCH_INDIRECT(stop_lead, stop_sync);
PATCH_INDIRECT(stop_hold, stop_sync);

PATCH_STRATEGY(stop, .name = "stop", .carry_out = stop_carry_out);
