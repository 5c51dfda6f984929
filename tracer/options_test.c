/* Proves of the trace options and of the lists of pids: what each changes, and nothing else. */
#include <tracer/testing.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/bits.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/options.h>

#define TEXT 65536

/* Does the last line of `trace` end so? */
static bool last_line_ends(const char *end)
{
	char *text = kmalloc(TEXT);
	bool ends = false;
	size_t len;

	if (text && trace_test_read("trace", text, TEXT, 4096) > 0) {
		len = strlen(text);
		ends = len > strlen(end) &&
		       !strcmp(text + len - strlen(end), end);
	}
	kfree(text);
	return ends;
}

/* What each option does to an event's line. */
KTEST(files_options, "tracefs.options")
{
	struct symbol sym;
	char want[96];

	KEXPECT_EQ(t, trace_test_victim(), 0);
	victim_call(1);
	trace_test_put("tracing_on", "0");
	KEXPECT_EQ(t, trace_test_put("options/print-parent", "0"), 0);
	KEXPECT(t, last_line_ends(": victim_call\n"));
	KEXPECT_EQ(t, trace_test_put("trace_options", "sym-offset"), 0);
	KASSERT(t, symbol_at((unsigned long)victim_call, &sym));
	snprintf(want, sizeof(want), "/0x%lx\n", sym.size);
	KEXPECT(t, last_line_ends(want));
	KEXPECT_EQ(t, trace_test_put("trace_options", "nosym-offset sym-addr"),
		   0);
	KEXPECT(t, last_line_ends(">\n"));
	KEXPECT_EQ(t, trace_test_put("trace_options", "print-parent sundial"),
		   -EINVAL);
	KEXPECT(t, !trace_option(OPT_PRINT_PARENT));
	KEXPECT_EQ(t, trace_test_put("options/sym-addr", "2"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("options/sym-addr", " 0 "), 0);
	KEXPECT_EQ(t, trace_test_put("trace_options", "nocontext-info"), 0);
	trace_test_read("trace", want, sizeof(want), 64);
	KEXPECT(t, !strcmp(want, "victim_call\n"));
	KEXPECT_EQ(t, trace_test_put("trace_options", "context-info"), 0);
	KEXPECT_EQ(t, trace_test_put("trace_options", "noirq-info"), 0);
	KEXPECT(t, !last_line_ends(".....") && last_line_ends("victim_call\n"));
	trace_test_put("tracing_on", "1");
	KEXPECT_EQ(t, trace_test_put("options/markers", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("trace_marker", "not wanted"), -EINVAL);
	trace_test_read("options/markers", want, sizeof(want), 64);
	KEXPECT(t, !strcmp(want, "0\n"));
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("trace_marker", "wanted"), 0);
	trace_test_reset();
}

static void put_pid(const char *file)
{
	char pid[12];

	snprintf(pid, sizeof(pid), "%d", current_task()->pid);
	trace_test_put(file, pid);
}

/* Calls of this task, and then of one task on each CPU. */
static u64 calls_recorded(struct ktest_run *t, u64 *others)
{
	struct trace_worker w[MAX_CPUS];
	u64 own;

	trace_test_put("trace", "");
	for (unsigned int i = 0; i < 50; i++)
		victim_call(i);
	own = trace_test_written();
	KEXPECT(t, trace_workers_start(w, 100));
	*others = trace_workers_join(w);
	KEXPECT_EQ(t, *others, 100 * bit_count(cpus_online));
	*others = trace_test_written() - own;
	return own;
}

KTEST(files_pids, "tracefs.pids")
{
	u64 others, all = 100 * bit_count(cpus_online);
	char text[64];

	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, calls_recorded(t, &others), 50);
	KEXPECT_EQ(t, others, all);
	put_pid("set_ftrace_pid");
	KEXPECT_EQ(t, calls_recorded(t, &others), 50);
	KEXPECT_EQ(t, others, 0);
	put_pid("set_ftrace_notrace_pid");
	KEXPECT_EQ(t, calls_recorded(t, &others), 0);
	KEXPECT_EQ(t, others, 0);
	KEXPECT_EQ(t, trace_test_put("trace_marker", "seen"), 0);
	KEXPECT_EQ(t, trace_test_written(), 1); /* a marker is no call */
	trace_test_put("set_ftrace_pid", "");
	KEXPECT_EQ(t, calls_recorded(t, &others), 0);
	KEXPECT_EQ(t, others, all);
	/* The call graph heeds them, too. */
	trace_test_put("current_tracer", "function_graph");
	KEXPECT_EQ(t, calls_recorded(t, &others), 0);
	KEXPECT_EQ(t, others, 2 * all);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_pid", "9 one"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_pid", "-1"), -EINVAL);
	trace_test_read("set_ftrace_pid", text, sizeof(text), 7);
	KEXPECT(t, !strcmp(text, "no pid\n"));
	KEXPECT_EQ(t, trace_test_put("set_ftrace_pid", "9 7\t7 100"), 0);
	KEXPECT_EQ(t, trace_test_add("set_ftrace_pid", " 8\n"), 0);
	trace_test_read("set_ftrace_pid", text, sizeof(text), 1);
	KEXPECT(t, !strcmp(text, "7\n8\n9\n100\n"));
	trace_test_reset();
}

KTEST(options_pause, "options.pause_on_trace")
{
	struct ctl_handle *h;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, trace_test_put("options/pause-on-trace", "1"), 0);
	victim_call(1);
	KEXPECT_EQ(t, trace_test_written(), 1);
	KASSERT(t, !ctl_open(TRACING "trace", false, false, &h));
	victim_call(2);
	KEXPECT_EQ(t, trace_test_written(), 1);
	/* That the option changes meanwhile makes no difference. */
	KEXPECT_EQ(t, trace_test_put("options/pause-on-trace", "0"), 0);
	victim_call(3);
	KEXPECT_EQ(t, trace_test_written(), 1);
	KEXPECT_EQ(t, ctl_close(h, NULL, 0), 0);
	victim_call(4);
	KEXPECT_EQ(t, trace_test_written(), 2);
	trace_test_reset();
}

KTEST(options_stack, "options.func_stack_trace")
{
	char text[2000];
	const char *stack;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, trace_test_put("options/func_stack_trace", "1"), 0);
	victim_outer(1);
	KEXPECT_EQ(t, trace_test_put("options/func_stack_trace", "0"), 0);
	victim_outer(2);
	KEXPECT_EQ(t, trace_test_written(), 3);
	KEXPECT(t, trace_test_read("trace", text, sizeof(text), 100) > 0);
	stack = strstr(text,
		       "<stack trace>\n => victim_call\n => victim_outer");
	KEXPECT(t, stack);
	KEXPECT(t, stack && !strstr(stack + 1, "<stack trace>"));
	trace_test_reset();
}
