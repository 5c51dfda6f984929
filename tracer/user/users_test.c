/* SPDX-License-Identifier: MIT */
/*
 * Tasks that do not know of each other read and write the control files, in an order that no test
 * has thought of, while other tasks are traced. No write may end the kernel. And when all is put
 * back, the runner finds as much memory, as many sites on and as many labels on as before.
 */
#include <tracer/testing.h>

#include <boot/boot_info.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/test/ktest.h>
#include <kernel/test/again.h>

#define USERS 4
#define WORKERS 3
#define USES 300 /* by all users */
#define VALUES 12

/* The first value is that of a kernel which has just booted. */
static const struct {
	const char *file;
	const char *values[VALUES + 1];
} writes[] = {
	{ "current_tracer",
	  { "nop", "function", "function_graph", "irqsoff", "preemptirqsoff",
	    "wakeup" } },
	{ "set_ftrace_filter",
	  { "", "victim_*", "sched_*", "*", "victim_other:snapshot",
	    "!victim_other:snapshot", "victim_other:traceoff:3",
	    "!victim_other:traceoff:3", "victim_call:stacktrace:2",
	    "!victim_call:stacktrace" } },
	{ "set_ftrace_notrace", { "", "victim_c*" } },
	{ "set_graph_function", { "", "victim_*" } },
	{ "set_graph_notrace", { "", "victim_*" } },
	{ "set_ftrace_pid", { "", "2", "3 4 5" } },
	{ "set_ftrace_notrace_pid", { "", "2" } },
	{ "set_event", { "", "sched:*", "kmem:*", "*:*" } },
	{ "set_event_pid", { "", "2 3" } },
	{ "set_event_notrace_pid", { "", "4" } },
	{ "events/kmem/kfree/filter", { "0", "common_pid > 6" } },
	{ "events/sched/sched_switch/filter", { "0", "next_prio > 6" } },
	{ "events/kmem/kmalloc/trigger",
	  { "!snapshot", "snapshot", "stacktrace:5", "!stacktrace",
	    "traceoff if bytes_req > 100", "!traceoff",
	    "disable_event:kmem:kfree", "!disable_event:kmem:kfree",
	    "enable_event:sched:sched_switch",
	    "!enable_event:sched:sched_switch" } },
	{ "snapshot", { "0", "1", "1", "2" } },
	{ "buffer_size_kb", { "256", "8", "64" } },
	{ "per_cpu/cpu0/buffer_size_kb", { "256", "8" } },
	{ "tracing_on", { "1", "1", "0" } },
	{ "tracing_cpumask", { "ff", "1", "2", "3" } },
	{ "tracing_thresh", { "0", "100" } },
	{ "tracing_max_latency", { "0" } },
	{ "trace", { "" } },
	{ "trace_clock", { "local", "global", "counter", "mono" } },
	{ "trace_marker", { "", "hello" } },
	{ "max_graph_depth", { "0", "1", "3" } },
	{ "options/function-fork", { "0", "1" } },
	{ "options/event-fork", { "0", "1" } },
	{ "options/stacktrace", { "0", "1" } },
	{ "options/pause-on-trace", { "0", "1" } },
	{ "options/overwrite", { "1", "0" } },
	{ "options/latency-format", { "0", "1" } },
	{ "options/function-trace", { "1", "0" } },
	{ "options/func_stack_trace", { "0", "1" } },
	{ "options/func-no-repeats", { "0", "1" } },
	{ "function_profile_enabled", { "0", "0", "1" } },
	{ "stack_trace_filter", { "", "victim_*", "task_*" } },
	{ "/proc/sys/kernel/stack_tracer_enabled", { "0", "1" } },
	{ "/proc/sys/kernel/ftrace_enabled", { "1", "1", "0" } },
	{ "/proc/sys/kernel/ftrace_dump_on_oops", { "0", "1", "2" } },
	{ "/sys/devices/system/cpu/cpu1/online", { "1", "1", "0" } },
	{ "instances/a/current_tracer", { "nop", "function" } },
	{ "instances/a/set_ftrace_filter",
	  { "", "victim_*", "victim_other:snapshot",
	    "!victim_other:snapshot" } },
	{ "instances/a/set_ftrace_pid", { "", "2 3 4 5 6" } },
	{ "instances/a/set_event", { "", "kmem:*", "sched:*" } },
	{ "instances/a/events/kmem/kmalloc/filter", { "0", "bytes_req > 77" } },
	{ "instances/a/events/kmem/kfree/trigger",
	  { "!snapshot", "snapshot", "traceoff:1", "!traceoff",
	    "enable_event:sched:sched_wakeup",
	    "!enable_event:sched:sched_wakeup" } },
	{ "instances/a/snapshot", { "0", "1", "2" } },
	{ "instances/a/buffer_size_kb", { "256", "8", "64" } },
	{ "instances/a/tracing_on", { "1", "0" } },
	{ "instances/a/trace", { "" } },
	{ "instances/a/free_buffer", { "" } },
};

static const char *const reads[] = {
	"trace",
	"snapshot",
	"per_cpu/cpu0/trace",
	"per_cpu/cpu1/snapshot",
	"per_cpu/cpu1/stats",
	"set_ftrace_filter",
	"set_ftrace_pid",
	"set_graph_function",
	"enabled_functions",
	"available_filter_functions",
	"trace_stat/function0",
	"stack_trace",
	"saved_cmdlines",
	"error_log",
	"events/kmem/kmalloc/trigger",
	"events/enable",
	"instances/a/trace",
	"instances/a/snapshot",
	"instances/a/per_cpu/cpu0/stats",
	"instances/a/set_ftrace_filter",
	"instances/a/events/kmem/kfree/trigger",
};

static u32 first_seed, uses;
static char unused[160]; /* of errors, which every user makes */

static void write_value(unsigned int i, unsigned int value, bool append)
{
	char path[80];

	snprintf(path, sizeof(path), "%s%s",
		 writes[i].file[0] == '/' ? "" : TRACING, writes[i].file);
	ctl_echo(path, writes[i].values[value], append, unused, sizeof(unused));
}

static void write_any(u32 *seed)
{
	unsigned int i = ktest_random(seed) % ARRAY_SIZE(writes), n = 1;

	while (writes[i].values[n])
		n++;
	write_value(i, ktest_random(seed) % n, ktest_random(seed) & 1);
}

static void read_any(u32 *seed)
{
	char text[500];

	trace_test_read(reads[ktest_random(seed) % ARRAY_SIZE(reads)], text,
			sizeof(text), 1 + ktest_random(seed) % sizeof(text));
}

static void use_files(void *arg)
{
	u32 seed = first_seed + (unsigned long)arg, what;

	while (__atomic_fetch_add(&uses, 1, __ATOMIC_RELAXED) < USES) {
		what = ktest_random(&seed) % 32;
		if (what == 0)
			ctl_rmdir(TRACING "instances/a", unused,
				  sizeof(unused));
		else if (what == 1)
			ctl_mkdir(TRACING "instances/a", unused,
				  sizeof(unused));
		else if (what < 20)
			write_any(&seed);
		else
			read_any(&seed);
	}
}

static void be_traced(void *arg)
{
	(void)arg;
	while (!task_should_stop()) {
		for (unsigned int i = 0; i < 20; i++) {
			victim_call(i);
			victim_other(i);
			kfree(kmalloc(60 + i));
		}
		sched_yield();
	}
}

KTEST(users_at_once, "users.at_once")
{
	struct task *task[USERS + WORKERS];
	unsigned long n;

	first_seed = arch_clock();
	uses = 0;
	printk("# seed %u\n", first_seed);
	trace_test_reset();
	ctl_mkdir(TRACING "instances/a", unused, sizeof(unused));
	for (n = 0; n < USERS + WORKERS; n++) {
		bool user = n < USERS;

		task[n] = task_create(user ? "user" : "traced",
				      user ? PRIO_NORMAL : PRIO_LOW, ~0u,
				      user ? use_files : be_traced, (void *)n);
		KASSERT(t, task[n]);
	}
	for (n = 0; n < USERS + WORKERS; n++) {
		task_stop(task[n]);
		task_join(task[n]);
	}
	KEXPECT(t, uses >= USES);
	ctl_rmdir(TRACING "instances/a", unused, sizeof(unused));
	for (n = 0; n < ARRAY_SIZE(writes); n++)
		write_value(n, 0, false);
	trace_test_reset();
}
