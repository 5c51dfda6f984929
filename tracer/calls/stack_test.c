/* SPDX-License-Identifier: MIT */
/*
 * Proves of the stack tracer: that the depth it shows is the one that a function measures by
 * itself, that the lines add up and name the functions, and that its filter holds.
 */
#include <tracer/testing.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/core/filter.h>
#include <kernel/test/again.h>

#define TEXT 4096
#define ENABLED "/proc/sys/kernel/stack_tracer_enabled"
#define LEVELS 6

static unsigned long deepest; /* that measure_depth() has seen */

/* A leaf, so that the stack pointer is its caller's, less its own frame. */
static notrace noinline void measure_depth(unsigned long x)
{
	volatile char here;
	unsigned long top =
		(unsigned long)current_task()->stack + TASK_STACK_SIZE;

	(void)x;
	deepest = max(deepest, top - (unsigned long)&here);
}

static notrace void dive_levels(unsigned long x)
{
	if (x)
		victim_callback(dive_levels, x - 1);
	else
		victim_callback(measure_depth, x);
}

static unsigned long parse_column(const char **at)
{
	unsigned long n = 0;

	while (**at == ' ')
		++*at;
	for (; **at >= '0' && **at <= '9'; ++*at)
		n = 10 * n + **at - '0';
	return n;
}

/* The depths must fall, and each must be its own size more than the next. */
static unsigned long check_lines(struct ktest_run *t, const char *text)
{
	unsigned long first = 0, depth, size, expected = 0;
	const char *line = text;

	for (unsigned int i = 0; (line = strchr(line, ')')); i++) {
		line++;
		depth = parse_column(&line);
		size = parse_column(&line);
		if (i > 1)
			KEXPECT_EQ(t, depth, expected);
		if (i == 1)
			first = depth;
		expected = depth - size;
	}
	KEXPECT_EQ(t, expected, 0);
	return first;
}

KTEST(stack_depth, "stack_tracer.depth")
{
	char *text = kmalloc(TEXT), want[32], *at;
	unsigned int levels = 0;
	unsigned long shown;

	KASSERT(t, text);
	trace_test_reset();
	deepest = 0;
	KEXPECT_EQ(t, trace_test_put("stack_trace_filter", "victim_callback"),
		   0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
	KEXPECT_EQ(t, ctl_echo(ENABLED, "1", false, NULL, 0), 0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 1);
	KEXPECT_EQ(t, trace_test_put("stack_max_size", "0"), 0);
	victim_callback(measure_depth, 1);
	dive_levels(LEVELS);
	victim_callback(measure_depth,
			1); /* is no deeper, and changes nothing */
	KEXPECT_EQ(t, ctl_echo(ENABLED, "0", false, NULL, 0), 0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
	KEXPECT(t, trace_test_read("stack_trace", text, TEXT, 7) > 0);
	shown = check_lines(t, text);
	/* measure_depth() is called from there, and has a frame of its own. */
	KEXPECT(t, shown > 0 && shown <= deepest && deepest - shown < 512);
	snprintf(want, sizeof(want), "%lu\n", shown);
	trace_test_read("stack_max_size", text, TEXT, 64);
	KEXPECT(t, !strcmp(text, want));
	KEXPECT(t, trace_test_read("stack_trace", text, TEXT, 4096) > 0);
	for (at = text; (at = strstr(at, "   victim_callback+")); at++)
		levels++;
	KEXPECT_EQ(t, levels, LEVELS + 1);
	KEXPECT(t, strstr(text, "   task_start+"));
	KEXPECT_EQ(t, trace_test_put("stack_max_size", "12"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("stack_max_size", "0"), 0);
	KEXPECT(t, trace_test_read("stack_trace", text, TEXT, 100) > 0);
	KEXPECT(t, strstr(text, "(0 entries)") && strstr(text, "disabled"));
	trace_test_put("stack_trace_filter", "");
	trace_test_reset();
	kfree(text);
}

/* Every function, every CPU, and a tracer: the tracer's entries stay right. */
KTEST(stack_everything, "stack_tracer.under_load")
{
	struct trace_worker *w = trace_workers;
	struct ring_stats s;
	unsigned long calls;
	char text[24];

	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, ctl_echo(ENABLED, "1", false, NULL, 0), 0);
	trace_test_put("trace", "");
	KASSERT(t, trace_workers_start(w, 500));
	calls = trace_workers_join(w);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, calls);
	trace_test_read("stack_max_size", text, sizeof(text), 64);
	KEXPECT(t, strcmp(text, "0\n"));
	KEXPECT_EQ(t, ctl_echo(ENABLED, "0", false, NULL, 0), 0);
	trace_test_put("stack_max_size", "0");
	trace_test_reset();
}

/* As a CPU may see it while another one empties the filter: the count from before, and no bits
 * any more. */
KTEST(stack_no_bits, "stack_tracer.filter_without_bits")
{
	char text[24];

	trace_test_reset();
	KEXPECT_EQ(t, ctl_echo(ENABLED, "1", false, NULL, 0), 0);
	KEXPECT(t, !site_bits.stack);
	WRITE_ONCE(filter_stack.count, 1);
	KEXPECT_EQ(t, trace_test_put("stack_max_size", "0"), 0);
	WRITE_ONCE(filter_stack.count, 0);
	trace_test_read("stack_max_size", text, sizeof(text), 64);
	KEXPECT(t, strcmp(text, "0\n"));
	KEXPECT_EQ(t, ctl_echo(ENABLED, "0", false, NULL, 0), 0);
	KEXPECT_EQ(t, trace_test_put("stack_max_size", "0"), 0);
}
