/* SPDX-License-Identifier: MIT */
/*
 * Proves of the probe that it sees delays: `stop` keeps the task at the highest priority waiting
 * for as long as the batch is, and the strategies that stop no CPU do not. Counted under -icount,
 * where nothing else can delay a task.
 */
#include <boot/boot_info.h>
#include <tracer/testing.h>

#include <tracer/patch/patch_live.h>
#include <tracer/user/probe.h>
#include <tracer/patch/patch_break.h>
#include <kernel/lock/mutex.h>
#include <kernel/test/again.h>

/* With strategy `name`, all sites. 0 if it is refused here. */
static u64 stall_with(struct ktest_run *t, const char *name)
{
	const char *why;
	u64 few = 0, all = 0;

	if (patch_strategy_set(name, &why))
		return 0;
	KEXPECT_EQ(t, probe_measure(PATCH_CHUNK, &few), 0);
	KEXPECT_EQ(t, probe_measure(site_count, &all), 0);
	printk("# %s: late by %llu ns at most with %u sites, %llu with %u\n",
	       name, (unsigned long long)few, PATCH_CHUNK,
	       (unsigned long long)all, site_count);
	return all;
}

/*
 * One CPU: with more, -icount lets the clock of each run on while others execute. Without `stop`,
 * the window of a chunk is the only delay.
 */
KTEST(probe_stalls, "probe.only_stop_stalls_for_the_batch")
{
	const char *before = patch_strategy_name(), *why;
	u64 stop, late;

	if (!boot_info.icount || cpus_online != 1)
		KSKIP(t, "needs -icount and one CPU");
	trace_test_reset();
	mutex_lock(&trace_mutex);
	stop = stall_with(t, "stop");
	late = stall_with(t, "breakpoint");
	KEXPECT(t, late && late < stop * 4 / 5);
	KEXPECT(t, stall_with(t, "word") < stop * 4 / 5);
	KEXPECT_EQ(t, patch_strategy_set(before, &why), 0);
	mutex_unlock(&trace_mutex);
}

static void start_probe(void *arg)
{
	*(int *)arg = trace_test_put("patch_probe", "1");
}

/* With option function-fork each task that is made takes trace_mutex, as bench does before it
 * measures: neither waits for the other. */
KTEST(probe_forks, "probe.beside_bench_with_function_fork")
{
	struct task *other;
	int err = -1;
	u64 ns;

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("options/function-fork", "1"), 0);
	mutex_lock(&trace_mutex);
	other = task_create("starter", PRIO_NORMAL, ~0u, start_probe, &err);
	KEXPECT(t, other);
	task_sleep(10 * NSEC_PER_MSEC);
	KEXPECT_EQ(t, probe_measure(8, &ns), 0);
	mutex_unlock(&trace_mutex);
	KEXPECT(t, other && !task_join(other));
	KEXPECT_EQ(t, err, 0);
	KEXPECT_EQ(t, trace_test_put("patch_probe", "0"), 0);
	trace_test_reset();
}

KTEST(probe_file, "probe.file")
{
	char text[400];

	KEXPECT_EQ(t, trace_test_put("patch_probe", "2"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("patch_probe", "0"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("patch_probe", "1"), 0);
	KEXPECT_EQ(t, trace_test_put("patch_probe", "1"), -EBUSY);
	task_sleep(2 * NSEC_PER_MSEC);
	KEXPECT_EQ(t, trace_test_put("patch_probe", "0"), 0);
	KEXPECT(t, trace_test_read("patch_probe", text, sizeof(text), 9) > 0);
	KEXPECT(t, strstr(text, patch_strategy_name()));
}
