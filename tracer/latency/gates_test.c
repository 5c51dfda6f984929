/* SPDX-License-Identifier: MIT */
/*
 * A latency that is kept has its beginning and its end in the trace, also while any gate keeps
 * entries out of the buffer. The time for which a CPU is away is no latency.
 */
#include <tracer/testing.h>

#include <boot/boot_info.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/event/latency.h>
#include <kernel/time.h>
#include <tracer/latency/latency.h>
#include <tracer/ring/ring_control.h>
#include <tracer/show/snapshot.h>
#include <kernel/test/again.h>

#define GATE_NS (2 * NSEC_PER_MSEC)

static void irqs_off_for(u64 ns)
{
	irq_state_t state = irq_save();
	u64 end = arch_clock() + ns_to_clock_delta(ns);

	while (arch_clock() < end)
		;
	irq_restore(state);
}

/* Sections, each longer than the one before: all that are kept have both their calls. The limit is
 * that of the longest one, though its trace may be forgotten, so begin anew. If the host stops the
 * machine, another section may take longer: then that one is kept. */
static void expect_whole(struct ktest_run *t, bool kept)
{
	u64 since = latency_longest().since;

	KEXPECT_EQ(t, trace_test_put("tracing_max_latency", "0"), 0);
	for (unsigned int i = 1; i <= 3; i++)
		irqs_off_for(i * GATE_NS);
	if (kept)
		KEXPECT(t, latency_longest().since != since);
	if (latency_longest().until)
		KEXPECT(t, trace_test_kept_lines() >= 2);
}

KTEST(latency_full, "latency.gates.overwrite")
{
	trace_test_reset();
	/* With little room: no call is on, so the sections alone fill the buffer. */
	KEXPECT_EQ(t, trace_test_put("options/function-trace", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("options/overwrite", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "irqsoff"), 0);
	KEXPECT(t, trace_test_says("options/overwrite", "1\n"));
	KEXPECT_EQ(t, trace_test_put("options/overwrite", "0"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("trace_options", "nooverwrite"), -EINVAL);
	KEXPECT(t, strstr(trace_test_error, "while the tracer irqsoff runs"));
	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", "8"), 0);
	for (unsigned int i = 0; i < 2000; i++)
		irqs_off_for(0);
	expect_whole(t, true);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "nop"), 0);
	KEXPECT(t, trace_test_says("options/overwrite", "0\n"));
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}

KTEST(latency_masked, "latency.gates.cpumask_and_pid")
{
	char mask[12];

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("options/function-trace", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "irqsoff"), 0);
	/* As in Linux, a list of pids is for calls: sections of all tasks are measured. */
	KEXPECT_EQ(t, trace_test_put("set_ftrace_pid", "99999"), 0);
	expect_whole(t, true);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_pid", ""), 0);
	task_set_affinity(current_task(), 1);
	snprintf(mask, sizeof(mask), "%x", cpus_present() & ~1u);
	if (nr_cpus > 1) {
		KEXPECT_EQ(t, trace_test_put("tracing_cpumask", mask), 0);
		KEXPECT_EQ(t, trace_test_put("tracing_max_latency", "0"), 0);
		expect_whole(t, false);
		KEXPECT(t, !latency_longest().until ||
				   latency_longest().cpu != 0 ||
				   trace_test_kept_lines() >= 2);
	}
	task_set_affinity(current_task(), ~0u);
	trace_test_reset();
}

KTEST(latency_freed, "latency.gates.free_buffer")
{
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("options/function-trace", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "irqsoff"), 0);
	KEXPECT_EQ(t, trace_test_put("free_buffer", ""), 0);
	KEXPECT_EQ(t, ring_kb(rings, 0), 8);
	KEXPECT_EQ(t, ring_kb(ring_spares, 0), 8);
	KEXPECT_EQ(t, latency_longest().until, 0);
	KEXPECT_EQ(t, trace_test_put("tracing_on", "1"), 0);
	expect_whole(t, true);
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}

/* ---- a switch in preempt_enable() ---- */

#define NAPS 8
#define NAP_NS (2 * NSEC_PER_MSEC)

static void nap_often(void *arg)
{
	for (unsigned int i = 0; i < NAPS; i++)
		task_sleep(NAP_NS);
	WRITE_ONCE(*(bool *)arg, true);
}

static void spin_for(u64 ns)
{
	u64 end = arch_clock() + ns_to_clock_delta(ns);

	while (arch_clock() < end)
		;
}

/*
 * A more urgent task wakes while this one may not be preempted, so that preempt_enable() switches.
 * It sleeps again: its section, which began with task_sleep(), ends when this task goes on with
 * interrupts on, in preempt_enable(). It must not last until the next interrupt.
 */
KTEST(latency_preempted, "latency.irqsoff.preempt_enable")
{
	bool ended = false;
	struct task *urgent;

	if (!boot_info.icount)
		KSKIP(t, "a host that stops the machine makes long sections");
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("options/function-trace", "0"), 0);
	task_set_affinity(current_task(), 1);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "irqsoff"), 0);
	urgent = task_create("urgent", PRIO_HIGH, 1, nap_often, &ended);
	KEXPECT_EQ(t, trace_test_put("tracing_max_latency", "0"), 0);
	while (!READ_ONCE(ended)) {
		preempt_disable();
		spin_for(NAP_NS / 10);
		preempt_enable();
	}
	KEXPECT(t, latency_longest().ticks < ns_to_clock_delta(NAP_NS / 20));
	task_join(urgent);
	task_set_affinity(current_task(), ~0u);
	trace_test_reset();
}

#define AWAY_NS (300 * NSEC_PER_MSEC)

KTEST(latency_away, "latency.cpu_away")
{
	static const char *const tracers[] = { "irqsoff", "preemptirqsoff" };
	unsigned int c = ktest_last_cpu();
	struct latency l;
	u64 gone, back;

	KNEED_TWO(t);
	for (unsigned int i = 0; i < ARRAY_SIZE(tracers); i++) {
		trace_test_reset();
		KEXPECT_EQ(t, trace_test_put("options/function-trace", "0"), 0);
		KEXPECT_EQ(t, trace_test_put("current_tracer", tracers[i]), 0);
		KEXPECT_EQ(t, cpu_down(c), 0);
		gone = arch_clock();
		task_sleep(AWAY_NS);
		back = arch_clock();
		KEXPECT_EQ(t, cpu_up(c), 0);
		task_sleep(10 * NSEC_PER_MSEC);
		snapshot_hold(&trace_top); /* no CPU writes it then */
		l = latency_longest();
		snapshot_release(&trace_top);
		KEXPECT(t, l.cpu != c || l.since > gone || l.until < back);
	}
	trace_test_reset();
}

/* Buffers are cleared, sized and set aside for a CPU that is late to come, or to park. */
KTEST(latency_late, "latency.cpu_is_late")
{
	struct fault *const faults[] = { &fault_cpu_park_late,
					 &fault_cpu_join_late };
	u64 usual = cpu_start_ns;
	struct ring_stats sum;

	KNEED_TWO(t);
	for (unsigned int i = 0; i < ARRAY_SIZE(faults); i++) {
		trace_test_reset();
		KEXPECT_EQ(t,
			   trace_test_put("current_tracer", "preemptirqsoff"),
			   0);
		if (i)
			KEXPECT_EQ(t, cpu_down(1), 0);
		faults[i]->cpu = i;
		fault_plant(faults[i], 1);
		cpu_start_ns = 20 * NSEC_PER_MSEC;
		KEXPECT_EQ(t, i ? cpu_up(1) : cpu_down(1), -ETIMEDOUT);
		cpu_start_ns = usual;
		KEXPECT_EQ(t, trace_test_put("buffer_size_kb", "64"), 0);
		KEXPECT_EQ(t, trace_test_put("trace", ""), 0);
		KEXPECT_EQ(t, trace_test_put("current_tracer", "wakeup"), 0);
		KEXPECT_EQ(t, trace_test_put("current_tracer", "irqsoff"), 0);
		expect_whole(t, true);
		fault_plant(faults[i], 0);
		faults[i]->cpu = 0;
		KEXPECT_EQ(t, cpu_up(1), 0);
		KEXPECT_EQ(t, trace_test_put("tracing_on", "0"), 0);
		KEXPECT(t, trace_test_books(&sum));
		KEXPECT(t, trace_test_kept_lines() >= 2);
	}
	trace_test_size(RING_DEFAULT_KB);
	trace_test_reset();
}
