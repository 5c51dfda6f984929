/* SPDX-License-Identifier: MIT */
/*
 * The profiler against calls that a test counts: as many hits, on every CPU together, and as
 * much time as the calls took by the clock. It changes nothing that the tracer records.
 */
#include <tracer/testing.h>
#include <tracer/calls/variance.h>

#include <kernel/mm/kmalloc.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

#define ROWS 2000

/* The hits of a function on all CPUs, and in *us the time. */
static unsigned long profile_hits(const char *name, u64 *us)
{
	char file[40], *text = kmalloc(ROWS), *row;
	unsigned long sum = 0, whole = 0;

	*us = 0;
	for (unsigned int cpu = 0; text && cpu < nr_cpus; cpu++) {
		snprintf(file, sizeof(file), "trace_stat/function%u", cpu);
		trace_test_read(file, text, ROWS, 100);
		row = strstr(text, name);
		if (!row)
			continue;
		row += 30;
		while (*row == ' ')
			row++;
		for (whole = 0; *row >= '0' && *row <= '9'; row++)
			whole = 10 * whole + (*row - '0');
		sum += whole;
		while (*row == ' ')
			row++;
		for (whole = 0; *row >= '0' && *row <= '9'; row++)
			whole = 10 * whole + (*row - '0');
		*us += whole;
	}
	kfree(text);
	return sum;
}

static void spin_for_us(unsigned long us)
{
	u64 end = time_ns() + us * NSEC_PER_USEC;

	while (time_ns() < end)
		arch_cpu_relax();
}

static void choose_victims(struct ktest_run *t)
{
	trace_test_reset();
	KEXPECT_EQ(t,
		   trace_test_put("set_ftrace_filter",
				  "victim_leaf victim_callback"),
		   0);
}

KTEST(profile_counts, "profile.hits_and_time")
{
	unsigned int cpu, cpus_used = 0;
	u64 us, began;

	choose_victims(t);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "1"), 0);
	for_each_online_cpu (cpu) {
		task_set_affinity(current_task(), 1u << cpu);
		for (unsigned int i = 0; i < 1000; i++)
			victim_leaf(i);
		cpus_used++;
	}
	task_set_affinity(current_task(), ~0u);
	began = time_ns();
	for (unsigned int i = 0; i < 10; i++)
		victim_callback(spin_for_us, 2000);
	began = (time_ns() - began) / NSEC_PER_USEC;
	victim_call(1);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "0"), 0);
	victim_leaf(1);
	KEXPECT_EQ(t, profile_hits("victim_leaf ", &us), 1000 * cpus_used);
	KEXPECT_EQ(t, profile_hits("victim_callback ", &us), 10);
	KEXPECT(t, us >= 20000 - 10 && us <= began);
	KEXPECT_EQ(t, profile_hits("victim_call ", &us), 0);
	/* With the tracer nop nothing is in the buffer. */
	KEXPECT_EQ(t, trace_test_written(), 0);
	/* Beginning again begins at 0. */
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "1"), 0);
	KEXPECT_EQ(t, profile_hits("victim_leaf ", &us), 0);
	trace_test_reset();
}

KTEST(profile_beside, "profile.beside_the_function_tracer")
{
	KNEED_CLIENT(t, "graph");
	u64 us;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "1"), 0);
	for (unsigned int i = 0; i < 50; i++)
		victim_call(i);
	KEXPECT_EQ(t, trace_test_written(), 50);
	KEXPECT_EQ(t, profile_hits("victim_call ", &us), 50);
	/* The two take returns in different ways. */
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function_graph"),
		   -EBUSY);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "2"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function_graph"), 0);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "1"), -EBUSY);
	trace_test_reset();
}

static notrace void profile_anew(unsigned long x)
{
	trace_test_put("function_profile_enabled", "0");
	trace_test_put("function_profile_enabled", "1");
	victim_leaf(x);
}

/* A call that began in an earlier profile is not in the table of this one, nor is its time. */
KTEST(profile_across, "profile.call_across_two")
{
	u64 us;

	choose_victims(t);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "1"), 0);
	victim_callback(profile_anew, 1);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "0"), 0);
	KEXPECT_EQ(t, profile_hits("victim_leaf ", &us), 1);
	KEXPECT_EQ(t, profile_hits("victim_callback ", &us), 0);
	KEXPECT_EQ(t, us, 0);
	trace_test_reset();
}

/* Is the function's site on, and as many in all? */
static bool function_is_on(const char *line, unsigned int all)
{
	char text[400];
	unsigned int lines = 0;

	trace_test_read("enabled_functions", text, sizeof(text), 100);
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	return lines == all && strstr(text, line);
}

/* While the profiler alone wants calls, its sites follow each write of the filters. */
KTEST(profile_filters, "profile.follows_the_filters")
{
	u64 us;

	trace_test_reset();
	KEXPECT_EQ(t,
		   trace_test_put("set_ftrace_filter",
				  "victim_leaf victim_call"),
		   0);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "1"), 0);
	KEXPECT(t, function_is_on("victim_call (1)", 2));
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_other"), 0);
	KEXPECT(t, function_is_on("victim_other (1)", 1));
	victim_leaf(1);
	victim_other(1);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_notrace", "victim_other"), 0);
	KEXPECT(t, function_is_on("", 0));
	victim_other(1);
	KEXPECT_EQ(t, profile_hits("victim_leaf ", &us), 0);
	KEXPECT_EQ(t, profile_hits("victim_other ", &us), 1);
	trace_test_reset();
}

static void call_spinner(unsigned long us)
{
	victim_callback(spin_for_us, us);
}

/* Of two calls, one in the other, which both take as long, without the time of the inner. */
KTEST(profile_graph_time, "profile.graph_time")
{
	u64 us, real;

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_callback"),
		   0);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "1"), 0);
	victim_callback(call_spinner, 2000);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "0"), 0);
	KEXPECT_EQ(t, profile_hits("victim_callback ", &us), 2);
	KEXPECT(t, us >= 2 * 2000 - 2);
	KEXPECT_EQ(t, trace_test_put("options/graph-time", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "1"), 0);
	real = time_ns();
	victim_callback(call_spinner, 2000);
	real = time_ns() - real;
	KEXPECT_EQ(t, trace_test_put("function_profile_enabled", "0"), 0);
	KEXPECT_EQ(t, profile_hits("victim_callback ", &us), 2);
	KEXPECT(t, us >= 2000 - 2 && us <= real / NSEC_PER_USEC);
	trace_test_reset();
}

/* The variance of n values, the first of them x, the second y, the third x again. */
static u64 variance_of(u64 n, u64 x, u64 y)
{
	u64 squares = 0;

	for (unsigned int i = 0; i < 2; i++) {
		u64 one = 0;

		add_square(&one, i ? y : x);
		squares += one * (n / 2);
	}
	return call_variance(n, (x + y) * (n / 2), squares);
}

/* Where Linux's own products, n * squares and sum * sum, do not fit, too. */
KTEST(profile_variance, "profile.variance")
{
	u64 squares = 0;

	KEXPECT_EQ(t, call_variance(0, 0, 0), 0);
	KEXPECT_EQ(t, call_variance(1, 5, 25), 0);
	KEXPECT_EQ(t, call_variance(2, 5, 13), 0);  /* 2 and 3: 0.5 */
	KEXPECT_EQ(t, call_variance(3, 10, 46), 6); /* 1, 3 and 6: 6.33 */
	KEXPECT_EQ(t, variance_of(4, 10, 30), 133);
	KEXPECT_EQ(t, variance_of(1 << 20, 100000, 300000), 10000009536);
	KEXPECT_EQ(t, variance_of(1 << 30, 10, 30), 100);
	add_square(&squares, 1ull << 31);
	KEXPECT(t, squares == 1ull << 62);
	add_square(&squares, 1ull << 32);
	KEXPECT(t, squares == ~0ull);
	add_square(&squares, 3);
	KEXPECT(t, squares == ~0ull);
}
