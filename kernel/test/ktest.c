/* SPDX-License-Identifier: MIT */
/*
 * The runner of in-kernel tests: KTAP on the console, a comparison of resources
 * around each test, and the verdict that `poweroff` ends the machine with.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/test/fault.h>
#include <kernel/test/ktest.h>
#include <kernel/param.h>
#include <kernel/lib/bits.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/sched/task_list.h>
#include <kernel/time.h>
#include <kernel/lib/glob.h>
#include <kernel/mm/page.h>
#include <kernel/mm/kmalloc.h>

REGISTRY(struct ktest, ktests);
REGISTRY(struct ktest_resource, ktest_resources);

/* A detached task's memory comes back when the reaper has had its turn. */
#define SETTLE_NS (2 * NSEC_PER_SEC)
#define RESOURCES_MAX 8u

static bool any_failed;

unsigned int ktest_last_cpu(void)
{
	return bit_highest(cpus_online);
}

u32 ktest_random(u32 *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* ---- resources ---- */

/* Which small objects share a page is chance, so pages of kmalloc() count as free: its objects
 * are counted by themselves. */
static unsigned long count_pages(void)
{
	struct mm_stats s;

	mm_stats(&s);
	return s.pages_free + s.slab_pages;
}
KTEST_RESOURCE(pages, "free pages", count_pages);

static unsigned long count_objects(void)
{
	struct mm_stats s;

	mm_stats(&s);
	return s.kmalloc_objects;
}
KTEST_RESOURCE(objects, "kmalloc objects", count_objects);

static unsigned long count_tasks(void)
{
	return task_count();
}
KTEST_RESOURCE(tasks, "tasks", count_tasks);

static void count_all(unsigned long *counts)
{
	const struct ktest_resource *r;

	for_each_registered (r, ktest_resources)
		if ((unsigned int)(r - __start_ktest_resources) < RESOURCES_MAX)
			counts[r - __start_ktest_resources] = r->count();
}

static bool resources_settled(const unsigned long *before, unsigned long *after)
{
	unsigned int n = __stop_ktest_resources - __start_ktest_resources;

	n = min(n, RESOURCES_MAX);
	/* Sleeps count, and not the clock: the host may stop the machine for a while. */
	for (u64 slept = 0;; slept += NSEC_PER_MSEC) {
		count_all(after);
		if (!memcmp(before, after, n * sizeof(*after)))
			return true;
		if (slept > SETTLE_NS)
			return false;
		task_sleep(NSEC_PER_MSEC);
	}
}

static void compare_resources(struct ktest_run *t, const unsigned long *before)
{
	unsigned long after[RESOURCES_MAX] = { 0 };
	const struct ktest_resource *r;

	if (resources_settled(before, after))
		return;
	for_each_registered (r, ktest_resources) {
		unsigned int i = r - __start_ktest_resources;

		if (i >= RESOURCES_MAX || before[i] == after[i])
			continue;
		printk("# %s: %lu before, %lu after\n", r->name, before[i],
		       after[i]);
		t->failures++;
	}
}

/* Damage done before the first test is the first test's. */
static void check_guards(struct ktest_run *t)
{
	static unsigned int known;
	const void *first = NULL;
	unsigned int n = kmalloc_damaged(&first);

	if (n > known) {
		printk("# bytes behind the object at %p were written, %u such "
		       "objects in all\n",
		       first, n);
		t->failures++;
	}
	known = n;
}

const char *ktest_running;
bool ktest_with_fault;
void (*ktest_begin_hook)(void);

/* ---- results of a test ---- */

void ktest_fail(struct ktest_run *t, const char *file, int line,
		const char *text)
{
	t->failures++;
	printk("# %s:%d: %s: expected: %s\n", file, line, t->name, text);
}

void ktest_expect_eq(struct ktest_run *t, const char *file, int line,
		     const char *text, long long a, long long b)
{
	if (a == b)
		return;
	t->failures++;
	printk("# %s:%d: %s: expected: %s: %lld, %lld\n", file, line, t->name,
	       text, a, b);
}

/* ---- the run ---- */

struct totals {
	unsigned int run, passed, failed, skipped;
};

static void report_test(const struct ktest_run *t, struct totals *sum)
{
	sum->run++;
	if (t->failures) {
		sum->failed++;
		any_failed = true;
		printk("not ok %u %s\n", sum->run, t->name);
	} else if (t->skip) {
		sum->skipped++;
		printk("ok %u %s # SKIP %s\n", sum->run, t->name, t->skip);
	} else {
		sum->passed++;
		printk("ok %u %s\n", sum->run, t->name);
	}
}

/* The fault is there while the test runs, and not while memory is counted. */
static void run_with_fault(const struct ktest *test, struct ktest_run *t,
			   const char *fault)
{
	struct fault *f = fault ? fault_plant_text(fault) : NULL;
	u32 times;

	ktest_with_fault = f;
	test->fn(t);
	ktest_with_fault = false;
	if (!f)
		return;
	times = READ_ONCE(f->times);
	fault_plant(f, 0);
	printk("# %s could happen %u times\n", f->name, times);
}

static void run_one(const struct ktest *test, const char *fault,
		    struct totals *sum)
{
	unsigned long before[RESOURCES_MAX] = { 0 };
	struct ktest_run t = { .name = test->name };

	WRITE_ONCE(ktest_running, test->name);
	printk("# begin %s\n", test->name);
	if (ktest_begin_hook)
		ktest_begin_hook();
	count_all(before);
	run_with_fault(test, &t, fault);
	compare_resources(&t, before);
	check_guards(&t);
	WRITE_ONCE(ktest_running, NULL);
	report_test(&t, sum);
}

static bool test_name_matches(const struct ktest *test, const char *glob)
{
	return !glob || glob_match(glob, test->name);
}

int ktest_run_all(const char *glob, const char *fault)
{
	struct totals sum = { 0 };
	const struct ktest *test;
	unsigned int plan = 0;

	for_each_registered (test, ktests)
		plan += test_name_matches(test, glob);
	if (!plan)
		return -ENOENT;
	if (fault && !fault_plant_text(fault))
		return -EINVAL;
	printk("KTAP version 1\n1..%u\n", plan);
	for_each_registered (test, ktests)
		if (test_name_matches(test, glob))
			run_one(test, fault, &sum);
	printk("# nopl tests: %u passed, %u failed, %u skipped\n", sum.passed,
	       sum.failed, sum.skipped);
	return sum.failed;
}

int ktest_status(void)
{
	return any_failed;
}
