/*
 * Proves that code in an NMI survives a breakpoint: the trap acts as the site's
 * new state demands, comes back to the right place with the stack as it was,
 * and leaves NMIs blocked, so that a second one waits for the first to end.
 */
#include <tracer/testing.h>

#include <kernel/patch_path.h>

#define NMIS 100
#define CALLS 3 /* in each, so in each as many breakpoints */

static struct {
	unsigned long live;
	bool on;	 /* what the trap acts as */
	u32 traps, hits; /* breakpoints taken; traced calls */
	u32 nmis, wrong, depth, deepest;
	bool again; /* raise another from inside */
} n;

static void note_hit(unsigned long ip, unsigned long parent,
		     struct trace_ops *ops)
{
	(void)ip, (void)parent, (void)ops;
	n.hits++;
}
static struct trace_ops note_ops = { trace_entry_call, note_hit };

static bool resume(struct trap_frame *f)
{
	if (arch_frame_pc(f) != n.live)
		return false;
	n.traps++;
	arch_break_resume(f, n.live, n.on);
	return true;
}
PATCH_INDIRECT(patch_trap, resume);

static void in_nmi(void)
{
	n.deepest = max(n.deepest, ++n.depth);
	n.nmis++;
	for (unsigned long x = 0; x < CALLS; x++) {
		n.wrong += victim_other(x) != x + 3;
		if (n.again) {
			n.again = false;
			arch_nmi_send(cpu_index());
		}
	}
	n.depth--;
}

/* This CPU alone sees it: interrupts are off, and it is gone before they come
 * back on. */
static void write_unit(u64 bytes)
{
	long delta = arch_text_open();

	arch_unit_write(n.live + delta, bytes);
	arch_text_close();
	if (arch_sync_each_site)
		arch_text_sync_site(n.live);
	arch_text_sync();
}

/* NMIS times one NMI that raises the next one while it runs. */
static void storm(bool on)
{
	n.on = on;
	for (unsigned int i = 0; i < NMIS; i++) {
		u32 before = n.nmis;
		u64 end = arch_clock() + ns_to_clock_delta(NSEC_PER_SEC);

		n.again = true;
		arch_nmi_send(cpu_index());
		while (READ_ONCE(n.nmis) != before + 2 && arch_clock() < end)
			arch_cpu_relax();
	}
}

static void with_breakpoint(bool on)
{
	irq_state_t state = arch_irq_save();

	n.live = arch_site_live(site_address(trace_test_site(victim_other)));
	write_unit(arch_break_insn);
	irq_nmi_hook = in_nmi;
	storm(on);
	irq_nmi_hook = NULL;
	write_unit(arch_live_off(n.live));
	arch_irq_restore(state);
}

KTEST(nmi_break, "nmi.breakpoint")
{
	if (arch_nmi_send(cpu_index()))
		KSKIP(t, "this machine has no NMI");
	for (unsigned int on = 0; on < 2; on++) {
		memset(&n, 0, sizeof(n));
		mutex_lock(&trace_mutex);
		trace_ops = &note_ops;
		patch_trap_hook = resume;
		with_breakpoint(on);
		patch_trap_hook = NULL;
		trace_ops = &trace_ops_off;
		mutex_unlock(&trace_mutex);
		KEXPECT_EQ(t, n.nmis, 2 * NMIS);
		KEXPECT_EQ(t, n.deepest, 1);
		KEXPECT_EQ(t, n.traps, 2 * NMIS * CALLS);
		KEXPECT_EQ(t, n.hits, on ? 2 * NMIS * CALLS : 0);
		KEXPECT_EQ(t, n.wrong, 0);
	}
}
