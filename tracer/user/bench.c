/* SPDX-License-Identifier: MIT */
/*
 * The shell's `bench`: instructions of everything that has a limit, counted by
 * the machine under `-icount shift=0`, where they are the same in every run. One
 * line a figure, for tools/bench:
 *	bench: NAME VALUE UNIT LIMIT
 */
#include <boot/boot_info.h>
#include <tracer/core/tracer.h>

#include <kernel/errno.h>
#include <kernel/test/ktest.h>
#include <kernel/printk.h>
#include <kernel/mm/page.h>
#include <kernel/shell/shell.h>
#include <kernel/lib/string.h>
#include <kernel/time.h>
#include <kernel/test/victim.h>
#include <kernel/lock/mutex.h>
#include <tracer/patch/patch.h>
#include <kernel/event/event.h>
#include <tracer/user/probe.h>
#include <tracer/ring/ring_control.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/sites/kept_off.h>
#include <tracer/sites/sites.h>
#include <tracer/core/calls.h>
#include <tracer/base/event.h>
#include <tracer/core/filter.h>
#include <tracer/core/client.h>
#include <tracer/core/pids.h>

#define CALLS 10000u
#define TURNS 8

/* The tracer's functions write here when something is wrong. Nothing reads it. */
static struct ctl_handle errors;

/* All figures are kept in tenths. limit 0: none. */
static int put_figure(struct sink *out, const char *name, u64 tenths,
		      const char *unit, unsigned int limit)
{
	unsigned long n = tenths;
	char text[12] = "-";

	if (limit)
		snprintf(text, sizeof(text), "%u", limit);
	/* A console may interrupt for the line later: not in the next figure. */
	return sink_printf(out, "bench: %s %lu.%lu %s %s\n", name, n / 10, n % 10, unit, text) ?:
		       (task_sleep(NSEC_PER_MSEC), 0);
}

/* Instructions of CALLS calls, interrupts off. */
static noinline u64 count_calls(unsigned long (*fn)(unsigned long x))
{
	irq_state_t state = arch_irq_save();
	unsigned long x = 0;
	u64 start;

	fn(0);
	start = arch_instructions();
	for (unsigned int i = 0; i < CALLS; i++)
		x = fn(x);
	start = arch_instructions() - start;
	arch_irq_restore(state);
	return start;
}

/* The cost that the site, and all that it calls, adds to a call. */
static u64 cost_of_site(void)
{
	u64 with = count_calls(victim_call);
	u64 without = count_calls(victim_call_notrace);

	/* Rounded: where an instruction counter ticks more coarsely, a whole
	 * number may come out one short. */
	return ((with - without) * 10 + CALLS / 2) / CALLS;
}

static u64 cost_with(bool recording)
{
	u64 cost;

	trace_record(recording, trace_top.cpumask);
	cost = cost_of_site();
	trace_record(true, trace_top.cpumask);
	return cost;
}

/* The room of a call and its return in the buffer. */
static u64 bytes_of_graph_call(void)
{
	irq_state_t state = arch_irq_save();
	const char *const *cur =
		(const char *const *)&arch_this_cpu()->head.ring.cur;
	const char *before;
	u64 tenths;

	ring_restart(&rings[cpu_index()]);
	before = *cur;
	for (unsigned int i = 0; i < TURNS; i++)
		victim_call(i);
	tenths = (*cur - before) * 10 / TURNS;
	arch_irq_restore(state);
	return tenths;
}

/* A jump label that is off, against the same function without it. */
static u64 cost_of_label(void)
{
	u64 with = count_calls(victim_label);
	u64 without = count_calls(victim_no_label);

	return ((with - without) * 10 + CALLS / 2) / CALLS;
}

/* An event that is on, from its jump label to the next instruction: sched_switch has one of
 * the longest records. */
static u64 cost_of_switch_event(void)
{
	const struct task *t = arch_current();
	irq_state_t state = arch_irq_save();
	unsigned int i;
	u64 start, loop;

	event_sched_switch(t, t);
	start = arch_instructions();
	for (i = 0; i < CALLS; i++)
		asm volatile("");
	loop = arch_instructions() - start;
	start = arch_instructions();
	for (i = 0; i < CALLS; i++)
		event_sched_switch(t, t);
	start = arch_instructions() - start - loop;
	arch_irq_restore(state);
	ring_clear(rings, ~0u);
	return (start * 10 + CALLS / 2) / CALLS;
}

/* A function by name, added to those traced, while the tracer runs. */
static u64 cost_of_name(void)
{
	u64 start, least = ~0ull;

	for (unsigned int i = 0; i < TURNS; i++) {
		char add[] = "victim_other", drop[] = "!victim_other";

		start = arch_instructions();
		filter_write(&errors, &trace_top.filter, add, true);
		start = arch_instructions() - start;
		filter_write(&errors, &trace_top.filter, drop, true);
		least = min(least, start);
	}
	return least * 10;
}

static int put_sites(struct sink *out)
{
	struct mm_stats memory;

	mm_stats(&memory);
	put_figure(out, "sites", site_count * 10ull, "sites", 0);
	put_figure(out, "memory_used",
		   (memory.pages_total - memory.pages_free) * 10 * PAGE_SIZE /
			   1024,
		   "KiB", 0);
	/* One instruction is one nanosecond: the clock had no rate yet then,
	 * and arch_instructions() need not work that early. */
	put_figure(out, "boot_conversion",
		   clock_delta_to_ns(site_boot.clock) * 10 /
			   (site_count + kept_off_count + jump_count),
		   "instructions/site", 50);
	put_figure(out, "site_table", site_bytes() * 10 / max(site_count, 1u),
		   "bytes/site", 5);
	return put_figure(out, "jump_table", jump_bytes() * 10 / jump_count,
			  "bytes/label", 8);
}

/* ---- Strategies ------------------------------------------------------------ */

/*
 * Linux, for comparison, instructions a site to enable everything: 4,473 to 5,312
 * with breakpoints on x86-64, 544 on RISC-V, 669 on MIPS. The stall is the
 * longest that a task at the highest priority was kept from running, waking it
 * included.
 */
static void put_strategy(struct sink *out, const char *name, unsigned int limit)
{
	char what[40];
	u64 enable, disable, stall;

	probe_batches(&enable, &disable);
	snprintf(what, sizeof(what), "%s_enable_all", name);
	put_figure(out, what, enable, "instructions/site", limit);
	snprintf(what, sizeof(what), "%s_disable_all", name);
	put_figure(out, what, disable, "instructions/site", limit);
	snprintf(what, sizeof(what), "%s_longest_stall", name);
	if (!probe_measure(site_count, &stall))
		put_figure(out, what, stall * 10, "ns", 0);
}

/* Every strategy that this CPU does not refuse. */
static void put_strategies(struct sink *out)
{
	const char *before = patch_strategy_name(), *why;
	const struct patch_strategy *s;

	for_each_registered (s, patch_strategies) {
		if (patch_strategy_set(s->name, &why))
			continue;
		put_strategy(out, s->name,
			     !strcmp(s->name, "bypass")	    ? 140 :
			     !strcmp(s->name, "breakpoint") ? 118 :
							      50);
	}
	patch_strategy_set(before, &why);
}

/* Write a control file, which takes trace_mutex itself. */
static void write_file(const char *file, const char *text, bool append)
{
	char error[160];

	mutex_unlock(&trace_mutex);
	if (ctl_echo(file, text, append, error, sizeof(error)))
		printk("bench: %s: %s: %s\n", file, text, error);
	mutex_lock(&trace_mutex);
}

static void put_file(const char *file, const char *text)
{
	write_file(file, text, false);
}

#define BESIDE TRACING "instances/bench"

/* The cost of a call that is recorded while another instance traces another function. */
static u64 cost_beside(void)
{
	char error[160];
	int err;
	u64 cost;

	mutex_unlock(&trace_mutex);
	err = ctl_mkdir(BESIDE, error, sizeof(error));
	mutex_lock(&trace_mutex);
	if (err) { /* it may be a user's */
		printk("bench: %s: %s\n", BESIDE, error);
		return 0;
	}
	put_file(BESIDE "/set_ftrace_filter", "victim_other");
	put_file(BESIDE "/current_tracer", "function");
	cost = cost_with(true);
	mutex_unlock(&trace_mutex);
	err = ctl_rmdir(BESIDE, error, sizeof(error));
	/* Memory may have been short for a moment. Nothing may stay behind. */
	if (err)
		err = ctl_rmdir(BESIDE, error, sizeof(error));
	if (err)
		printk("bench: %s: %s\n", BESIDE, error);
	mutex_lock(&trace_mutex);
	return cost;
}

/* And one that is not recorded, because its task is not in set_ftrace_pid. */
static u64 cost_filtered(void)
{
	u64 cost;

	put_file(TRACING "set_ftrace_pid", "2147483647");
	cost = cost_with(true);
	put_file(TRACING "set_ftrace_pid", "");
	return cost;
}

/* A trigger on victim_call() that has nothing to do. `>>` leaves those of other functions. */
static void add_triggers(const char *text)
{
	write_file(TRACING "set_ftrace_filter", text, true);
}

#define LINES 17
#define TRIGGERS 100000 /* in sum, for their list is one block of memory */

/* The last of some lines that give each function another trigger: its cost for each trigger. */
static u64 cost_of_trigger_line(void)
{
	const struct event *e = __start_events;
	unsigned int lines = 0, last;
	char text[80];
	u64 start;

	do {
		snprintf(text, sizeof(text), "*:disable_event:%s:%s", e->system,
			 e->name);
		start = arch_instructions();
		add_triggers(text);
		start = arch_instructions() - start;
		last = ++lines;
	} while (last < LINES && last * site_count < TRIGGERS &&
		 ++e < __stop_events);
	for (; lines; lines--, e--) {
		snprintf(text, sizeof(text), "!*:disable_event:%s:%s",
			 e->system, e->name);
		add_triggers(text);
	}
	return start * 10 / (last * site_count);
}

/* The cost of a first and of a further trigger of a call, while other functions have over 64. */
static void put_triggers(struct sink *out)
{
	u64 none, one, two;

	add_triggers("s*:traceon s*:enable_event:sched:sched_switch");
	put_file(TRACING "set_event", "sched:sched_switch");
	none = cost_with(true);
	add_triggers("victim_call:traceon");
	one = cost_with(true);
	add_triggers("victim_call:enable_event:sched:sched_switch");
	two = cost_with(true);
	put_file(TRACING "set_event", "");
	add_triggers("!*:traceon !*:enable_event:sched:sched_switch");
	put_figure(out, "call_beside_triggers", none, "instructions", 500);
	put_figure(out, "first_trigger", one - none, "instructions", 60);
	put_figure(out, "further_trigger", two - one, "instructions", 20);
	put_figure(out, "line_of_triggers", cost_of_trigger_line(),
		   "instructions/trigger", 420);
}

static int put_calls(struct sink *out)
{
	char filter[] = "victim_call";
	int err;

	/* As much as the longest port may. tools/bench knows each port's. */
	put_figure(out, "disabled_site", cost_of_site(), "instructions", 3);
	put_figure(out, "disabled_label", cost_of_label(), "instructions", 2);
	put_figure(out, "sched_switch_event", cost_of_switch_event(),
		   "instructions", 120);
	err = filter_write(&errors, &trace_top.filter, filter, false);
	if (!err)
		err = trace_select(&errors, "function");
	if (err)
		return shell_error(err, "bench", "%s", errors.error);
	put_figure(out, "function_event", cost_with(true), "instructions", 45);
	put_figure(out, "tracing_off", cost_with(false), "instructions", 10);
	put_figure(out, "filtered_by_pid", cost_filtered(), "instructions", 30);
	put_figure(out, "beside_an_instance", cost_beside(), "instructions",
		   65);
	if (&__start_events[0] < __stop_events)
		put_triggers(out);
	if (!trace_select(&errors, "function_graph")) {
		put_figure(out, "graph_call", cost_with(true), "instructions",
			   140);
		put_figure(out, "graph_bytes", bytes_of_graph_call(), "bytes",
			   24);
	}
	trace_select(&errors, "function");
	return put_figure(out, "enable_one_name", cost_of_name(),
			  "instructions", 2850);
}

/* Instructions that it takes to find that there is no such control file, for which all are
 * looked at, and one name of a listing. */
static void put_files(struct sink *out)
{
	char name[40] = "trace_clock";
	irq_state_t state = arch_irq_save();
	u64 start = arch_instructions(), found, listed;

	ctl_mode(TRACING "no_such_file");
	found = arch_instructions() - start;
	start = arch_instructions();
	ctl_next(TRACING, name, sizeof(name));
	listed = arch_instructions() - start;
	arch_irq_restore(state);
	put_figure(out, "find_file", found * 10, "instructions", 80000);
	put_figure(out, "list_name", listed * 10, "instructions", 280000);
}

/* ---- Names ----------------------------------------------------------------- */

#define TRACED TRACING "set_ftrace_filter"

/* Instructions to write the names of all functions to the filter, in pieces that a write takes,
 * and in *listed those to read them. */
static u64 cost_of_all_names(u64 *listed)
{
	struct ctl_handle *names, *filter = NULL;
	u64 start, written = 0;
	size_t size = 0;
	char text[128];
	ssize_t n;

	*listed = 0;
	if (ctl_open(TRACING "available_filter_functions", false, false,
		     &names))
		return 0;
	for (;;) {
		start = arch_instructions();
		n = ctl_read(names, text, sizeof(text));
		*listed += arch_instructions() - start;
		if (n <= 0)
			break;
		start = arch_instructions();
		if (filter || !ctl_open(TRACED, true, false, &filter))
			ctl_write(filter, text, n);
		size += n;
		if (size > CTL_WRITE_MAX / 2 && text[n - 1] == '\n' && filter) {
			ctl_close(filter, NULL, 0);
			filter = NULL;
			size = 0;
		}
		written += arch_instructions() - start;
	}
	ctl_abandon(names);
	start = arch_instructions();
	if (filter)
		ctl_close(filter, NULL, 0);
	return written + arch_instructions() - start;
}

/* Of all names the least of two, which a late interrupt of the console did not interrupt. */
static void put_names(struct sink *out)
{
	unsigned int sites = max(site_count, 1u);
	u64 start = arch_instructions(), names, listed = ~0ull, written = ~0ull;

	put_file(TRACED, "v*_*");
	start = arch_instructions() - start;
	put_figure(out, "filter_by_pattern", start * 10 / sites,
		   "instructions/site", 540);
	for (unsigned int i = 0; i < 2; i++) {
		put_file(TRACED, "");
		mutex_unlock(&trace_mutex);
		written = min(written, cost_of_all_names(&names));
		mutex_lock(&trace_mutex);
		listed = min(listed, names);
	}
	put_figure(out, "filter_by_all_names", written * 10 / sites,
		   "instructions/site", 3300);
	put_figure(out, "list_all_names", listed * 10 / sites,
		   "instructions/site", 900);
	if (trace_top.filter.count != site_count)
		printk("bench: of %u names %u are in the filter\n", site_count,
		       trace_top.filter.count);
	put_file(TRACED, "");
}

/* What a user has set would change the figures, and be lost. */
static bool tracer_is_used(void)
{
	return trace_top.tracer->ops || calls_ops(trace_top.tracer) ||
	       trace_top.filter.count || trace_top.left_out.count ||
	       clients_need() || pids_are_listed(&trace_top) || !trace_top.on;
}

static int measure_all(struct sink *out, bool calls_only)
{
	int err;

	if (tracer_is_used())
		return shell_error(-EBUSY, "bench",
				   "the tracer is in use; "
				   "`trace reset` first");
	if (!calls_only) {
		put_sites(out);
		put_files(out);
		put_strategies(out);
		put_names(out);
	}
	err = put_calls(out);
	trace_select(&errors, "nop");
	put_file(TRACED, "");
	return err;
}

static int cmd_bench(struct sink *out, int argc, char **argv)
{
	int err;

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "calls")))
		return shell_error(-EINVAL, "bench",
				   "takes `calls`, or nothing");
	if (!boot_info.icount)
		return shell_error(-EINVAL, "bench",
				   "counts instructions, "
				   "which needs -icount: use `make bench`");
	mutex_lock(&trace_mutex);
	err = measure_all(out, argc > 1);
	mutex_unlock(&trace_mutex);
	return err;
}
SHELL_CMD(
	bench, "bench", "[calls]",
	"instructions of all that has a limit, or of calls; empties the buffer",
	cmd_bench);
