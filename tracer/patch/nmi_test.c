/*
 * Proves that code in an NMI survives a breakpoint: the trap acts as the site's
 * new state demands, comes back to the right place with the stack as it was,
 * and leaves NMIs blocked, so that a second one waits for the first to end.
 */
#include <tracer/testing.h>

#include <kernel/patch_path.h>
#include <kernel/lock/mutex.h>
#include <tracer/patch/patch_break.h>

#define NMIS 100
#define CALLS 3 /* in each, so in each as many breakpoints */

static struct {
	struct live live;
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
static struct trace_ops note_ops = { .entry = trace_entry_call,
				     .func = note_hit };

static bool resume(struct trap_frame *f)
{
	if (arch_frame_pc(f) != n.live.at)
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

/*
 * Only this CPU sees the breakpoint: interrupts are off, and it is gone before they
 * come on.
 */
static void write_unit(u64 bytes)
{
	long delta = arch_text_open();

	patch_break_write_unit(n.live.at + delta, bytes);
	arch_text_close();
	if (arch_sync_each_site)
		arch_text_sync_site(n.live.at);
	arch_text_sync();
}

/* Raises NMIS times an NMI that raises the next one while it runs. */
static void storm(bool on)
{
	n.on = on;
	for (unsigned int i = 0; i < NMIS; i++) {
		u32 before = n.nmis;
		u64 end = arch_clock() + ns_to_clock_delta(KWAIT_NS);

		n.again = true;
		arch_nmi_send(cpu_index());
		while (READ_ONCE(n.nmis) != before + 2 && arch_clock() < end)
			arch_cpu_relax();
	}
}

static void with_breakpoint(bool on)
{
	irq_state_t state = arch_irq_save();

	n.live = live_of_site(site_address(trace_test_site(victim_other)));
	write_unit(arch_break_insn);
	irq_nmi_hook = in_nmi;
	storm(on);
	irq_nmi_hook = NULL;
	write_unit(arch_live_bytes(n.live, false));
	arch_irq_restore(state);
}

KTEST(nmi_break, "nmi.breakpoint")
{
	if (arch_nmi_send(cpu_index()))
		KSKIP(t, "this machine has no NMI");
	for (unsigned int on = 0; on < 2; on++) {
		memset(&n, 0, sizeof(n));
		mutex_lock(&trace_mutex);
		trace_test_ops(&note_ops);
		PATCH_HOOK_SET(patch_trap_hook, patch_trap, resume);
		with_breakpoint(on);
		patch_trap_hook = NULL;
		trace_test_ops(NULL);
		mutex_unlock(&trace_mutex);
		KEXPECT_EQ(t, n.nmis, 2 * NMIS);
		KEXPECT_EQ(t, n.deepest, 1);
		KEXPECT_EQ(t, n.traps, 2 * NMIS * CALLS);
		KEXPECT_EQ(t, n.hits, on ? 2 * NMIS * CALLS : 0);
		KEXPECT_EQ(t, n.wrong, 0);
	}
}

/* ---- While a strategy is at work ------------------------------------------ */

static struct {
	bool on;	     /* the state that the site gets */
	u32 calls[MAX_CPUS]; /* made in NMIs; by that CPU */
	u32 hits, wrong;     /* atomic */
	unsigned int lost,
		steps; /* steps where calls were not as the new state's */
} live;

static void note_live(unsigned long ip, unsigned long parent,
		      struct trace_ops *ops)
{
	(void)ip, (void)parent, (void)ops;
	count_up(&live.hits);
}
static struct trace_ops live_ops = { .entry = trace_entry_call,
				     .func = note_live };

static void call_in_nmi(void)
{
	unsigned int c = cpu_index();
	unsigned long x = live.calls[c];

	if (victim_other(x) != x + 3)
		count_up(&live.wrong);
	/* Release: pairs with the acquire in nmi_everywhere(). */
	__atomic_store_n(&live.calls[c], x + 1, __ATOMIC_RELEASE);
}

/* Between any two steps every CPU runs the site once, in an NMI. */
static void nmi_everywhere(enum patch_step step, bool synced)
{
	u64 end = arch_clock() + ns_to_clock_delta(KWAIT_NS);
	u32 before = live.hits, n = live.steps + 1;
	unsigned int c, online = 0;

	(void)step, (void)synced;
	for_each_online_cpu (c) {
		online++;
		arch_nmi_send(c);
		while (__atomic_load_n(&live.calls[c], __ATOMIC_ACQUIRE) != n &&
		       arch_clock() < end)
			arch_cpu_relax();
	}
	live.steps = n;
	live.lost += live.hits - before != (live.on ? online : 0);
}

static void switch_under_nmis(struct ktest_run *t, int site)
{
	struct patch_batch b;

	memset(&live, 0, sizeof(live));
	mutex_lock(&trace_mutex);
	trace_test_ops(&live_ops);
	patch_step_hook = nmi_everywhere;
	irq_nmi_hook = call_in_nmi;
	for (unsigned int i = 0; i < 6; i++) {
		live.on = i % 2 == 0;
		KEXPECT_EQ(t, patch_site(&b, site, live.on), 0);
	}
	irq_nmi_hook = NULL;
	patch_step_hook = NULL;
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
}

PATCH_TEST(nmi_patch, "nmi.while_patching")
{
	int site = trace_test_site(victim_other);
	bool stop = !strcmp(patch_strategy_name(), "stop");

	if (arch_nmi_send(cpu_index()))
		KSKIP(t, "this machine has no NMI");
	KASSERT(t, site >= 0);
	trace_test_reset();
	switch_under_nmis(t, site);
	KEXPECT_EQ(t, live.steps == 0, stop);
	KEXPECT_EQ(t, live.lost, 0);
	KEXPECT_EQ(t, live.wrong, 0);
}
