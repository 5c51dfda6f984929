/* SPDX-License-Identifier: MIT */
/*
 * Conformance of a port with arch_trace.h in an NMI. Code there survives a breakpoint: the
 * trap acts as the site's new state demands, comes back to the right place with the stack as it
 * was, and leaves NMIs blocked, so that a second one waits for the first to end. Its calls write
 * no events.
 */
#include <arch/conform/conform.h>
#include <tracer/testing.h>

#include <kernel/errno.h>
#include <kernel/lock/mutex.h>
#include <kernel/patch_path.h>
#include <tracer/patch/patch_break.h>

#define NMIS 100
#define CALLS 3 /* in each, so in each as many breakpoints */

static struct {
	struct live live;
	bool on;	 /* the trap acts as if on */
	u32 traps, hits; /* breakpoints taken, traced calls */
	u32 nmis, wrong, depth, deepest;
	bool again; /* raise another from inside */
} n;

static void note_nmi_hit(unsigned long ip, unsigned long parent,
			 struct trace_ops *ops)
{
	(void)ip, (void)parent, (void)ops;
	n.hits++;
}
static struct trace_ops note_ops = { .entry = trace_entry_call,
				     .func = note_nmi_hit };

static bool resume_at_break(struct trap_frame *f)
{
	if (arch_frame_pc(f) != n.live.at)
		return false;
	n.traps++;
	arch_break_resume(f, n.live, n.on);
	return true;
}
PATCH_INDIRECT(patch_trap, resume_at_break);

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
static void send_nmi_storm(bool on)
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
	send_nmi_storm(on);
	irq_nmi_hook = NULL;
	write_unit(arch_live_bytes(n.live, false));
	arch_irq_restore(state);
}

KTEST(break_resume_nmi, "arch_trace.arch_break_resume.nmi")
{
	if (arch_nmi_send(cpu_index()))
		KSKIP(t, "this machine has no NMI");
	for (unsigned int on = 0; on < 2; on++) {
		memset(&n, 0, sizeof(n));
		mutex_lock(&trace_mutex);
		trace_test_ops(&note_ops);
		PATCH_HOOK_SET(patch_trap_hook, patch_trap, resume_at_break);
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

/* ---- events ---- */

/* A call in an NMI may have interrupted a writer of the ring: C code counts it as lost. */
KTEST(entry_ring_nmi, "arch_trace.trace_entry_ring.nmi")
{
	struct ring_stats s;
	struct cpu *cpu;
	irq_state_t state;

	if (conform_nmi() == -ENOSYS)
		KSKIP(t, "this machine has no NMI");
	KEXPECT_EQ(t, trace_test_victim(), 0);
	state = arch_irq_save();
	cpu = arch_this_cpu();
	cpu->head.preempt_count |= PREEMPT_NMI;
	KEXPECT_EQ(t, victim_call(1), 4);
	cpu->head.preempt_count &= ~PREEMPT_NMI;
	arch_irq_restore(state);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.held, 0);
	KEXPECT_EQ(t, s.dropped, 1);
	trace_test_reset();
}
