/* SPDX-License-Identifier: MIT */
/*
 * Proves that NMIs, as many as there can be, on all CPUs, lose nothing while all sites
 * are switched endlessly (H12). Where a strategy stops no CPU, code in the NMI calls
 * functions that are just being switched, and one that is on all along: each of its
 * calls is traced. tests/test_nmi.py sends more NMIs from outside. And that an NMI which
 * comes to a held CPU, between a write and the CPU's own synchronisation, does no harm.
 */
#include <tracer/testing.h>

#include <kernel/cpu/stop.h>
#include <kernel/lock/mutex.h>
#include <kernel/patch_path.h>
#include <kernel/test/again.h>

static u32 calls_made, wrong; /* by NMIs, atomic */

/* This runs inside every NMI, on any CPU, in any interrupted function. */
static void call_sites(void)
{
	bool bad = victim_call(5) != 8;

	bad |= victim_other(7) != 10;
	bad |= victim_varargs(2, 3, 4) != 7;
	count_up(&calls_made);
	if (bad)
		count_up(&wrong);
}

static void send_nmis(void *arg)
{
	u32 seed = 3, *sent = arg;

	while (!task_should_stop()) {
		unsigned int c = ktest_random(&seed) % nr_cpus;

		if (cpu_online(c))
			*sent += !arch_nmi_send(c);
		arch_cpu_relax();
	}
}

static u64 nmis_seen(void)
{
	u64 sum = 0;

	for (unsigned int c = 0; c < nr_cpus; c++)
		sum += READ_ONCE(cpus[c].irq_counts[IRQ_NMI]);
	return sum;
}

static void nmi_wakes_nothing(void *arg)
{
	(void)arg;
}

/* A CPU that answers an interrupt is in no NMI. So no CPU uses the hook any more. */
static void end_hook(void)
{
	WRITE_ONCE(irq_nmi_hook, NULL);
	cpu_call(~0u, nmi_wakes_nothing, NULL);
}

/* A task calls too, so that NMIs come in the middle of its calls. */
static void call_along(void *arg)
{
	while (!task_should_stop()) {
		u32 *made = arg;

		if (victim_call(*made) != *made + 3ul)
			count_up(&wrong);
		++*made;
		arch_cpu_relax();
	}
}

#define TOGGLES 40

static void run_nmi_storm(struct ktest_run *t, const struct patch_strategy *s)
{
	bool in_nmi = s != &patch_strategy_stop;
	struct task *sender, *caller;
	u32 sent = 0, along = 0;
	u64 before = nmis_seen();
	struct trace_witness w;

	calls_made = wrong = 0;
	KASSERT(t, trace_witness_begin(&w, s->name));
	caller = task_create("caller", PRIO_LOW, ~0u, call_along, &along);
	if (in_nmi)
		WRITE_ONCE(irq_nmi_hook, call_sites);
	sender = task_create("nmi-storm", PRIO_LOW, ~0u, send_nmis, &sent);
	for (u32 n = 0; n < TOGGLES; n++)
		KEXPECT_EQ(t, trace_witness_toggle(&w, ~n & 1), 0);
	KEXPECT(t, KWAIT(nmis_seen() - before > 10));
	task_stop(sender);
	task_join(sender);
	task_stop(caller);
	task_join(caller);
	end_hook();
	w.steady_made = along + calls_made;
	trace_witness_end(&w, t);
	KEXPECT(t, !in_nmi || calls_made > 10);
	KEXPECT_EQ(t, wrong, 0);
	printk("# %s: %u NMIs sent from inside, %llu seen\n", s->name, sent,
	       (unsigned long long)(nmis_seen() - before));
}

KTEST(nmi_storm, "nmi.storm")
{
	const struct patch_strategy *s;

	if (arch_nmi_send(cpu_index()))
		KSKIP(t, "this machine has no NMI");
	for_each_registered (s, patch_strategies)
		if (!patch_refused(s))
			run_nmi_storm(t, s);
}

/* ---- NMIs to CPUs that are held ---- */

static struct {
	struct live live; /* victim_call()'s live instruction */
	bool on;
	u32 sent, came; /* NMIs. came: before the CPU has synchronised */
} hold;

/* All CPUs are held. The site is changed, and no CPU has synchronised. */
static notrace void change_and_send(void *arg)
{
	long delta = arch_text_open();
	u64 before[MAX_CPUS], end;
	unsigned int c;

	(void)arg;
	arch_live_write(hold.live, delta, arch_live_bytes(hold.live, hold.on));
	arch_text_close();
	/*
	 * NMIs are sent to all CPUs before this CPU waits, so that they come at the
	 * same time.
	 */
	for_each_online_cpu (c) {
		before[c] = READ_ONCE(cpus[c].irq_counts[IRQ_NMI]);
		hold.sent++;
		arch_nmi_send(c);
	}
	end = arch_clock() + ns_to_clock_delta(KWAIT_NS);
	for_each_online_cpu (c) {
		const u64 *count = &cpus[c].irq_counts[IRQ_NMI];

		while (READ_ONCE(*count) == before[c] && arch_clock() < end)
			arch_cpu_relax();
		hold.came += READ_ONCE(*count) != before[c];
	}
}

static notrace void sync_after(void *arg)
{
	(void)arg;
	if (arch_sync_each_site)
		arch_text_sync_site(hold.live.at);
	arch_text_sync();
}
PATCH_INDIRECT(stop_lead, change_and_send);
PATCH_INDIRECT(stop_lead, sync_after);
PATCH_INDIRECT(stop_hold, sync_after);

static void call_victim_checked(void *arg)
{
	if (victim_call(4) != 7)
		count_up((u32 *)arg);
}

static void note_one(unsigned long ip, unsigned long parent,
		     struct trace_ops *ops)
{
	(void)ip, (void)parent, (void)ops;
	count_up(&calls_made);
}
static struct trace_ops note_ops = { .entry = trace_entry_call,
				     .func = note_one };

/* An NMI may come just where a held CPU falls asleep. That takes one instruction, so it needs many
 * rounds. */
#define HELD_ROUNDS 200

/* An NMI comes to each CPU between the write and that CPU's own synchronisation, and goes back into
 * the rendezvous. Then all CPUs run the text that is in memory. */
KTEST(nmi_held, "nmi.comes_to_held_cpu")
{
	struct stop_work work = { .change = change_and_send,
				  .sync = sync_after };

	if (arch_nmi_send(cpu_index()))
		KSKIP(t, "this machine has no NMI");
	trace_test_reset();
	mutex_lock(&trace_mutex);
	trace_test_ops(&note_ops);
	memset(&hold, 0, sizeof(hold));
	hold.live = live_of_site(site_address(trace_test_site(victim_call)));
	calls_made = wrong = 0;
	for (u32 i = 0; i < HELD_ROUNDS; i++) {
		hold.on = i % 2 == 0;
		KEXPECT_EQ(t, stop_cpus(&work), 0);
		cpu_call(~0u, call_victim_checked, &wrong);
		KEXPECT_EQ(t, calls_made, (i / 2 + 1) * nr_cpus);
	}
	KEXPECT_EQ(t, hold.sent, HELD_ROUNDS * nr_cpus);
	KEXPECT_EQ(t, hold.came, hold.sent);
	KEXPECT_EQ(t, wrong, 0);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	trace_quiesce(&note_ops);
}
