/* SPDX-License-Identifier: MIT */
/*
 * In-kernel tests. KTEST() registers one, `test [glob]` runs them, and the report is
 * KTAP. The runner compares resources (free pages, kmalloc objects, tasks, enabled
 * sites) before and after each test. A test that changes one of them fails.
 */
#ifndef KERNEL_KTEST_H
#define KERNEL_KTEST_H

#include <kernel/printk.h>
#include <kernel/types.h>

struct ktest_run;

struct ktest {
	const char *name; /* "sched.priority": subsystem.subject */
	void (*fn)(struct ktest_run *t);
};

struct ktest_run {
	const char *name;
	unsigned int failures;
	const char *skip; /* reason, if skipped */
};

#define KTEST(ident, test_name)                                                \
	static void ktest_##ident(struct ktest_run *t);                        \
	static const struct ktest ktest_reg_##ident REGISTER(                  \
		ktests) = { test_name, ktest_##ident };                        \
	static void ktest_##ident(struct ktest_run *t)

/* Record a failure with file, line and text. The test goes on. */
#define KEXPECT(t, cond)                                                       \
	do {                                                                   \
		if (!(cond))                                                   \
			ktest_fail(t, __FILE__, __LINE__, #cond);              \
	} while (0)
/* The same for two integers, which are printed. */
#define KEXPECT_EQ(t, a, b)                                                    \
	ktest_expect_eq(t, __FILE__, __LINE__, #a " == " #b, (long long)(a),   \
			(long long)(b))
/* As KEXPECT, but leaves the test function. */
#define KASSERT(t, cond)                                                       \
	do {                                                                   \
		if (!(cond)) {                                                 \
			ktest_fail(t, __FILE__, __LINE__, #cond);              \
			return;                                                \
		}                                                              \
	} while (0)
#define KSKIP(t, why)                                                          \
	do {                                                                   \
		(t)->skip = (why);                                             \
		return;                                                        \
	} while (0)

/* For a test of CPUs that go and come, or that interrupt one another. */
#define KNEED_TWO(t)                                                           \
	do {                                                                   \
		if (!ktest_last_cpu())                                         \
			KSKIP(t, "one CPU");                                   \
	} while (0)
/* The online CPU with the highest index: the one that such a test takes away. 0 when
 * no other CPU is online. */
unsigned int ktest_last_cpu(void);

/*
 * Sleep until cond is true, and return true. After 10 s return false: then something
 * hangs, because no machine is that slow. The sleeps are summed up, each as long as it was meant
 * to be at most: the host may stop the machine for longer. They become longer and longer. Under
 * -icount QEMU runs the other CPUs from the moment that a timer is set until it fires,
 * unless their tick comes first. With short sleeps only, no other task of this CPU
 * would ever run.
 */
#define KWAIT_NS (10 * NSEC_PER_SEC)
#define KWAIT(cond)                                                            \
	({                                                                     \
		u64 kwait_slept = 0, kwait_sleep = NSEC_PER_MSEC / 4;          \
		while (!(cond) && kwait_slept < KWAIT_NS) {                    \
			u64 kwait_begin = time_ns();                           \
			task_sleep(kwait_sleep);                               \
			kwait_slept +=                                         \
				min(time_ns() - kwait_begin, kwait_sleep);     \
			kwait_sleep = min(2 * kwait_sleep, 8 * TICK_NS);       \
		}                                                              \
		(cond);                                                        \
	})

void ktest_fail(struct ktest_run *t, const char *file, int line,
		const char *text);
void ktest_expect_eq(struct ktest_run *t, const char *file, int line,
		     const char *text, long long a, long long b);

/*
 * Run tests whose name matches the glob (NULL: all), each with a fault of fault_plant_text()
 * (NULL: none). Each is named when it begins, by a KTAP comment "# begin NAME". KTAP ends with the
 * marker line "# nopl tests: P passed, F failed, S skipped". Returns failures, -ENOENT when nothing
 * matches, or -EINVAL when there is no such fault. The result becomes poweroff's exit status.
 */
int ktest_run_all(const char *glob, const char *fault);
/* 0 if every test since boot passed, else 1. `poweroff` ends with this status. */
int ktest_status(void);

/* 24 bits, the same ones again from the same seed. */
u32 ktest_random(u32 *seed);

/*
 * The name of the test that runs now, NULL: none. For a panic's report, and for
 * tasks of the kernel's own that would disturb a test's count of resources.
 */
extern const char *ktest_running;
extern bool ktest_with_fault; /* it runs with a fault: kernel/test/again.h */

/* Called when ktest_running is set, before a test's memory is counted. It waits until no
 * other task does work that the test would be blamed for. May sleep. */
extern void (*ktest_begin_hook)(void);

/* A count that must be the same after a test as before. */
struct ktest_resource {
	const char *name;
	unsigned long (*count)(void);
};
#define KTEST_RESOURCE(ident, res_name, fn)                                    \
	static const struct ktest_resource ktest_resource_##ident REGISTER(    \
		ktest_resources) = { res_name, fn }

#endif
