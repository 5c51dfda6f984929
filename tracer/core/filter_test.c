/* SPDX-License-Identifier: MIT */
/*
 * Proves of set_ftrace_filter and set_ftrace_notrace that they take the same words as Linux's:
 * names, globs, numbers, `!`, `>` and `>>`, that a bad word changes nothing, and that sites follow
 * at once while the tracer runs.
 */
#include <tracer/testing.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/sched/task.h>
#include <kernel/test/again.h>

#define TEXT 32768

/* Does the file hold exactly `what`? */
static bool filter_file_holds(const char *file, const char *what)
{
	char text[512];

	return trace_test_read(file, text, sizeof(text), 64) >= 0 &&
	       !strcmp(text, what);
}

static bool filter_is(const char *what)
{
	return filter_file_holds("set_ftrace_filter", what);
}

#define NONE "#### all functions enabled ####\n"
#define BOTH "victim_call\nvictim_other\n"

KTEST(filter_words, "filter.names_globs_removal")
{
	trace_test_reset();
	KEXPECT(t, filter_is(NONE));
	KEXPECT(t, filter_file_holds("set_ftrace_notrace",
				     "#### no functions disabled ####\n"));
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_call"), 0);
	KEXPECT(t, filter_is("victim_call\n"));
	KEXPECT_EQ(t, trace_test_add("set_ftrace_filter", "victim_other"), 0);
	KEXPECT(t, filter_is(BOTH));
	KEXPECT_EQ(t, trace_test_add("set_ftrace_filter", "!victim_call"), 0);
	KEXPECT(t, filter_is("victim_other\n"));
	KEXPECT_EQ(t,
		   trace_test_put("set_ftrace_filter",
				  " victim_call\tvictim_ot*  "),
		   0);
	KEXPECT(t, filter_is(BOTH));
	KEXPECT_EQ(t,
		   trace_test_put("set_ftrace_filter", "victim_[co][at]*[lr]"),
		   0);
	KEXPECT(t, filter_is(BOTH));
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "*ctim_?all"), 0);
	KEXPECT(t, filter_is("victim_call\n"));
	KEXPECT_EQ(t,
		   trace_test_put("set_ftrace_filter",
				  "victim_[co][at]*[lr] !*_other"),
		   0);
	KEXPECT(t, filter_is("victim_call\n"));
	KEXPECT_EQ(t, trace_test_add("set_ftrace_filter", ""), 0);
	KEXPECT(t, filter_is("victim_call\n"));
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", ""), 0);
	KEXPECT(t, filter_is(NONE));
	trace_test_reset();
}

/* The file that the message of a wrong name leads to. */
static const char *file_for(const char *name)
{
	struct symbol f;

	return sites_all_known && symbol_find(name, &f) ?
		       "unpatchable_functions" :
		       "available_filter_functions";
}

KTEST(filter_errors, "filter.errors_change_nothing")
{
	static const char *const bad[] = {
		"no_such_function",
		"victim_call no_such_function",
		"no_such_*",
		"0",
		"999999",
		"!no_such_function",
		"victim_cal",
		"victim_call_notrace",
		"!",
	};

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_other"), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", bad[i]),
			   -EINVAL);
		KEXPECT(t, strstr(trace_test_error, file_for(bad[i])));
		KEXPECT_EQ(t, trace_test_add("set_ftrace_notrace", bad[i]),
			   -EINVAL);
		KEXPECT(t, filter_is("victim_other\n"));
	}
	KEXPECT(t, filter_file_holds("set_ftrace_notrace",
				     "#### no functions disabled ####\n"));
	KEXPECT_EQ(t, trace_test_put("current_tracer", "functions"), -EINVAL);
	KEXPECT(t, strstr(trace_test_error, " function"));
	KEXPECT(t, strstr(trace_test_error, " nop"));
	KEXPECT(t, filter_file_holds("current_tracer", "nop\n"));
	trace_test_reset();
}

/* Words of modules are looked for among all of their lines, so these have a limit. */
KTEST(filter_many_modules, "filter.functions_of_many_modules")
{
	char *text = kmalloc(16 * 300), want[16];
	size_t len = 0;

	KASSERT(t, text);
	for (unsigned int i = 0; i < 300; i++)
		len += snprintf(text + len, 16, "f%04u:mod:some ", i);
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("set_ftrace_notrace", "f:mod:any"), 0);
	KEXPECT_EQ(t, trace_test_add("set_ftrace_notrace", text), -E2BIG);
	KEXPECT(t, strstr(trace_test_error, "4096"));
	trace_test_read("set_ftrace_notrace", want, sizeof(want), 1);
	KEXPECT(t, !strcmp(want, "f:mod:any\n"));
	text[15 * 200] = '\0';
	KEXPECT_EQ(t, trace_test_add("set_ftrace_notrace", text), 0);
	kfree(text);
	trace_test_reset();
}

/* As Linux takes them before the module is loaded. Here none ever is. */
KTEST(filter_modules, "filter.functions_of_modules")
{
	KNEED_CLIENT(t, "graph");
	static const char *const bad[] = {
		"nosuch:mod:",
		"!victim_call:mod:any",
		"a:mod:b no_such_function",
		"victim_call !a:mod:b !a:mod:b",
		"victim_other:traceoff !no:mod:any",
	};

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "nosuch:mod:any"), 0);
	KEXPECT(t, filter_is("nosuch:mod:any\n"));
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter",
				  "victim_call *:mod:b a:mod:b *:mod:b "
				  "victim_other:traceoff"),
		   0);
	KEXPECT(t, filter_is("victim_call\nnosuch:mod:any\na:mod:b\n*:mod:b\n"
			     "victim_other:traceoff:unlimited\n"));
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 2);
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter",
				  "!victim_other:traceoff !victim_call"),
		   0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		KEXPECT_EQ(t, trace_test_add("set_ftrace_filter", bad[i]),
			   -EINVAL);
		KEXPECT(t, *trace_test_error);
		KEXPECT(t, filter_is("nosuch:mod:any\na:mod:b\n*:mod:b\n"));
	}
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter",
				  "!nosuch:mod:any !*:mod:b !a:mod:b"),
		   0);
	KEXPECT(t, filter_is(NONE));
	KEXPECT(t, site_weight(live_calls.enabled) > 100);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_notrace", "*:mod:b"), 0);
	KEXPECT(t, filter_file_holds("set_ftrace_notrace", "*:mod:b\n"));
	KEXPECT(t, site_weight(live_calls.enabled) > 100);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_notrace", ""), 0);
	KEXPECT(t, filter_file_holds("set_ftrace_notrace",
				     "#### no functions disabled ####\n"));
	KEXPECT_EQ(t, trace_test_put("set_graph_function", "*:mod:b"), -EINVAL);
	trace_test_reset();
}

/* A number is a line of available_filter_functions, counted from 1. */
KTEST(filter_number, "filter.number")
{
	char *text = kmalloc(TEXT), *line, *end, number[12];
	unsigned int n = 0;

	KASSERT(t, text);
	trace_test_reset();
	trace_test_read("available_filter_functions", text, TEXT, TEXT);
	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			break;
		n++;
		if (!strncmp(line, "victim_call\n", 12))
			break;
	}
	snprintf(number, sizeof(number), "%u", n);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", number), 0);
	KEXPECT(t, filter_is("victim_call\n"));
	kfree(text);
	trace_test_reset();
}

/*
 * While the tracer runs, the sites that are on are always those that the two filters
 * leave.
 */
/* One function is enabled, and its call leads to the ring. */
static bool enabled_is(const char *name)
{
	char text[256], want[96];
	size_t n = snprintf(want, sizeof(want),
			    "%s (1)\ttramp: trace_entry_ring+0x0/0x", name);

	return trace_test_read("enabled_functions", text, sizeof(text), 64) >
		       0 &&
	       !strncmp(text, want, n) &&
	       strchr(text, '\n') == text + strlen(text) - 1;
}

KTEST(filter_live, "filter.applies_at_once")
{
	unsigned int all = site_boot.patched;

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), all);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_notrace", "victim_*"), 0);
	KEXPECT(t, site_weight(live_calls.enabled) < all);
	KEXPECT_EQ(t,
		   trace_test_put("set_ftrace_filter", "victim_call sched_*"),
		   0);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_notrace", "sched_*"), 0);
	KEXPECT(t, enabled_is("victim_call"));
	KEXPECT_EQ(t, trace_test_add("set_ftrace_filter", "!sched_*"), 0);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_notrace", ""), 0);
	KEXPECT(t, enabled_is("victim_call"));
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", ""), 0);
	KEXPECT_EQ(t, site_weight(live_calls.enabled), all);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_other"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "nop"), 0);
	KEXPECT(t, filter_file_holds("enabled_functions", ""));
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	KEXPECT(t, enabled_is("victim_other"));
	trace_test_reset();
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
}

static void empty_and_fill(void *arg)
{
	(void)arg;
	while (!task_should_stop()) {
		trace_test_put("set_graph_function", "victim_*");
		trace_test_put("set_graph_function", "");
	}
}

/* The bits of an empty set_graph_function are given back, while another task reads the file. */
KTEST(filter_reader, "filter.read_while_emptied")
{
	KNEED_CLIENT(t, "graph");
	char text[2048], *line = text, *end;
	unsigned int filled = 0;
	struct task *writer;

	trace_test_reset();
	writer = task_create("writer", PRIO_NORMAL, ~0u, empty_and_fill, NULL);
	KASSERT(t, writer);
	/* The host may run the writer only now and then. */
	for (unsigned int i = 0; i < 1000 || !filled; i++) {
		KEXPECT(t, trace_test_read("set_graph_function", text,
					   sizeof(text), 64) > 0);
		for (line = text; (end = strchr(line, '\n')); line = end + 1) {
			bool victim = !strncmp(line, "victim_", 7);

			filled += victim;
			KEXPECT(t, victim || !strncmp(line, NONE, end - line));
		}
	}
	task_stop(writer);
	task_join(writer);
	trace_test_reset();
}
