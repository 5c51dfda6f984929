/* SPDX-License-Identifier: MIT */
/*
 * Proves of the control files: Linux's formats to the letter, and that every event shown is a
 * call of a function that was on.
 */
#include <tracer/testing.h>
#include <kernel/ctl/ctl.h>
#include <kernel/test/fault.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/core/comm.h>
#include <tracer/ring/ring_control.h>
#include <tracer/ring/ring_more.h>
#include <kernel/test/again.h>

#define TEXT 65536

/* clang-format off */
static const char header[] =
"# tracer: function\n"
"#\n"
"# entries-in-buffer/entries-written: 3/3   #P:";

static const char legend[] =
"#\n"
"#                                _-----=> irqs-off/BH-disabled\n"
"#                               / _----=> need-resched\n"
"#                              | / _---=> hardirq/softirq\n"
"#                              || / _--=> preempt-depth\n"
"#                              ||| / _-=> migrate-disable\n"
"#                              |||| /     delay\n"
"#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
"#              | |         |   |||||     |         |\n";
/* clang-format on */

/* Digits become 9, so that a line can be compared with its pattern. */
static void blur_digits(char *s)
{
	for (; *s; s++)
		if (*s >= '0' && *s <= '9')
			*s = '9';
}

/* The decimal number that text begins with. */
static unsigned long number_at(const char *text)
{
	unsigned long n = 0;

	while (*text >= '0' && *text <= '9')
		n = n * 10 + (unsigned long)(*text++ - '0');
	return n;
}

static void record_three(void)
{
	irq_state_t state;

	trace_test_victim();
	victim_outer(1);
	state = arch_irq_save();
	victim_call(2);
	arch_irq_restore(state);
	ring_mark(rings, "hello", 5);
	trace_test_put("tracing_on", "0");
}

KTEST(files_trace, "tracefs.trace_format")
{
	char want[80], *text = kmalloc(TEXT), *line;
	struct task *me = current_task();

	KASSERT(t, text);
	record_three();
	KEXPECT(t, trace_test_read("trace", text, TEXT, 4096) > 0);
	KEXPECT(t, !strncmp(text, header, sizeof(header) - 1));
	line = strstr(text, legend);
	KASSERT(t, line);
	line += sizeof(legend) - 1;
	snprintf(want, sizeof(want), "%16s-%-7d [999] ..... ", me->name,
		 me->pid);
	blur_digits(want);
	blur_digits(line);
	KEXPECT(t, !strncmp(line, want, strlen(want)));
	line += strlen(want);
	KEXPECT(t, !strncmp(line + 12, ": victim_call <-victim_outer\n", 29));
	line = strchr(line, '\n') + 1;
	KEXPECT(t, strstr(line, "] d.... ") == line + 29);
	KEXPECT(t, strstr(line, ": victim_call <-record_three\n") == line + 49);
	line = strchr(line, '\n') + 1;
	KEXPECT(t, strstr(line, ": tracing_mark_write: hello\n") == line + 49);
	kfree(text);
	trace_test_reset();
}

/* Reading `trace` twice gives the same. Reading `trace_pipe` takes the events away. */
KTEST(files_pipe, "tracefs.trace_pipe_consumes")
{
	char *one = kmalloc(TEXT), *two = kmalloc(TEXT);

	KASSERT(t, one && two);
	record_three();
	KEXPECT(t, trace_test_read("trace", one, TEXT, 100) > 0);
	KEXPECT(t, trace_test_read("trace", two, TEXT, 4096) > 0);
	KEXPECT(t, !strcmp(one, two));
	KEXPECT(t, trace_test_read("trace_pipe", two, TEXT, 4096) > 0);
	KEXPECT(t, strstr(one, two)); /* all of it but the header */
	KEXPECT(t, trace_test_read("trace", two, TEXT, 4096) > 0);
	KEXPECT(t, strstr(two, "entries-written: 0/0 "));
	kfree(one);
	kfree(two);
	trace_test_reset();
}

/*
 * A task reads the header and ten lines. Then calls overwrite the whole buffer. The lines, the
 * numbers in [LOST] lines and the number in the last line must add up to the number that the header
 * announced.
 */
KTEST(files_overwritten, "tracefs.trace_says_what_is_missing")
{
	unsigned long kb = ring_kb(rings, 0);
	unsigned long announced = 0, accounted = 0, missing = 0;
	struct ctl_handle *h;
	char line[CTL_RECORD + 1];
	const char *at;
	ssize_t n;

	task_set_affinity(current_task(), 1u << cpu_index());
	trace_test_put("buffer_size_kb", "8");
	trace_test_victim();
	for (unsigned int i = 0; i < 600; i++) /* more than a page of them */
		victim_call(i);
	KASSERT(t, !ctl_open("/sys/kernel/tracing/trace", false, false, &h));
	for (unsigned int i = 0; (n = ctl_read(h, line, CTL_RECORD)) > 0; i++) {
		line[n] = '\0';
		at = strstr(line, "entries-written: ");
		if (at)
			announced = number_at(at + 17);
		else if (!strncmp(line, "# ", 2))
			missing = number_at(line + 2);
		else
			accounted++;
		at = strstr(line, "[LOST ");
		if (at)
			accounted += number_at(at + 6);
		for (unsigned int c = 0; i == 10 && c < 10000; c++)
			victim_call(c);
	}
	ctl_abandon(h);
	KEXPECT_EQ(t, n, 0);
	KEXPECT_EQ(t, announced, 600);
	KEXPECT(t, missing > 0);
	KEXPECT_EQ(t, accounted + missing, announced);
	task_set_affinity(current_task(), ~0u);
	trace_test_size(kb);
	trace_test_reset();
}

FAULT_DECLARE(pipe_beaten);

/* Another reader takes all entries in front of a reader that has found how many are lost. */
KTEST(files_pipe_beaten, "tracefs.trace_pipe_beaten_by_another")
{
	unsigned long kb = ring_kb(rings, 0);
	struct ctl_handle *h;
	char line[CTL_RECORD + 1];
	ssize_t n;

	task_set_affinity(current_task(), 1u << cpu_index());
	trace_test_put("buffer_size_kb", "8");
	trace_test_victim();
	KASSERT(t,
		!ctl_open("/sys/kernel/tracing/trace_pipe", false, false, &h));
	h->nonblock = true;
	for (unsigned int c = 0; c < 10000; c++)
		victim_call(c);
	fault_plant(&fault_pipe_beaten, 1);
	KEXPECT_EQ(t, ctl_read(h, line, CTL_RECORD), -EAGAIN);
	fault_plant(&fault_pipe_beaten, 0);
	victim_call(1);
	n = ctl_read(h, line, CTL_RECORD);
	KASSERT(t, n > 0);
	line[n] = '\0';
	KEXPECT(t, strstr(line, "[LOST "));
	KEXPECT(t, strstr(line, "victim_call"));
	ctl_abandon(h);
	task_set_affinity(current_task(), ~0u);
	trace_test_size(kb);
	trace_test_reset();
}

static u64 number_after(const char *text, const char *name)
{
	const char *p = strstr(text, name);
	char digits[24];
	u64 v = ~0ull;

	if (p) {
		p += strlen(name);
		string_copy(digits, p,
			    min((size_t)(strchr(p, '\n') - p) + 1,
				sizeof(digits)));
		parse_u64(digits, &v);
	}
	return v;
}

KTEST(files_stats, "tracefs.stats_add_up")
{
	char text[512], file[40];
	u64 written = 0;

	record_three();
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++) {
		snprintf(file, sizeof(file), "per_cpu/cpu%u/stats", cpu);
		KEXPECT(t, trace_test_read(file, text, sizeof(text), 64) > 0);
		KEXPECT_EQ(t, number_after(text, "written: "),
			   number_after(text, "entries: ") +
				   number_after(text, "overrun: ") +
				   number_after(text, "dropped events: ") +
				   number_after(text, "read events: "));
		written += number_after(text, "written: ");
		KEXPECT(t, strstr(text, "\noldest event ts: "));
		KEXPECT(t, strstr(text, "\nnow ts: "));
		KEXPECT(t, strstr(text, "\ncommit overrun: 0\n"));
	}
	KEXPECT_EQ(t, written, 3);
	trace_test_reset();
}

/* The last line of trace is a marker of so many bytes. */
static bool marker_is_whole(char *text, size_t len)
{
	static const char before[] = ": tracing_mark_write: ";
	char *said;

	trace_test_read("trace", text, TEXT, 300);
	said = strrchr(text, ':');
	return said && !strncmp(said - 20, before, strlen(before)) &&
	       strlen(said + 2) == len + 1;
}

/* As in Linux 6.1: up to 1,023 bytes and the newline are one line, and 1,024 bytes. More becomes
 * more lines. */
KTEST(files_long_marker, "tracefs.long_marker")
{
	char *text = kmalloc(TEXT), *mark = kmalloc_zeroed(1200);
	static const unsigned int lengths[] = { 899, 901, 1023, 1024 };

	KASSERT(t, text && mark);
	trace_test_reset();
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		memset(mark, 'x', lengths[i]);
		KEXPECT_EQ(t, trace_test_put("trace_marker", mark), 0);
		KEXPECT(t, marker_is_whole(text, lengths[i]));
	}
	memset(mark, 'x', 1100);
	KEXPECT_EQ(t, trace_test_put("trace_marker", mark), 0);
	KEXPECT(t, marker_is_whole(text, 1100 - 1024));
	KEXPECT_EQ(t, trace_test_written(), ARRAY_SIZE(lengths) + 2);
	kfree(text);
	kfree(mark);
	trace_test_reset();
}

KTEST(files_small, "tracefs.small_files")
{
	struct ring_stats s;
	char text[256], strategy[32];

	trace_test_reset();
	trace_test_read("available_tracers", text, sizeof(text), 64);
	KEXPECT(t, strstr(text, "function ") && strstr(text, " nop\n"));
	KEXPECT_EQ(t, trace_test_put("trace_clock", "counter"), 0);
	trace_test_read("trace_clock", text, sizeof(text), 64);
	KEXPECT(t, !strcmp(text, "local global [counter] uptime mono boot\n"));
	KEXPECT(t, trace_test_says("timestamp_mode", "[delta] absolute\n"));
	KEXPECT_EQ(t, trace_test_put("timestamp_mode", "absolute"), -EPERM);
	KEXPECT_EQ(t, trace_test_put("trace_clock", "sundial"), -EINVAL);
	KEXPECT(t, strstr(trace_test_error, "local global counter"));
	KEXPECT_EQ(t, trace_test_put("trace_marker", "of the old clock"), 0);
	KEXPECT_EQ(t, trace_test_put("trace_clock", " local\t"), 0);
	KEXPECT(t, trace_test_books(&s) && !s.written);
	KEXPECT_EQ(t, trace_test_put("tracing_on", "0"), 0);
	KEXPECT_EQ(t, trace_test_put("tracing_on", "on"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("tracing_on", "\n"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("tracing_on", "99999999999999999999"),
		   -ERANGE);
	trace_test_read("tracing_on", text, sizeof(text), 64);
	KEXPECT(t, !strcmp(text, "0\n"));
	KEXPECT_EQ(t, trace_test_put("tracing_on", "7"), 0);
	trace_test_read("tracing_on", text, sizeof(text), 64);
	KEXPECT(t, !strcmp(text, "1\n"));
	KEXPECT_EQ(t, trace_test_put("current_tracer", " nop "), 0);
	KEXPECT_EQ(t, trace_test_put("tracing_on", ""), 0); /* not written */
	trace_test_read("dyn_ftrace_total_info", text, sizeof(text), 64);
	KEXPECT(t, strstr(text, " pages:"));
	snprintf(strategy, sizeof(strategy), "patch strategy: %s",
		 patch_strategy_name());
	KEXPECT(t, strstr(text, strategy));
}

/* While a task reads trace_pipe, the tracer stays: its events are of one kind. */
KTEST(files_pipe_holds, "tracefs.trace_pipe_keeps_the_tracer")
{
	struct ctl_handle *one, *two;

	trace_test_reset();
	KASSERT(t, !ctl_open(TRACING "trace_pipe", false, false, &one));
	KASSERT(t, !ctl_open(TRACING "per_cpu/cpu0/trace_pipe", false, false,
			     &two));
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), -EBUSY);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "nop"), 0);
	ctl_abandon(one);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), -EBUSY);
	ctl_abandon(two);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	trace_test_reset();
}

/* The buffer is small: events of CPU 0 are overwritten, and one is on another CPU. */
static void end_task_at_once(void *arg)
{
	(void)arg;
}

/* So many tasks that one of them has the place of each name, which a switch would take. */
static void run_many(void)
{
	for (unsigned int i = 0; i < 260; i++)
		task_join(task_create("passing", PRIO_HIGH, ~0u,
				      end_task_at_once, NULL));
}

KTEST(files_names, "tracefs.names_stay_while_off")
{
	char name[TASK_NAME_LEN];

	KEXPECT_EQ(t, trace_test_victim(), 0);
	/* Where a trigger ends the recording, the scheduler's hook stays. */
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter", "victim_call:traceoff"),
		   0);
	victim_call(1);
	run_many();
	comm_find(1, name, sizeof(name));
	KEXPECT(t, !strcmp(name, "reaper"));
	KEXPECT_EQ(t, trace_test_put("tracing_on", "1"), 0);
	/* Two CPUs that save a name at once save one of them. */
	for (unsigned int i = 0; i < 8 && !strcmp(name, "reaper"); i++) {
		run_many();
		comm_find(1, name, sizeof(name));
	}
	KEXPECT(t, !strcmp(name, "<...>"));
	trace_test_reset();
}

KTEST(files_started, "tracefs.buffer_started")
{
	unsigned long kb = ring_kb(rings, 0);
	struct ring_stats s;
	char *text;

	KNEED_TWO(t);
	text = kmalloc(TEXT);
	KASSERT(t, text);
	trace_test_put("buffer_size_kb", "8");
	trace_test_reset();
	task_set_affinity(current_task(), 1);
	trace_test_put("trace_marker", "one");
	task_set_affinity(current_task(), 2);
	trace_test_put("trace_marker", "other");
	KEXPECT(t, trace_test_read("trace", text, TEXT, 4096) > 0);
	KEXPECT(t, !strstr(text, "buffer started"));
	task_set_affinity(current_task(), 1);
	do {
		trace_test_put("trace_marker", "more");
		ring_stats(rings, 0, &s);
	} while (!s.overwritten);
	KEXPECT(t, trace_test_read("trace", text, TEXT, 4096) > 0);
	KEXPECT(t, strstr(text, "##### CPU 0 buffer started ####\n"));
	KEXPECT(t, !strstr(text, "CPU 1 buffer")); /* its line is the first */
	task_set_affinity(current_task(), ~0u);
	trace_test_size(kb);
	trace_test_reset();
	kfree(text);
}

/* The list of all functions is longer than a line, and is taken back as a filter. */
KTEST(files_all, "tracefs.all_functions_are_a_filter")
{
	struct ctl_handle *from, *to;
	char piece[100], text[160];
	ssize_t n;

	trace_test_reset();
	KASSERT(t, !ctl_open(TRACING "available_filter_functions", false, false,
			     &from));
	KASSERT(t, !ctl_open(TRACING "set_ftrace_filter", true, true, &to));
	while ((n = ctl_read(from, piece, sizeof(piece))) > 0)
		KEXPECT_EQ(t, ctl_write(to, piece, n), 0);
	ctl_abandon(from);
	KEXPECT_EQ(t, ctl_close(to, text, sizeof(text)), 0);
	KEXPECT_EQ(t, site_weight(site_bits.filter[0]),
		   site_weight(live_calls.patchable));
	trace_test_reset();
}

/* It is longer than a record. */
KTEST(files_readme, "tracefs.readme_is_whole")
{
	char *text = kmalloc(TEXT);

	KASSERT(t, text);
	KEXPECT(t, trace_test_read("README", text, TEXT, 100) > CTL_RECORD);
	KEXPECT(t, strstr(text, "  available_tracers "));
	KEXPECT(t, strstr(text, "stats of one CPU\n"));
	KEXPECT(t, strstr(text, " nosleep-time: ") &&
			   strstr(text, " nograph-time: "));
	kfree(text);
}

/* So long a name, as often as a stack has addresses, that they fill more than a usual line. */
static noinline void
files_test_calls_itself_and_has_the_longest_name_in_the_kernel(
	unsigned int levels)
{
	if (levels)
		files_test_calls_itself_and_has_the_longest_name_in_the_kernel(
			levels - 1);
	else
		victim_call(1);
	asm volatile("" ::: "memory"); /* the call is no tail call */
}

KTEST(files_long_stack, "tracefs.longest_stack_is_whole")
{
	char *text = kmalloc(TEXT);
	unsigned int lines = 0;

	KASSERT(t, text);
	trace_test_reset();
	trace_test_put("trace_options", "sym-offset sym-addr");
	trace_test_put("set_ftrace_filter", "victim_call");
	trace_test_put("options/func_stack_trace", "1");
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	files_test_calls_itself_and_has_the_longest_name_in_the_kernel(
		RING_STACK_MAX);
	trace_test_put("tracing_on", "0");
	KEXPECT(t, trace_test_read("trace", text, TEXT, 4096) > 0);
	for (const char *at = text; (at = strstr(at, "\n => ")); at++)
		lines++;
	KEXPECT_EQ(t, lines, RING_STACK_MAX);
	KEXPECT_EQ(t, text[strlen(text) - 1], '\n');
	kfree(text);
	trace_test_reset();
}

/* All sites are on and every CPU works: each event names a site that was on. */
KTEST(files_events, "tracefs.every_event_is_a_site")
{
	struct trace_worker *w = trace_workers;
	const struct ring_entry *e;
	struct trace_iter *it;
	unsigned int wrong = 0, n = 0;

	trace_test_reset();
	trace_test_put("set_ftrace_notrace", "victim_other");
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	KASSERT(t, trace_workers_start(w, 2000));
	trace_workers_join(w);
	trace_test_put("tracing_on", "0");
	it = trace_iter_open(rings, cpus_present(), true);
	KASSERT(t, it);
	for (; (e = trace_iter_peek(it)); n++) {
		int site = site_find(e->ip - trace_test_site_length);

		bool known = site >= 0 && site_test(live_calls.enabled, site);

		/* A task's first function has no caller. */
		if (known && strcmp(site_function(site), "task_start"))
			known = e->parent >= (unsigned long)_text &&
				e->parent < (unsigned long)_etext;
		wrong += !known;
		trace_iter_next(it);
	}
	trace_iter_close(it);
	KEXPECT_EQ(t, wrong, 0);
	KEXPECT(t, n > 2000);
	trace_test_reset();
}
