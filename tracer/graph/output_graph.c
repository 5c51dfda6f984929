/* SPDX-License-Identifier: MIT */
/*
 * Events as a call graph, in the format of Linux's function_graph:
 *
 *	# CPU  DURATION                  FUNCTION CALLS
 *	 1)               |  outer() {
 *	 1)   0.281 us    |    inner();
 *	 1) + 12.080 us   |  }
 */
#include <tracer/show/output.h>

#include <kernel/cpu/cpu.h>
#include <kernel/image/symbols.h>
#include <kernel/irq.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/time.h>
#include <tracer/core/tracer.h>
#include <tracer/core/comm.h>
#include <tracer/show/lines.h>
#include <tracer/core/options.h>
#include <tracer/graph/output_graph.h>

#define INDENT 2      /* a call deeper */
#define PROC_WIDTH 14 /* of a task's name and pid */
#define COMM_WIDTH 7

static bool column_shown(unsigned int column)
{
	return trace_option(OPT_CONTEXT_INFO) && trace_option(column);
}

/* The names of the flags, above their column, which begins behind `width` blanks. */
static void put_flags_legend(struct seq *s, int width)
{
	static const char *const lines[] = {
		"  _-----=> irqs-off        ", " / _----=> need-resched    ",
		"| / _---=> hardirq/softirq ", "|| / _--=> preempt-depth   ",
		"||| /                      ",
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(lines); i++)
		seq_printf(s, "#%*s%s\n", width, "", lines[i]);
}

static bool graph_header(struct seq *s, const struct trace_iter *it)
{
	bool flags = it->latency_format;
	bool time = trace_option(OPT_GRAPH_ABSTIME);
	bool cpu = trace_option(OPT_GRAPH_CPU);
	bool task = trace_option(OPT_GRAPH_PROC);
	bool duration = column_shown(OPT_GRAPH_DURATION);

	if (!READ_ONCE(it->in->tracer)->graph)
		return false;
	if (flags)
		put_flags_legend(s, 16 * time + 4 * cpu + 17 * task);
	seq_printf(s, "#%s%s%s%s%s               FUNCTION CALLS\n",
		   time ? "     TIME       " : "", cpu ? " CPU" : "",
		   task ? "  TASK/PID       " : "", flags ? "||||   " : "",
		   duration ? "  DURATION   " : "");
	seq_printf(s, "#%s%s%s%s%s               |   |   |   |\n",
		   time ? "      |         " : "", cpu ? " |  " : "",
		   task ? "   |    |        " : "", flags ? "||||   " : "",
		   duration ? "   |   |      " : "");
	return true;
}

/* ---- Columns ---------------------------------------------------------------- */

static void put_cpu(struct seq *s, unsigned int cpu)
{
	seq_puts(s, " ");
	seq_decimal(s, cpu, nr_cpus > 10 ? 2 : 1, ' ');
	seq_puts(s, ") ");
}

/* In the middle of its column. */
static void put_task(struct seq *s, s32 pid)
{
	char comm[TASK_NAME_LEN], text[40];
	int blanks;

	comm_find(pid, comm, sizeof(comm));
	blanks = PROC_WIDTH -
		 snprintf(text, sizeof(text), "%.*s-%d", COMM_WIDTH, comm, pid);
	blanks = max(blanks, 0);
	seq_printf(s, "%*s%s%*s", blanks / 2, "", text, blanks - blanks / 2,
		   "");
}

static void put_switch(struct seq *s, unsigned int cpu, s32 from, s32 to)
{
	static const char rule[] =
		" ------------------------------------------\n";

	seq_puts(s, rule);
	put_cpu(s, cpu);
	put_task(s, from);
	seq_puts(s, " => ");
	put_task(s, to);
	seq_printf(s, "\n%s\n", rule);
}

static void put_duration(struct seq *s, u64 ticks)
{
	u64 ns = clock_delta_to_ns(ticks);

	if (!column_shown(OPT_GRAPH_DURATION))
		return;
	seq_fill(s, trace_option(OPT_GRAPH_OVERHEAD) ? trace_mark(ns) : ' ', 1);
	seq_puts(s, " ");
	trace_duration(s, ns);
	seq_puts(s, "|  ");
}

static void put_no_duration(struct seq *s)
{
	if (column_shown(OPT_GRAPH_DURATION))
		seq_puts(s, "              |  ");
}

/* ---- Lines ------------------------------------------------------------------ */

static void put_graph_entry(struct seq *s, struct trace_graph *g,
			    const struct ring_entry *e)
{
	bool leaf = e->graph == RING_GRAPH_LEAF;

	g->ip[e->depth] = leaf ? 0 : e->ip;
	g->open = e->depth + !leaf;
	if (leaf)
		put_duration(s, e->ticks);
	else
		put_no_duration(s);
	seq_fill(s, ' ', e->depth * INDENT);
	trace_function(s, e->ip, e->ip);
	seq_puts(s, leaf ? "();\n" : "() {\n");
}

/* Where the line that opened the brace is missing, or is far from it, this one
 * has the name. */
static void put_graph_return(struct seq *s, struct trace_graph *g,
			     const struct ring_entry *e)
{
	put_duration(s, e->ticks);
	seq_fill(s, ' ', e->depth * INDENT);
	seq_puts(s, "}");
	if (g->ip[e->depth] != e->ip || trace_option(OPT_GRAPH_TAIL)) {
		seq_puts(s, " /* ");
		trace_function(s, e->ip, e->ip);
		seq_puts(s, " */");
	}
	seq_puts(s, "\n");
	if (trace_option(OPT_GRAPH_OVERRUN))
		seq_printf(s, " (Overruns: %u)\n", e->missed);
	g->ip[e->depth] = 0;
	g->open = e->depth;
}

/* A marker, or an event, or a call that another tracer began to record before it went. */
static void put_comment(struct seq *s, const struct trace_graph *g,
			const struct ring_entry *e)
{
	static const char end[] = " */\n";
	u32 room;

	put_no_duration(s);
	seq_fill(s, ' ', g->open * INDENT);
	if (e->stack) {
		trace_stack(s, &trace_top, e);
		return;
	}
	seq_puts(s, "/* ");
	/* The longest, deep within, would not leave room for the end. */
	room = CTL_RECORD - s->len - sizeof(end);
	if (e->text)
		trace_marker_text(s, e, room);
	else if (e->event)
		trace_event(s, e);
	else
		trace_call(s, &trace_top, e);
	seq_puts(s, end);
}

/* The columns before the duration. */
static void put_context(struct seq *s, const struct ring_entry *e, bool flags)
{
	if (column_shown(OPT_GRAPH_ABSTIME)) {
		trace_time(s, &trace_top, ring_when(e));
		seq_puts(s, " |  ");
	}
	if (column_shown(OPT_GRAPH_CPU))
		put_cpu(s, e->cpu);
	if (column_shown(OPT_GRAPH_PROC)) {
		put_task(s, e->pid);
		seq_puts(s, " | ");
	}
	if (trace_option(OPT_CONTEXT_INFO) && flags) {
		seq_puts(s, " ");
		trace_flags(s, e->context);
		seq_puts(s, "| ");
	}
}

/* Is the call one of irq_event(), in which every interrupt is handled? */
static bool is_interrupt(const struct ring_entry *e)
{
	struct symbol sym;

	return symbol_at(e->ip, &sym) && sym.start == (unsigned long)irq_event;
}

/* A line that marks where an interrupt begins, or ends. */
static void put_interrupt(struct seq *s, const struct ring_entry *e, bool flags,
			  const char *mark)
{
	put_context(s, e, flags);
	if (column_shown(OPT_GRAPH_DURATION))
		seq_puts(s, "  ");
	seq_puts(s, mark);
	if (column_shown(OPT_GRAPH_DURATION))
		seq_puts(s, " |");
	seq_puts(s, "\n");
}

void trace_graph_line(struct seq *s, struct trace_graph *g,
		      const struct ring_entry *e, bool flags)
{
	bool interrupt =
		e->graph && trace_option(OPT_GRAPH_IRQS) && is_interrupt(e);

	if (g->begun && g->pid != e->pid)
		put_switch(s, e->cpu, g->pid, e->pid);
	g->begun = true;
	g->pid = e->pid;
	if (interrupt && e->graph != RING_GRAPH_RETURN)
		put_interrupt(s, e, flags, "==========>");
	put_context(s, e, flags);
	if (e->graph == RING_GRAPH_RETURN)
		put_graph_return(s, g, e);
	else if (e->graph)
		put_graph_entry(s, g, e);
	else
		put_comment(s, g, e);
	if (interrupt && e->graph != RING_GRAPH_ENTRY)
		put_interrupt(s, e, flags, "<==========");
}

static bool graph_line(struct seq *s, struct trace_iter *it,
		       const struct ring_entry *e)
{
	if (!e->graph && !READ_ONCE(it->in->tracer)->graph)
		return false;
	it->mark_at = 0;
	trace_graph_line(s, &it->graph[e->cpu], e, it->latency_format);
	return true;
}

TRACE_LINES(graph, .header = graph_header, .line = graph_line);
