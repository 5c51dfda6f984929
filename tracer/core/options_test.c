/* SPDX-License-Identifier: MIT */
/* Proves of the trace options and of the lists of pids: each makes its own change, and no other. */
#include <tracer/testing.h>
#include <boot/boot_info.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/bits.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/core/options.h>
#include <kernel/test/again.h>

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

/* Each option's change to an event's line. */
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
	KEXPECT_EQ(t, trace_test_put("options/sym-addr", "0"), 0);
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
	struct trace_worker *w = trace_workers;
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
	KNEED_CLIENT(t, "graph");
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

/* ---- function-fork, event-fork ------------------------------------------------------ */

#define GENERATIONS 3
#define FORK_CALLS 20

static struct task *generation[GENERATIONS];
static bool may_begin;

/* Each task calls victim_call(), and makes the next one before it does. */
static void live_one_generation(void *arg)
{
	unsigned long n = (unsigned long)arg;

	while (!READ_ONCE(may_begin))
		sched_yield();
	if (n + 1 < GENERATIONS)
		generation[n + 1] =
			task_create("heir", PRIO_NORMAL, ~0u,
				    live_one_generation, (void *)(n + 1));
	for (unsigned int i = 0; i < FORK_CALLS; i++)
		victim_call(i);
	if (n + 1 < GENERATIONS)
		task_join(generation[n + 1]);
}

/* Three generations, of which the first one's pid is in a file. How many entries they leave. */
static u64 entries_of_heirs(const char *file)
{
	char pid[12];

	WRITE_ONCE(may_begin, false);
	generation[0] = task_create("ancestor", PRIO_NORMAL, ~0u,
				    live_one_generation, NULL);
	snprintf(pid, sizeof(pid), "%d", generation[0]->pid);
	trace_test_put(file, pid);
	trace_test_put("trace", "");
	WRITE_ONCE(may_begin, true);
	task_join(generation[0]);
	return trace_test_written();
}

/* Instructions that it takes to write n pids, in the worst order for a sort by insertion. */
static u64 cost_of_pids(struct ktest_run *t, unsigned int n)
{
	char *text = kmalloc(n * 6 + 1), *end = text;
	u64 cost;

	KEXPECT(t, text);
	if (!text)
		return 0;
	for (unsigned int i = 0; i < n; i++)
		end += format_within(end, 7, "%u ", 50000 + n - i);
	cost = arch_instructions();
	KEXPECT_EQ(t, trace_test_put("set_ftrace_notrace_pid", text), 0);
	cost = arch_instructions() - cost;
	kfree(text);
	trace_test_put("set_ftrace_notrace_pid", "");
	return cost;
}

/* Four times as many pids take less than six times as long: trace_mutex is held meanwhile. */
KTEST(options_many_pids, "options.time_of_many_pids")
{
	if (!boot_info.icount)
		KSKIP(t, "instructions are counted under -icount");
	KEXPECT(t, cost_of_pids(t, 8000) < 6 * cost_of_pids(t, 2000));
}

KTEST(options_fork, "options.function_fork")
{
	char text[16];

	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, entries_of_heirs("set_ftrace_pid"), FORK_CALLS);
	KEXPECT_EQ(t, trace_test_put("options/function-fork", "1"), 0);
	KEXPECT_EQ(t, entries_of_heirs("set_ftrace_pid"),
		   GENERATIONS * FORK_CALLS);
	/* All of them have ended, so the list says none. */
	KEXPECT_EQ(t, trace_test_read("set_ftrace_pid", text, sizeof(text), 1),
		   0);
	trace_test_put("set_ftrace_pid", "");
	KEXPECT_EQ(t, entries_of_heirs("set_ftrace_notrace_pid"), 0);
	KEXPECT_EQ(t, trace_test_put("options/function-fork", "0"), 0);
	KEXPECT_EQ(t, entries_of_heirs("set_ftrace_notrace_pid"),
		   (GENERATIONS - 1) * FORK_CALLS);
	trace_test_reset();
}

static void call_victim_in_child(void *arg)
{
	(void)arg;
	victim_call(1);
}

/* In each of the ways that there are. */
static void make_three(void *arg)
{
	struct task_fault fault;

	(void)arg;
	while (!READ_ONCE(may_begin))
		sched_yield();
	task_join(task_create("child", PRIO_NORMAL, ~0u, call_victim_in_child,
			      NULL));
	task_join(task_create_expendable("child", PRIO_NORMAL, ~0u,
					 call_victim_in_child, NULL));
	task_join(task_create_watched("child", call_victim_in_child, &fault));
}

/* The list does not grow with every task that ever was. */
KTEST(options_fork_forgets, "options.fork_forgets")
{
	struct task *parent;
	char pid[12], want[24];

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("options/function-fork", "1"), 0);
	WRITE_ONCE(may_begin, false);
	parent = task_create("parent", PRIO_NORMAL, ~0u, make_three, NULL);
	snprintf(pid, sizeof(pid), "%d", parent->pid);
	snprintf(want, sizeof(want), "%d\n%d\n", parent->pid, parent->pid + 3);
	trace_test_put("set_ftrace_pid", pid);
	WRITE_ONCE(may_begin, true);
	task_join(parent);
	KEXPECT_EQ(t, trace_test_put("options/function-fork", "0"), 0);
	KEXPECT(t, trace_test_says("set_ftrace_pid", want));
	trace_test_reset();
}

#define SLEEPERS 40
#define ENDED 400

static bool may_end;

static void sleep_until_told(void *arg)
{
	while (arg && !READ_ONCE(may_end))
		task_sleep(TICK_NS);
}

/* The text of the pids of ENDED tasks that have ended. */
static char *pids_of_ended(void)
{
	char *text = kmalloc(12 * ENDED);
	size_t len = 0;
	struct task *task;

	for (unsigned int i = 0; text && i < ENDED; i++) {
		task = task_create("ended", PRIO_NORMAL, ~0u, sleep_until_told,
				   NULL);
		len += snprintf(text + len, 12, "%d ", task->pid);
		task_join(task);
	}
	return text;
}

/*
 * A list of tasks that have ended, all but the last: reading it walks over all tasks once or twice.
 * A walk for each pid would be 400 walks over some 50 tasks.
 */
KTEST(options_fork_reads, "options.fork_read_time")
{
	struct task *sleeper[SLEEPERS];
	char *text, last[12], want[16];
	u64 before, taken;

	if (!boot_info.icount)
		KSKIP(t, "instructions are counted");
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("options/function-fork", "1"), 0);
	text = pids_of_ended();
	WRITE_ONCE(may_end, false);
	for (unsigned int i = 0; i < SLEEPERS; i++)
		sleeper[i] = task_create("sleeper", PRIO_NORMAL, ~0u,
					 sleep_until_told, text);
	snprintf(last, sizeof(last), "%d", sleeper[0]->pid);
	snprintf(want, sizeof(want), "%s\n", last);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_pid", text), 0);
	KEXPECT_EQ(t, trace_test_add("set_ftrace_pid", last), 0);
	before = arch_instructions();
	KEXPECT(t, trace_test_says("set_ftrace_pid", want));
	taken = arch_instructions() - before;
	KEXPECT(t, taken < 200000);
	WRITE_ONCE(may_end, true);
	for (unsigned int i = 0; i < SLEEPERS; i++)
		task_join(sleeper[i]);
	kfree(text);
	trace_test_reset();
}

KTEST(options_event_fork, "options.event_fork")
{
	KNEED_CLIENT(t, "events");
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("set_event", "sched_process_exit"), 0);
	KEXPECT_EQ(t, entries_of_heirs("set_event_pid"), 1);
	KEXPECT_EQ(t, trace_test_put("options/event-fork", "1"), 0);
	KEXPECT_EQ(t, entries_of_heirs("set_event_pid"), GENERATIONS);
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

/* Each from one place: a call that comes again has the same return address. */
static noinline notrace void call_victim_in_loop(unsigned int n)
{
	/* One loop, for any n, of one call: GCC for POWER makes four. */
	asm volatile("" : "+r"(n));
#pragma GCC unroll 1
	while (n--)
		victim_call(n);
}

static noinline notrace void call_others(unsigned int n)
{
	asm volatile("" : "+r"(n));
#pragma GCC unroll 1
	while (n--)
		victim_other(n);
}

static void call_others_once(void *arg)
{
	(void)arg;
	call_others(1);
}

/* Is the time of the last of two calls between looks at the clock around it? */
static bool last_is_right(void)
{
	struct trace_iter *it;
	const struct ring_entry *e;
	bool right = false;
	u64 before, after;

	before = arch_clock();
	call_victim_in_loop(2);
	after = arch_clock();
	call_others(1);
	it = trace_iter_open(rings, cpus_present(), true);
	while (it && (e = trace_iter_peek(it))) {
		if (e->repeats == 1)
			right = e->last - before <= after - before &&
				e->clock >= after;
		trace_iter_next(it);
	}
	trace_iter_close(it);
	return right;
}

/* Two calls in one line each, between them how often the first came again. */
KTEST(options_repeats, "options.func_no_repeats")
{
	const char *first, *count, *other, *again;
	char *text = kmalloc(TEXT);
	irq_state_t state;

	KASSERT(t, text);
	KEXPECT_EQ(t,
		   trace_test_put("set_ftrace_filter",
				  "victim_call victim_other"),
		   0);
	KEXPECT_EQ(t, trace_test_put("options/func-no-repeats", "1"), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	state = arch_irq_save(); /* all of it on one CPU */
	call_victim_in_loop(50);
	call_others(1);
	call_victim_in_loop(3);
	call_others(2);
	arch_irq_restore(state);
	/* 50 calls, 1, 3, 2: the last one is not yet said. */
	KEXPECT_EQ(t, trace_test_written(), 2 + 1 + 2 + 1);
	KEXPECT(t, trace_test_read("trace", text, TEXT, 4096) > 0);
	first = strstr(text, ": victim_call <-call_victim_in_loop\n");
	count = strstr(text,
		       ": victim_call <-call_victim_in_loop (repeats: 49, "
		       "last_ts:  ");
	other = strstr(text, ": victim_other <-call_others\n");
	again = strstr(text,
		       ": victim_call <-call_victim_in_loop (repeats: 2, ");
	KEXPECT(t, first && first < count && count < other && other < again);
	/* A cleared call does not come again. Each CPU knows its own last call: stay on one. */
	task_set_affinity(current_task(), 1);
	trace_test_put("trace", "");
	call_others(1);
	KEXPECT_EQ(t, trace_test_written(), 1);
	/* Nor does a call from elsewhere, or of another task. */
	victim_other(1);
	KEXPECT_EQ(t, trace_test_written(), 2);
	call_others(1);
	KEXPECT_EQ(t, trace_test_written(), 3);
	task_join(task_create("other", PRIO_NORMAL, 1, call_others_once, NULL));
	KEXPECT_EQ(t, trace_test_written(), 4);
	trace_test_put("trace", "");
	KEXPECT(t, last_is_right());
	task_set_affinity(current_task(), ~0u);
	/* And off is off. */
	trace_test_put("trace", "");
	KEXPECT_EQ(t, trace_test_put("options/func-no-repeats", "0"), 0);
	call_others(2);
	KEXPECT_EQ(t, trace_test_written(), 2);
	kfree(text);
	trace_test_reset();
}
