/* SPDX-License-Identifier: MIT */
/*
 * The shell's `sections`: work whose size a user chooses, as large as is allowed. tools/sections
 * counts meanwhile how long interrupts and preemption stay off, from outside, and `bench` has
 * the longest as a figure. Each load leaves the machine as it was.
 */
#include <tracer/testing.h>

#include <kernel/ctl/ctl.h>
#include <kernel/lib/format.h>
#include <kernel/lib/glob.h>
#include <kernel/lock/wait.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/shell/shell.h>
#include <kernel/time.h>
#include <tracer/latency/latency.h>
#include <tracer/user/cmd_reset.h>

#define TASKS 500u
#define FOLDERS 8u

/* Where tools/sections begins and ends to count. */
static noinline void sections_begin(void)
{
	asm volatile("" ::"i"(1));
}

static noinline void sections_end(void)
{
	asm volatile("" ::"i"(2), "r"(1));
}

static int swallow_text(struct sink *s, const char *text, size_t len)
{
	(void)s, (void)text, (void)len;
	return 0;
}
static struct sink nowhere = { swallow_text };

static printf_like(1, 2) void run_text(const char *fmt, ...)
{
	char text[256];
	va_list ap;
	int err;

	va_start(ap, fmt);
	format_args(text, sizeof(text), fmt, ap);
	va_end(ap);
	err = shell_run(&nowhere, text);
	if (err)
		printk("sections: %s: error %d\n", text, err);
}

/* ---- Tasks ---- */

static struct wait_queue gate;
static bool gate_open;

static void wait_at_gate(void *arg)
{
	(void)arg;
	while (!READ_ONCE(gate_open)) {
		wait_prepare(&gate);
		if (!READ_ONCE(gate_open))
			task_block();
		wait_finish(&gate);
	}
}

/* All of them wake at the same moment. */
static u64 dawn;

static void sleep_till_dawn(void *arg)
{
	u64 now = time_ns();

	(void)arg;
	if (now < dawn)
		task_sleep(dawn - now);
}

/* fn(NULL) in TASKS tasks. meanwhile() runs when all have begun. */
static void with_tasks(void (*fn)(void *arg), void (*meanwhile)(void))
{
	struct task **tasks = kmalloc_zeroed(TASKS * sizeof(struct task *));
	unsigned int i, n = 0;

	if (!tasks)
		return;
	while (n < TASKS &&
	       (tasks[n] = task_create("many", 8, cpus_present(), fn, NULL)))
		n++;
	if (n < TASKS)
		printk("sections: %u tasks could be made\n", n);
	task_sleep(NSEC_PER_MSEC);
	meanwhile();
	for (i = 0; i < n; i++)
		task_join(tasks[i]);
	kfree(tasks);
}

/* Each of these looks at every task. */
static void look_at_tasks(void)
{
	run_text("ps");
	run_text("cat /proc/tasks");
	run_text("echo function_graph > current_tracer");
	run_text("cat trace_stat/function0");
	run_text("echo nop > current_tracer");
	run_text("echo 1 > options/function-fork; echo 1 > set_ftrace_pid");
	run_text("echo function > current_tracer; cat saved_cmdlines; cat "
		 "trace");
	run_text("echo > set_ftrace_pid; echo nop > current_tracer");
}

static void open_gate(void)
{
	WRITE_ONCE(gate_open, true);
	wake_all(&gate);
}

static void look_and_open(void)
{
	look_at_tasks();
	open_gate();
}

static void wait_and(void (*meanwhile)(void))
{
	wait_init(&gate);
	gate_open = false;
	with_tasks(wait_at_gate, meanwhile);
}

static void load_waking(void)
{
	wait_and(open_gate);
}

static void load_tasks(void)
{
	wait_and(look_and_open);
}

static void look_at_list(void)
{
	run_text("ps");
}

static void load_sleeping(void)
{
	dawn = time_ns() + NSEC_PER_SEC / 2;
	with_tasks(sleep_till_dawn, look_at_list);
}

/* ---- The buffer ---- */

static void fill_rings(void)
{
	run_text("echo function > current_tracer; echo 1 > tracing_on");
	run_text("cat available_filter_functions; cat available_events");
	run_text("cat available_filter_functions");
}

/* 48 MiB: with the snapshot's more than a third of the memory, and full. */
static void load_rings(void)
{
	run_text("echo %lu > buffer_size_kb", 49152ul / nr_cpus);
	fill_rings();
	run_text("echo 1 > snapshot");
	fill_rings();
	run_text("echo 1 > snapshot; echo 0 > tracing_on; echo 1 > tracing_on");
	run_text("cat snapshot | head -100");
	run_text("echo 2 > snapshot; echo 0 > snapshot");
	fill_rings();
	run_text("echo > trace");
	fill_rings();
	run_text("echo 0 > options/overwrite; echo 1 > options/overwrite");
	run_text("echo mono > trace_clock; echo global > trace_clock");
	run_text("echo local > trace_clock; cat per_cpu/cpu0/stats");
	run_text("echo %lu > buffer_size_kb; cat trace | head -100",
		 24576ul / nr_cpus);
	run_text("echo 64 > per_cpu/cpu0/buffer_size_kb; echo 64 > "
		 "buffer_size_kb");
	run_text("echo nop > current_tracer");
	run_text("mkdir instances/big; echo 16384 > "
		 "instances/big/buffer_size_kb");
	run_text("echo 1 > instances/big/events/enable; ps");
	run_text("echo > instances/big/trace; rmdir instances/big");
}

/* All events into a full buffer that no task reads, and into one that readers wait for. */
static void load_readers(void)
{
	run_text("echo 1 > events/enable; echo 1 > options/stacktrace");
	run_text("echo function > current_tracer; ps; ps");
	run_text("echo nop > current_tracer; cat trace");
	run_text("cat trace_pipe | head -1000; echo 0 > events/enable");
	run_text("echo 0 > options/stacktrace");
}

/* ---- Filters and triggers ---- */

/* As much as the filters of an event may take together, in each folder its part, for the names
 * that tasks have here. */
static void filter_event(const char *folder)
{
	static const char glob[] = "next_comm ~ \"*a*a*a*a*a*a*a*a*a*a*a*a*b\"";
	char text[256], path[128];

	snprintf(text, sizeof(text),
		 "%s || %s || %s || next_comm ~ \"*aaaaaab\"", glob, glob,
		 glob);
	snprintf(path, sizeof(path),
		 TRACING "%sevents/sched/sched_switch/filter", folder);
	if (ctl_echo(path, text, false, trace_test_error,
		     sizeof(trace_test_error)))
		printk("sections: %s\n", trace_test_error);
	run_text("echo 1 > " TRACING "%sevents/sched/sched_switch/enable",
		 folder);
}

static void switch_often(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < 10; i++)
		task_sleep(NSEC_PER_MSEC / 4);
}

static void load_filters(void)
{
	struct task *t;

	filter_event("");
	for (unsigned int i = 0; i < FOLDERS; i++) {
		char folder[32];

		run_text("mkdir instances/f%u", i);
		snprintf(folder, sizeof(folder), "instances/f%u/", i);
		filter_event(folder);
	}
	t = task_create("aaaaaaaaaaaaaaaaaaaaaaa", 8, cpus_present(),
			switch_often, NULL);
	if (t)
		task_join(t);
	run_text("ps");
	run_text("echo 0 > events/sched/sched_switch/enable");
	run_text("echo 0 > events/sched/sched_switch/filter");
	for (unsigned int i = 0; i < FOLDERS; i++)
		run_text("rmdir instances/f%u", i);
}

/* Four kinds on each of 16 sets of functions. */
static void write_triggers(const char *sign)
{
	static const char *const sets[] = {
		"ctl_o*",   "ctl_r*",	"ctl_w*",  "ctl_c*",
		"seq_*",    "km*",	"kf*",	   "mutex_l*",
		"mutex_u*", "shell_*",	"sink_*",  "page_*",
		"task_w*",  "string_*", "spin_l*", "spin_u*",
	};
	static const char *const kinds[] = {
		"traceon:100000", "snapshot:100000", "stacktrace:100000",
		"enable_event:sched:sched_switch"
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(sets); i++)
		for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++)
			run_text("echo '%s%s:%s' >> set_ftrace_filter", sign,
				 sets[i], kinds[k]);
}

static void load_triggers(void)
{
	write_triggers("");
	fill_rings();
	run_text("cat set_ftrace_filter; ps");
	write_triggers("!");
	run_text("echo 0 > snapshot; echo nop > current_tracer");
}

/* ---- Clients ---- */

static void load_tracers(void)
{
	static const char *const names[] = { "function", "function_graph",
					     "irqsoff",	 "preemptoff",
					     "wakeup",	 "nop" };

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		run_text("echo %s > current_tracer; ps; cat trace", names[i]);
		for (unsigned int k = 0; k < FOLDERS && i < 2; k++)
			run_text("mkdir instances/t%u; "
				 "echo function > instances/t%u/current_tracer",
				 k, k);
		run_text("ps");
		for (unsigned int k = 0; k < FOLDERS && i < 2; k++)
			run_text("echo > instances/t%u/trace; rmdir "
				 "instances/t%u",
				 k, k);
	}
	run_text("echo 1 > function_profile_enabled; ps; cat "
		 "trace_stat/function0");
	run_text("echo 0 > function_profile_enabled");
	run_text("echo 1 > /proc/sys/kernel/stack_tracer_enabled; ps; cat "
		 "stack_trace");
	run_text("echo 0 > /proc/sys/kernel/stack_tracer_enabled");
}

/* All functions by each strategy that lets CPUs run: `stop` says beforehand what it costs. */
static void load_strategies(void)
{
	static const char *const names[] = { "breakpoint", "word", "bypass" };
	const char *before = patch_strategy_name();

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		if (trace_test_put("patch_strategy", names[i]))
			continue;
		run_text("echo function > current_tracer; ps");
		run_text("echo nop > current_tracer");
	}
	trace_test_put("patch_strategy", before);
}

/* ---- Texts of 1 MiB ---- */

static const char *const fillings[] = {
	"victim_call\n",
	"1 2 3 4 5 6 7 8 ",
	"[[[[*[*a",
};

/* Fill the text with copies of the i-th filling. */
static void fill_text(char *text, unsigned int i)
{
	size_t n = strlen(fillings[i]);

	for (size_t at = 0; at < CTL_WRITE_MAX - 1; at += n)
		memcpy(text + at, fillings[i], min(n, CTL_WRITE_MAX - 1 - at));
	text[CTL_WRITE_MAX - 1] = '\0';
}

/* Into each file of a folder, and of the folders in it: of the events those of one system. */
static void write_texts(const char *dir, const char *text, bool append,
			bool deep)
{
	char name[64] = "", path[128];

	while (!ctl_next(dir, name, sizeof(name))) {
		snprintf(path, sizeof(path), "%s%s", dir, name);
		if (name[strlen(name) - 1] != '/' &&
		    (ctl_mode(path) & CTL_WRITE))
			ctl_echo(path, text, append, NULL, 0);
		else if (deep && (strcmp(dir, TRACING "events/") ||
				  !strncmp(name, "sched", 5)))
			write_texts(path, text, append, deep);
	}
}

static void load_some_texts(unsigned int fill, bool deep)
{
	char *text = kmalloc(CTL_WRITE_MAX);

	if (!text)
		return;
	for (unsigned int i = 0; i < fill; i++) {
		fill_text(text, i);
		write_texts(TRACING, text, i & 1, deep);
		write_texts("/proc/sys/kernel/", text, i & 1, deep);
	}
	kfree(text);
}

static void load_texts(void)
{
	load_some_texts(1, false);
}

static void load_all_texts(void)
{
	load_some_texts(ARRAY_SIZE(fillings), true);
}

static void read_texts(const char *dir)
{
	char name[64] = "", path[128];

	while (!ctl_next(dir, name, sizeof(name))) {
		snprintf(path, sizeof(path), "%s%s", dir, name);
		if (name[strlen(name) - 1] == '/')
			read_texts(path);
		else if ((ctl_mode(path) & CTL_READ) &&
			 strncmp(name, "trace_pipe", 10) &&
			 strncmp(name, "snapshot_raw", 12))
			shell_copy_file(&nowhere, "sections", path);
	}
}

static void load_reads(void)
{
	fill_rings();
	run_text("echo nop > current_tracer");
	read_texts("/proc/");
	read_texts(TRACING);
}

static void load_cpus(void)
{
	if (!ktest_last_cpu())
		return;
	for (unsigned int cpu = 1; cpu < nr_cpus; cpu++)
		run_text("echo 0 > /sys/devices/system/cpu/cpu%u/online", cpu);
	for (unsigned int cpu = 1; cpu < nr_cpus; cpu++)
		run_text("echo 1 > /sys/devices/system/cpu/cpu%u/online", cpu);
}

static const struct load {
	const char *name;
	void (*run)(void);
} loads[] = {
	{ "waking", load_waking },	   { "sleeping", load_sleeping },
	{ "tasks", load_tasks },	   { "rings", load_rings },
	{ "readers", load_readers },	   { "filters", load_filters },
	{ "triggers", load_triggers },	   { "tracers", load_tracers },
	{ "strategies", load_strategies }, { "reads", load_reads },
	{ "texts", load_texts },	   { "cpus", load_cpus },
	{ "long-texts", load_all_texts },
};

/* The longest section that a latency tracer has seen. */
static void put_latency(struct sink *out, const char *tracer)
{
	struct latency l = latency_longest();

	sink_printf(out, "sections: %s %llu ns %pS %pS\n", tracer,
		    (unsigned long long)clock_delta_to_ns(l.ticks),
		    (void *)l.began, (void *)l.ended);
}

static int cmd_sections(struct sink *out, int argc, char **argv)
{
	const char *tracer = argc > 2 ? argv[2] : NULL;
	unsigned int i, n = 0;

	if (argc > 3)
		return shell_error(-EINVAL, "sections",
				   "takes a GLOB and a TRACER");
	shell_run_line("cd " TRACING);
	if (tracer) {
		trace_test_put("options/function-trace", "0");
		trace_test_put("current_tracer", tracer);
	}
	sections_begin();
	for (i = 0; i < ARRAY_SIZE(loads); i++) {
		u64 start = time_ns();

		if (!glob_match(argc > 1 ? argv[1] : "[!l]*", loads[i].name))
			continue;
		loads[i].run();
		if (!tracer)
			cmd_reset();
		n++;
		sink_printf(out, "sections: %s %llu us\n", loads[i].name,
			    (unsigned long long)(time_ns() - start) / 1000);
	}
	sections_end();
	if (tracer)
		put_latency(out, tracer);
	cmd_reset();
	return n ? 0 : shell_error(-ENOENT, "sections", "no load matches");
}
/* Without a GLOB: all but long-texts, which take minutes. */
SHELL_CMD(sections, "sections", "[GLOB] [TRACER]",
	  "work that may keep interrupts off for long (tools/sections)",
	  cmd_sections);
