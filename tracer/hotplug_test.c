/*
 * Proves that a CPU that was away has missed nothing of the tracer's: settings,
 * sites and buffers are as if it had been there; and that endless switching of
 * all sites, with each strategy, while CPUs go and come at random, loses no call
 * and counts none twice.
 */
#include <kernel/bits.h>
#include <kernel/hotplug.h>
#include <tracer/testing.h>

static unsigned int last_cpu(void)
{
	return bit_highest(cpus_online);
}

static void call_some(void *arg)
{
	for (unsigned long i = (unsigned long)arg; i; i--)
		victim_call(i);
}

static void call_on(unsigned int c, unsigned long n)
{
	task_join(
		task_create("caller", PRIO_LOW, 1u << c, call_some, (void *)n));
}

static u64 held_by(unsigned int c)
{
	struct ring_stats s;

	ring_stats(c, &s);
	return s.held;
}

/* What it wrote can still be read; what it is told meanwhile holds. */
KTEST(hotplug_ring, "hotplug.trace_buffer")
{
	unsigned int c = last_cpu();
	char path[40], text[8];
	struct ring_stats sum;

	if (!c)
		KSKIP(t, "one CPU");
	KEXPECT_EQ(t, trace_test_victim(), 0);
	call_on(c, 100);
	KEXPECT_EQ(t, held_by(c), 100);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, held_by(c), 100);
	snprintf(path, sizeof(path), "per_cpu/cpu%u/trace", c);
	KEXPECT(t, trace_test_read(path, text, sizeof(text), 7) > 0);
	/* Cleared, while it is away. */
	trace_test_put("trace", "");
	KEXPECT_EQ(t, held_by(c), 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	call_on(c, 50);
	KEXPECT_EQ(t, held_by(c), 50);
	KEXPECT(t, trace_test_books(&sum));
	KEXPECT_EQ(t, sum.written, 50);
	trace_test_reset();
}

KTEST(hotplug_mask, "hotplug.tracing_cpumask")
{
	unsigned int c = last_cpu();
	char mask[12];

	if (!c)
		KSKIP(t, "one CPU");
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, trace_test_put("tracing_cpumask", "1"), 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	call_on(c, 20);
	KEXPECT_EQ(t, held_by(c), 0);
	KEXPECT_EQ(t, cpu_down(c), 0);
	snprintf(mask, sizeof(mask), "%x", ALL_CPUS);
	KEXPECT_EQ(t, trace_test_put("tracing_cpumask", mask), 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	call_on(c, 30);
	KEXPECT_EQ(t, held_by(c), 30);
	trace_test_reset();
}

/* Its ring is as large as the others', and its sites are on. */
KTEST(hotplug_settings, "hotplug.set_while_away")
{
	unsigned int c = last_cpu();
	unsigned long kb = ring_kb();
	char text[16];

	if (!c)
		KSKIP(t, "one CPU");
	trace_test_reset();
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", "64"), 0);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT_EQ(t, rings[c].nr, 16);
	call_on(c, 40);
	KEXPECT_EQ(t, held_by(c), 40);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "nop"), 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	call_on(c, 10);
	KEXPECT_EQ(t, held_by(c), 0);
	trace_test_reset();
	snprintf(text, sizeof(text), "%lu", kb);
	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", text), 0);
}

/* ---- the storm ---- */

/*
 * An independent witness: every traced call comes here. victim_call() is on all
 * along, victim_other() never, all others go on and off.
 */
static struct witness {
	struct trace_ops ops;
	unsigned long steady, never; /* sites */
	u32 steady_calls, never_calls, other_calls;
} witness;

static void see_call(unsigned long ip, unsigned long parent,
		     struct trace_ops *ops)
{
	struct witness *w = container_of(ops, struct witness, ops);
	unsigned long site = arch_site_from_return(ip);
	u32 *count = &w->other_calls;

	(void)parent;
	if (site == w->steady)
		count = &w->steady_calls;
	else if (site == w->never)
		count = &w->never_calls;
	__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

struct caller {
	struct task *task;
	u32 steady, wrong;
};

static void call_all(void *arg)
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

static void toggle_cpus(void *arg)
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

/* All sites but the two on or off. */
static int set_sites(struct patch_batch *b, bool on, int steady, int never)
{
	for (unsigned int w = 0; w < site_words; w++)
		site_bits.want[w] = on ? site_bits.patchable[w] : 0;
	site_bits.want[steady / 32] |= 1u << steady % 32;
	site_bits.want[never / 32] &= ~(1u << never % 32);
	return patch_apply(b, 0, site_words);
}

#define STORM_CPU_TOGGLES 12
#define STORM_SITE_TOGGLES 20

/* trace_mutex held. Callers begin after the steady site is on, and end before. */
static void storm(struct ktest_run *t, int steady, int never)
{
	struct cpu_storm cpus_go = { .seed = 7 };
	struct caller callers[MAX_CPUS] = { 0 };
	u64 end = time_ns() + 3 * KWAIT_NS;
	struct patch_batch b;
	u32 calls = 0, n = 0;

	KEXPECT_EQ(t, patch_site(&b, steady, true), 0);
	for (unsigned int i = 0; i < nr_cpus; i++)
		callers[i].task = task_create_expendable("caller", PRIO_LOW,
							 i % 2 ? 1u << i : ~0u,
							 call_all, &callers[i]);
	cpus_go.task = task_create("cpu-storm", PRIO_NORMAL, ~0u, toggle_cpus,
				   &cpus_go);
	while ((n < STORM_SITE_TOGGLES ||
		READ_ONCE(cpus_go.toggles) < STORM_CPU_TOGGLES) &&
	       time_ns() < end)
		KEXPECT_EQ(t, set_sites(&b, ++n % 2, steady, never), 0);
	KEXPECT(t, cpus_go.toggles >= STORM_CPU_TOGGLES);
	task_stop(cpus_go.task);
	task_join(cpus_go.task);
	KEXPECT_EQ(t, cpus_go.errors, 0);
	for (unsigned int i = 0; i < nr_cpus; i++) {
		task_stop(callers[i].task);
		KEXPECT_EQ(t, task_join(callers[i].task), 0);
		KEXPECT(t, callers[i].steady > 0);
		KEXPECT_EQ(t, callers[i].wrong, 0);
		calls += callers[i].steady;
	}
	KEXPECT_EQ(t, set_sites(&b, false, steady, never), 0);
	KEXPECT_EQ(t, patch_site(&b, steady, false), 0);
	KEXPECT_EQ(t, witness.steady_calls, calls);
	KEXPECT_EQ(t, witness.never_calls, 0);
	KEXPECT(t, witness.other_calls > 0);
}

static void storm_with(struct ktest_run *t, const char *strategy)
{
	int steady = trace_test_site(victim_call);
	int never = trace_test_site(victim_other);
	struct patch_stats before, after;
	cpumask_t all = cpus_online;
	const char *why;

	KASSERT(t, steady >= 0 && never >= 0);
	trace_test_reset();
	patch_stats(&before);
	witness = (struct witness){ .ops = { trace_entry_call, see_call },
				    .steady = site_address(steady),
				    .never = site_address(never) };
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, patch_strategy_set(strategy, &why), 0);
	__atomic_store_n(&trace_ops, &witness.ops, __ATOMIC_RELEASE);
	storm(t, steady, never);
	__atomic_store_n(&trace_ops, &trace_ops_off, __ATOMIC_RELEASE);
	mutex_unlock(&trace_mutex);
	patch_stats(&after);
	KEXPECT_EQ(t, after.enabled, before.enabled);
	KEXPECT_EQ(t, cpus_online, all);
}

KTEST(hotplug_storm, "hotplug.storm")
{
	const struct patch_strategy *s;
	const char *why, *now = patch_strategy_name();

	if (nr_cpus == 1)
		KSKIP(t, "one CPU");
	for_each_registered (s, patch_strategies)
		if (!patch_refused(s))
			storm_with(t, s->name);
	mutex_lock(&trace_mutex);
	patch_strategy_set(now, &why);
	mutex_unlock(&trace_mutex);
}
