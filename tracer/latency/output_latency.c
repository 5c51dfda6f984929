/* SPDX-License-Identifier: MIT */
/*
 * Linux's latency format:
 *
 *	# irqsoff latency trace v1.1.5 on nopl
 *	# latency: 91 us, #2/2, CPU#0 | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:4)
 *	   <idle>-0         0d.h.    0us+: irq_enter <-arch_cpu_idle
 */
#include <tracer/latency/latency.h>

#include <kernel/cpu/cpu.h>
#include <kernel/lib/string.h>
#include <kernel/printk.h>
#include <kernel/time.h>
#include <tracer/core/comm.h>
#include <tracer/core/options.h>
#include <tracer/core/tracer.h>
#include <tracer/show/lines.h>

/* clang-format off */
static const char legend[] =
"#                    _------=> CPU#            \n"
"#                   / _-----=> irqs-off/BH-disabled\n"
"#                  | / _----=> need-resched    \n"
"#                  || / _---=> hardirq/softirq \n"
"#                  ||| / _--=> preempt-depth   \n"
"#                  |||| / _-=> migrate-disable \n"
"#                  ||||| /     delay           \n"
"#  cmd     pid     |||||| time  |   caller     \n"
"#     \\   /        ||||||  \\    |    /       \n";
/* clang-format on */

static bool latency_window(struct trace_iter *it)
{
	bool longest = READ_ONCE(trace_top.tracer)->latency &&
		       it->set == trace_top.spares;

	it->latency_format =
		longest || instance_option(it->in, OPT_LATENCY_FORMAT);
	if (!longest)
		return false;
	it->latency = latency_longest();
	it->from = it->latency.since;
	it->until = it->latency.until;
	return true;
}

static void put_function(struct seq *s, const char *label, unsigned long ip)
{
	seq_printf(s, "#  => %s", label);
	trace_function(s, ip, ip);
	seq_printf(s, "\n");
}

static bool latency_summary(struct seq *s, const struct trace_iter *it)
{
	static const char rule[] = "#    -----------------\n";
	const struct tracer *tracer = READ_ONCE(it->in->tracer);
	const struct latency *l = &it->latency;
	char comm[TASK_NAME_LEN];

	if (!it->latency_format)
		return false;
	comm_find(l->pid, comm, sizeof(comm));
	seq_printf(s, "# %s latency trace v1.1.5 on nopl\n", tracer->name);
	seq_printf(s, "# ----------------------------------------------------"
		      "----------------\n");
	seq_printf(s,
		   "# latency: %llu us, #%llu/%llu, CPU#%u | (M:preempt VP:0, "
		   "KP:0, SP:0 HP:0 #P:%u)\n",
		   (unsigned long long)(clock_delta_to_ns(l->ticks) /
					NSEC_PER_USEC),
		   (unsigned long long)it->announced,
		   (unsigned long long)it->written, l->cpu, nr_cpus);
	seq_printf(s,
		   "%s#    | task: %s-%d (uid:0 nice:0 policy:0 "
		   "rt_prio:%d)\n%s",
		   rule, comm, l->pid, l->prio, rule);
	if (l->began) {
		put_function(s, "started at: ", l->began);
		put_function(s, "ended at:   ", l->ended);
		seq_printf(s, "#\n");
	}
	seq_printf(s, "#\n%s", tracer->graph ? "" : legend);
	return true;
}

/* Times count from the beginning of the latency. Without one, of the buffer. */
static u64 latency_beginning(const struct trace_iter *it)
{
	u64 first = it->from;

	for (unsigned int cpu = 0; !it->from && cpu < nr_cpus; cpu++)
		if (!first || it->set[cpu].began < first)
			first = it->set[cpu].began;
	return first;
}

static u64 ns_between(u64 from, u64 to)
{
	return to > from ? clock_delta_to_ns(to - from) : 0;
}

static bool latency_columns(struct seq *s, struct trace_iter *it,
			    const struct ring_entry *e)
{
	char comm[TASK_NAME_LEN];

	if (!it->latency_format)
		return false;
	comm_find(e->pid, comm, sizeof(comm));
	seq_printf(s, "%8.8s-%-7d %3u", comm, e->pid, e->cpu);
	trace_flags(s, e->context);
	seq_printf(s, "%4lluus",
		   (unsigned long long)(ns_between(latency_beginning(it),
						   e->clock) /
					NSEC_PER_USEC));
	it->mark_at = s->len;
	seq_printf(s, " : ");
	return true;
}

static bool latency_mark(struct seq *s, struct trace_iter *it, u64 clock)
{
	const struct ring_entry *next;

	if (!it->latency_format || !it->mark_at)
		return false;
	next = trace_iter_peek(it);
	if (next && it->mark_at < s->len)
		s->buf[it->mark_at] =
			trace_mark(ns_between(clock, next->clock));
	return true;
}

TRACE_LINES(latency, .open = latency_window, .summary = latency_summary,
	    .columns = latency_columns, .mark = latency_mark);
