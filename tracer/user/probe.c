/* SPDX-License-Identifier: MIT */
/* The probe, and its control file: probe.h. */
#include <tracer/user/probe.h>

#include <kernel/patch_path.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/patch/patch.h>
#include <tracer/ops/ops.h>
#include <tracer/core/tracer.h>

/*
 * A stall between two wake-ups goes unseen, so wake-ups must be dense. But each costs
 * some thousand instructions, and under -icount all CPUs share one. The period is a
 * prime, so that it does not keep step with the task that patches.
 */
#define PERIOD_NS 19973u

/* Under trace_mutex: a task that is made may be entered into lists that trace_mutex guards, so
 * no other mutex may be held around task_create(). NULL: none. */
static struct task *tasks[MAX_CPUS];

/* Written by the CPUs' own tasks. A reader may be one wake-up behind. */
static struct {
	u32 wakeups;
	u64 late_ns;
} seen[MAX_CPUS][PROBE_STRATEGIES];

static unsigned int strategy_index(void)
{
	const struct patch_strategy *s;
	unsigned int i = 0;

	for_each_registered (s, patch_strategies) {
		if (s->name == patch_strategy_name())
			break;
		i++;
	}
	return min(i, PROBE_STRATEGIES - 1u);
}

static void note_wakeup(unsigned int cpu, u64 late)
{
	unsigned int s = strategy_index();

	seen[cpu][s].wakeups++;
	seen[cpu][s].late_ns = max(seen[cpu][s].late_ns, late);
}

static void probe_wakeups(void *arg)
{
	unsigned int cpu = (struct task **)arg - tasks;
	u64 period, due, now, late = 0, earlier = 0;

	while (!task_should_stop()) {
		/* Where every wake-up takes long, the CPU must have time for others, too. */
		period = max((u64)PERIOD_NS, 4 * min(late, earlier));
		due = time_ns() + period;
		task_sleep(period);
		now = time_ns();
		earlier = late;
		late = now > due ? now - due : 0;
		note_wakeup(cpu, late);
	}
}

static int stop_all(void)
{
	int err = -EINVAL;

	for (unsigned int cpu = 0; cpu < MAX_CPUS; cpu++) {
		if (!tasks[cpu])
			continue;
		task_stop(tasks[cpu]);
		task_join(tasks[cpu]);
		tasks[cpu] = NULL;
		err = 0;
	}
	return err;
}

static int start_all(void)
{
	unsigned int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (tasks[cpu])
			return -EBUSY;
	memset(seen, 0, sizeof(seen));
	for_each_online_cpu (cpu) {
		tasks[cpu] = task_create("probe", PRIO_MAX, 1u << cpu,
					 probe_wakeups, &tasks[cpu]);
		if (!tasks[cpu]) {
			stop_all();
			return -ENOMEM;
		}
	}
	return 0;
}

int probe_start(void)
{
	mutex_assert_held(&trace_mutex);
	return start_all();
}

int probe_stop(void)
{
	mutex_assert_held(&trace_mutex);
	return stop_all();
}

void probe_figures(unsigned int strategy, struct probe_figures *f)
{
	*f = (struct probe_figures){ 0 };
	for (unsigned int cpu = 0; cpu < MAX_CPUS; cpu++) {
		f->wakeups += seen[cpu][strategy].wakeups;
		f->late_ns[cpu] = seen[cpu][strategy].late_ns;
	}
}

/* ---- Measuring ------------------------------------------------------------ */

#define MOMENTS 160u

static u64 longest_delay(void)
{
	struct probe_figures f;
	u64 ns = 0;

	probe_figures(strategy_index(), &f);
	for (unsigned int cpu = 0; cpu < MAX_CPUS; cpu++)
		ns = max(ns, f.late_ns[cpu]);
	return ns;
}

/*
 * The measured sites that the wake-up of a probe runs through: the batch leaves
 * them out. The probe would run into a breakpoint there, and the time of its
 * trap is not time for which the batch keeps a task waiting.
 */
static u32 *own_path;

static void learn_own_path(unsigned long ip, unsigned long parent,
			   struct trace_ops *ops)
{
	int site = site_find(ip - arch_site_length);

	(void)parent, (void)ops;
	if (site >= 0)
		__atomic_fetch_or(&own_path[site / 32], 1u << site % 32,
				  __ATOMIC_RELAXED);
}
PATCH_INDIRECT(trace_entry_call, learn_own_path);
static struct trace_ops learn_ops = { .entry = trace_entry_call,
				      .func = learn_own_path };

/* After the CPU's own probe has just slept, ns later. */
static void wait_for_moment(u64 ns)
{
	u64 end;

	task_sleep(2 * PERIOD_NS);
	end = time_ns() + ns;
	while (time_ns() < end)
		arch_cpu_relax();
}

/* The first *arg sites, without those that the probes themselves run. */
static u32 want_first(unsigned int w, const void *arg)
{
	unsigned int n = *(const unsigned int *)arg;
	u32 bits = n < 32 * w ? 0 : n < 32 * w + 32 ? (1u << n % 32) - 1 : ~0u;

	return bits & ~own_path[w];
}

static int switch_first(unsigned int n, bool on)
{
	struct patch_batch b;

	return patch_apply(&b, 0, site_words, on ? want_first : patch_want_off,
			   &n);
}

/* Every site on while the probes wake a few times, and off again. */
static int learn_path(void)
{
	int err;

	memset(own_path, 0, site_words * sizeof(u32));
	err = trace_ops_borrow(&learn_ops);
	if (err)
		return err;
	err = switch_first(site_count, true);
	if (!err) {
		task_sleep(50 * PERIOD_NS);
		err = switch_first(site_count, false);
	}
	trace_ops_give_back();
	return err;
}

static int measure_switches(unsigned int n)
{
	int err = learn_path();

	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < 2 * MOMENTS && !err; i++) {
		wait_for_moment(i / 2 * PERIOD_NS / MOMENTS);
		err = switch_first(n, i % 2 == 0);
	}
	return err;
}

int probe_measure(unsigned int n, u64 *longest_ns)
{
	int err = probe_start();

	if (err)
		return err;
	own_path = kmalloc_zeroed(site_words * sizeof(u32));
	err = own_path ? measure_switches(n) : -ENOMEM;
	probe_stop();
	*longest_ns = longest_delay();
	/* learn_own_path() may still be called, by a task preempted on its way there. */
	trace_quiesce(&learn_ops);
	kfree(own_path);
	return err;
}

#define BATCHES 8

static u64 measure_batch(bool on)
{
	struct patch_batch b;
	u64 start = arch_instructions();

	patch_apply(&b, 0, site_words, on ? patch_want_on : patch_want_off,
		    NULL);
	return arch_instructions() - start;
}

/* The least of some, which the tick did not interrupt. */
void probe_batches(u64 *enable, u64 *disable)
{
	unsigned int i, sites = max(site_boot.patched, 1u);

	*enable = *disable = ~0ull;
	for (i = 0; i < BATCHES; i++) {
		*enable = min(*enable, measure_batch(true));
		*disable = min(*disable, measure_batch(false));
	}
	*enable = *enable * 10 / sites;
	*disable = *disable * 10 / sites;
}

/* ---- Control file ------------------------------------------------------------- */

static void show_figures(struct seq *s, const char *name,
			 const struct probe_figures *f)
{
	seq_printf(s, "%-12s %9u", name, f->wakeups);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		seq_printf(s, " %10llu", (unsigned long long)f->late_ns[cpu]);
	seq_printf(s, "\n");
}

static void probe_show(struct ctl_handle *h, struct seq *s)
{
	const struct patch_strategy *p;
	struct probe_figures f;
	unsigned int i = 0;

	(void)h;
	seq_printf(s, "# strategy    wake-ups    longest a task at the highest "
		      "priority was kept from running, ns, by CPU\n");
	for_each_registered (p, patch_strategies) {
		probe_figures(i++, &f);
		if (f.wakeups)
			show_figures(s, p->name, &f);
	}
}

static int probe_write(struct ctl_handle *h, char *text)
{
	bool on;
	int err = ctl_bool(h, text, &on);

	if (err)
		return err;
	err = on ? probe_start() : probe_stop();
	if (err == -EBUSY)
		return ctl_error(h, err, "runs already; 0 stops it");
	if (err == -EINVAL)
		return ctl_error(h, err, "does not run; 1 starts it");
	return err;
}
TRACE_FILE(patch_probe, .path = TRACING "patch_probe", .show = probe_show,
	   .write = probe_write);
