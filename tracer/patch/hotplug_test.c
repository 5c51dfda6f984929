/* SPDX-License-Identifier: MIT */
/*
 * Proves that a CPU that was away has missed nothing of the tracer's: settings,
 * sites and buffers are as if it had been there, and that endless switching of
 * all sites, with each strategy, while CPUs go and come at random, loses no call
 * and counts none twice.
 */
#include <kernel/cpu/hotplug.h>
#include <kernel/errno.h>
#include <tracer/testing.h>
#include <tracer/ring/ring_control.h>
#include <kernel/test/again.h>

static void call_some(void *arg)
{
	for (unsigned long i = (unsigned long)arg; i; i--)
		victim_call(i);
}

static void call_on_cpu(unsigned int c, unsigned long n)
{
	task_join(
		task_create("caller", PRIO_LOW, 1u << c, call_some, (void *)n));
}

static u64 entries_held_by(unsigned int c)
{
	struct ring_stats s;

	ring_stats(rings, c, &s);
	return s.held;
}

/*
 * The entries of a CPU can still be read while it is away. Settings made meanwhile hold when it is
 * back.
 */
KTEST(hotplug_ring, "hotplug.trace_buffer")
{
	unsigned int c = ktest_last_cpu();
	char path[40], text[8];
	struct ring_stats sum;

	KNEED_TWO(t);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	call_on_cpu(c, 100);
	KEXPECT_EQ(t, entries_held_by(c), 100);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, entries_held_by(c), 100);
	snprintf(path, sizeof(path), "per_cpu/cpu%u/trace", c);
	KEXPECT(t, trace_test_read(path, text, sizeof(text), 7) > 0);
	/* The buffer is cleared while the CPU is away. */
	trace_test_put("trace", "");
	KEXPECT_EQ(t, entries_held_by(c), 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	call_on_cpu(c, 50);
	KEXPECT_EQ(t, entries_held_by(c), 50);
	KEXPECT(t, trace_test_books(&sum));
	KEXPECT_EQ(t, sum.written, 50);
	trace_test_reset();
}

KTEST(hotplug_mask, "hotplug.tracing_cpumask")
{
	unsigned int c = ktest_last_cpu();
	char mask[12];

	KNEED_TWO(t);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, trace_test_put("tracing_cpumask", "1"), 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	call_on_cpu(c, 20);
	KEXPECT_EQ(t, entries_held_by(c), 0);
	KEXPECT_EQ(t, cpu_down(c), 0);
	snprintf(mask, sizeof(mask), "%x", cpus_present());
	KEXPECT_EQ(t, trace_test_put("tracing_cpumask", mask), 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	call_on_cpu(c, 30);
	KEXPECT_EQ(t, entries_held_by(c), 30);
	trace_test_reset();
}

/* The CPU's ring is as large as the others', and its sites are on. */
KTEST(hotplug_settings, "hotplug.set_while_away")
{
	unsigned int c = ktest_last_cpu();
	unsigned long kb = ring_kb(rings, 0);
	char text[16];

	KNEED_TWO(t);
	trace_test_reset();
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", "64"), 0);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT_EQ(t, rings[c].nr, 16);
	call_on_cpu(c, 40);
	KEXPECT_EQ(t, entries_held_by(c), 40);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "nop"), 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	call_on_cpu(c, 10);
	KEXPECT_EQ(t, entries_held_by(c), 0);
	trace_test_reset();
	snprintf(text, sizeof(text), "%lu", kb);
	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", text), 0);
}

/*
 * A site is switched behind the CPU's start, and before it is online. So the CPU may hold the old
 * bytes, and synchronises once more: tools/stale looks here.
 */
KTEST(hotplug_late_text, "hotplug.switched_while_coming")
{
	unsigned int c = ktest_last_cpu();
	u64 usual = cpu_start_ns;

	KNEED_TWO(t);
	trace_test_reset();
	KEXPECT_EQ(t, cpu_down(c), 0);
	fault_cpu_join_late.cpu = c;
	fault_plant(&fault_cpu_join_late, 1);
	cpu_start_ns = 20 * NSEC_PER_MSEC;
	KEXPECT_EQ(t, cpu_up(c), -ETIMEDOUT);
	KASSERT(t, KWAIT(READ_ONCE(fault_cpu_join_late.times)));
	cpu_start_ns = usual;
	/* Of two stores that it has missed, no architecture lets a CPU see the first alone. */
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "nop"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	fault_plant(&fault_cpu_join_late, 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	call_on_cpu(c, 40);
	KEXPECT_EQ(t, entries_held_by(c), 40);
	trace_test_reset();
}

/* ---- the storm ---- */

struct caller {
	struct task *task;
	u32 steady, wrong;
};

static void call_all_victims(void *arg)
{
	struct caller *c = arg;

	while (!task_should_stop()) {
		unsigned long x = c->steady;

		c->wrong += victim_outer(x) != x + 4; /* calls victim_call() */
		c->wrong += victim_other(x) != x + 3;
		c->wrong += victim_varargs(3, 1, 2, 3) != 6;
		WRITE_ONCE(c->steady, c->steady + 1);
		if (x % 16 == 0)
			arch_cpu_relax();
	}
}

struct cpu_storm {
	struct task *task;
	u32 seed, toggles, errors;
};

static void toggle_until_stopped(void *arg)
{
	struct cpu_storm *s = arg;

	while (!task_should_stop()) {
		unsigned int c = 1 + ktest_random(&s->seed) % (nr_cpus - 1);

		s->errors += !!(cpu_online(c) ? cpu_down(c) : cpu_up(c));
		WRITE_ONCE(s->toggles, s->toggles + 1);
		task_sleep(ktest_random(&s->seed) % (2 * NSEC_PER_MSEC));
	}
	for (unsigned int c = 1; c < nr_cpus; c++)
		s->errors += !!cpu_up(c);
}

/* The storm goes on for this long, and for this many switches of each kind at least. Where it
 * comes to the most of them, something hangs. */
#define STORM_NS (100 * NSEC_PER_MSEC)
#define STORM_CPU_TOGGLES 12
#define STORM_SITE_TOGGLES 20
#define STORM_SITE_TOGGLES_MOST 20000

/* One caller is on each odd CPU. The others may be anywhere. */
static void start_callers(struct caller *callers)
{
	for (unsigned int i = 0; i < nr_cpus; i++)
		callers[i].task =
			task_create_expendable("caller", PRIO_LOW,
					       i % 2 ? 1u << i : ~0u,
					       call_all_victims, &callers[i]);
}

/*
 * Has each caller called at least once? A caller whose CPU is away waits for another
 * CPU.
 */
static bool all_called(const struct caller *callers)
{
	for (unsigned int i = 0; i < nr_cpus; i++)
		if (callers[i].task && !READ_ONCE(callers[i].steady))
			return false;
	return true;
}

/* Ends the callers, and returns how often victim_call() was called in all. */
static u32 end_callers(struct ktest_run *t, struct caller *callers)
{
	u32 calls = 0;

	for (unsigned int i = 0; i < nr_cpus; i++) {
		if (!callers[i].task)
			continue;
		task_stop(callers[i].task);
		KEXPECT_EQ(t, task_join(callers[i].task), 0);
		KEXPECT(t, callers[i].steady > 0);
		KEXPECT_EQ(t, callers[i].wrong, 0);
		calls += callers[i].steady;
	}
	return calls;
}

static void run_cpu_storm(struct ktest_run *t, const char *strategy)
{
	static struct trace_witness w;
	struct cpu_storm cpus_go = { .seed = 7 };
	struct caller callers[MAX_CPUS] = { 0 };
	u64 end = time_ns() + STORM_NS;
	u32 n = 0;

	KASSERT(t, trace_witness_begin(&w, strategy));
	start_callers(callers);
	cpus_go.task = task_create("cpu-storm", PRIO_NORMAL, ~0u,
				   toggle_until_stopped, &cpus_go);
	while ((time_ns() < end || n < STORM_SITE_TOGGLES ||
		READ_ONCE(cpus_go.toggles) < STORM_CPU_TOGGLES ||
		!all_called(callers)) &&
	       n < STORM_SITE_TOGGLES_MOST) {
		KEXPECT_EQ(t, trace_witness_toggle(&w, ++n % 2), 0);
		/*
		 * Callers have a low priority. One whose CPU is away runs on this
		 * task's CPU, so this task sleeps.
		 */
		task_sleep(NSEC_PER_MSEC / 10);
	}
	KEXPECT(t, cpus_go.toggles >= STORM_CPU_TOGGLES);
	task_stop(cpus_go.task);
	task_join(cpus_go.task);
	KEXPECT_EQ(t, cpus_go.errors, 0);
	w.steady_made = end_callers(t, callers);
	trace_witness_end(&w, t);
}

KTEST(hotplug_storm, "hotplug.storm")
{
	cpumask_t all = cpus_online;
	const struct patch_strategy *s;

	KNEED_TWO(t);
	for_each_registered (s, patch_strategies)
		if (!patch_refused(s))
			run_cpu_storm(t, s->name);
	KEXPECT_EQ(t, cpus_online, all);
}
