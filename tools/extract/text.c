/* SPDX-License-Identifier: MIT */
/* The trace as text, as the guest's own `cat trace` prints it (tracer/show). */
#include "latency.h"

#include <stdlib.h>
#include <string.h>

static struct latency_view view;
static long delay_at; /* the column of a delay in the last line. 0: it has none */

/* Options that lines ask for, looked up once. */
static struct {
	bool parent, offset, addr, context, irq, annotate;
	bool cpu, overhead, proc, duration, abstime, tail, overrun, irqs;
} opt;

static void read_options(const struct trace *t)
{
	opt.parent = trace_option(t, "print-parent");
	opt.offset = trace_option(t, "sym-offset");
	opt.addr = trace_option(t, "sym-addr");
	opt.context = trace_option(t, "context-info");
	opt.irq = trace_option(t, "irq-info");
	opt.annotate = trace_option(t, "annotate");
	opt.cpu = trace_option(t, "funcgraph-cpu");
	opt.overhead = trace_option(t, "funcgraph-overhead");
	opt.proc = trace_option(t, "funcgraph-proc");
	opt.duration = trace_option(t, "funcgraph-duration");
	opt.abstime = trace_option(t, "funcgraph-abstime");
	opt.tail = trace_option(t, "funcgraph-tail");
	opt.overrun = trace_option(t, "funcgraph-overrun");
	opt.irqs = trace_option(t, "funcgraph-irqs");
}

/* ---- Parts of lines -------------------------------------------------------------- */

static void put_time(const struct trace *t, u64 when, FILE *f)
{
	unsigned long long stamp = trace_stamp(t, when);

	if (trace_is_in_ns(t))
		fprintf(f, "%5llu.%06llu", stamp / 1000000000,
			stamp / 1000 % 1000000);
	else
		fprintf(f, "%12llu", stamp);
}

static void put_flags(u32 c, FILE *f)
{
	u32 depth = c & PREEMPT_DEPTH_MASK;
	bool irq = c & PREEMPT_IRQ_MASK, nmi = c & PREEMPT_NMI;

	if (depth > 15)
		depth = 15;
	fprintf(f, "%c%c%c%c. ", c & RING_CONTEXT_IRQS_OFF ? 'd' : '.',
		c & PREEMPT_RESCHED ? 'N' : '.',
		nmi ? (irq ? 'Z' : 'z') :
		irq ? 'h' :
		      '.',
		depth ? "0123456789abcdef"[depth] : '.');
}

static void put_place(const struct trace *t, u64 addr, u64 at, FILE *f)
{
	const struct symbol *s = image_symbol_at(&t->g->im, at);

	put_function(t, addr, at, f);
	if (opt.offset && s)
		fprintf(f, "+0x%llx/0x%llx",
			(unsigned long long)(addr - s->addr),
			(unsigned long long)s->size);
	if (opt.addr)
		fprintf(f, " <%0*llx>", 2 * (int)t->g->im.pointer_size,
			(unsigned long long)addr);
}

static void put_call(const struct trace *t, const struct trace_entry *e,
		     FILE *f)
{
	put_place(t, e->ip, e->ip, f);
	if (!opt.parent)
		return;
	fputs(" <-", f);
	put_place(t, e->parent, e->parent - 1, f);
}

static void put_stack(const struct trace *t, const struct trace_entry *e,
		      FILE *f)
{
	u64 pc;

	fputs("<stack trace>\n", f);
	for (u32 i = 0; i + 4 <= e->len; i += 4) {
		pc = t->g->im.text + image_number(&t->g->im, e->bytes + i, 4);
		fputs(" => ", f);
		put_place(t, pc, pc - 1, f);
		fputc('\n', f);
	}
}

/* A struct ring_switch, which is four words long. */
static void put_ring_switch(const struct trace *t, const struct trace_entry *e,
			    FILE *f)
{
	static const char states[] = RING_STATES;
	u32 prev = image_number(&t->g->im, e->bytes, 4);
	u32 next = image_number(&t->g->im, e->bytes + 4, 4);
	const uint8_t *more = e->bytes + 12; /* priority and state of both */

	fprintf(f, " %7u:%3u:%c %s [%03u] %7u:%3u:%c %s", prev, more[0],
		states[more[1] % sizeof(states)],
		e->id == RING_WAKEUP ? "  +" : "==>",
		(u32)image_number(&t->g->im, e->bytes + 8, 4), next, more[2],
		states[more[3] % sizeof(states)], trace_comm(t, next));
}

static void put_event(const struct trace *t, const struct trace_entry *e,
		      FILE *f)
{
	const struct event *event = find_event(t, e->id);

	if ((e->id == RING_WAKEUP || e->id == RING_SWITCH) && e->len >= 16) {
		put_ring_switch(t, e, f);
		return;
	}
	if (!event) {
		fprintf(f, "an event of the unknown kind %u", e->id);
		return;
	}
	fprintf(f, "%s: ", event->name);
	record_text(t, event, e->bytes, e->len, f);
}

void text_of_raw(const struct trace *t, const struct trace_entry *e, FILE *f)
{
	fprintf(f, "# %x buf:", (u32)image_number(&t->g->im, e->bytes, 4));
	for (u32 i = 4; i < e->len; i++)
		fprintf(f, " %02x", e->bytes[i]);
}

static void put_latency_columns(const struct trace *t,
				const struct trace_entry *e, FILE *f)
{
	fprintf(f, "%8.8s-%-7d %3u", trace_comm(t, e->pid), e->pid, e->cpu);
	put_flags(e->context, f);
	fprintf(f, "%4lluus",
		(unsigned long long)(latency_between(t, view.zero, e->clock) /
				     1000));
	delay_at = ftell(f);
	fputs(" : ", f);
}

static void put_line(const struct trace *t, const struct trace_entry *e,
		     FILE *f)
{
	if (opt.context && view.format) {
		put_latency_columns(t, e, f);
	} else if (opt.context) {
		fprintf(f, "%16s-%-7d [%03u] ", trace_comm(t, e->pid), e->pid,
			e->cpu);
		if (opt.irq)
			put_flags(e->context, f);
		put_time(t, trace_when(e), f);
		fputs(": ", f);
	}
	if (e->kind == STACK) {
		put_stack(t, e, f);
		return;
	}
	if (e->kind == EVENT || e->kind == UNKNOWN) {
		put_event(t, e, f);
	} else if (e->kind == RAW) {
		text_of_raw(t, e, f);
	} else if (e->kind == MARKER) {
		fprintf(f, "tracing_mark_write: %.*s", (int)e->len,
			(const char *)e->bytes);
	} else {
		put_call(t, e, f);
		if (e->repeats) {
			fprintf(f, " (repeats: %u, last_ts: ", e->repeats);
			put_time(t, e->last, f);
			fputc(')', f);
		}
	}
	fputc('\n', f);
}

/* ---- Lines of a call graph ------------------------------------------------------- */

/* How much of one CPU's graph has been shown. */
struct graph {
	bool begun;
	s32 pid;
	u32 open;
	u64 ip[GRAPH_DEPTHS];
};
static struct graph graphs[MAX_TRACE_CPUS];

static bool shows(bool column)
{
	return opt.context && column;
}

static void put_task(const struct trace *t, s32 pid, FILE *f)
{
	char text[64];
	int blanks = 14 - snprintf(text, sizeof(text), "%.7s-%d",
				   trace_comm(t, pid), pid);

	blanks = blanks > 0 ? blanks : 0;
	fprintf(f, "%*s%s%*s", blanks / 2, "", text, blanks - blanks / 2, "");
}

static void put_switch(const struct trace *t, unsigned int cpu, s32 from,
		       s32 to, FILE *f)
{
	static const char rule[] =
		" ------------------------------------------\n";

	fprintf(f, "%s %u) ", rule, cpu);
	put_task(t, from, f);
	fputs(" => ", f);
	put_task(t, to, f);
	fprintf(f, "\n%s\n", rule);
}

static char mark(u64 ns)
{
	static const char marks[] = " +!#*@$";
	u64 limit = 10000;
	int i = 0;

	for (; i < 6 && ns > limit; i++)
		limit *= 10;
	return marks[i];
}

static void put_duration(const struct trace *t, u64 ticks, FILE *f)
{
	u64 ns = trace_delta_ns(t, ticks);
	char text[32];
	int len = snprintf(text, sizeof(text), "%llu",
			   (unsigned long long)(ns / 1000));

	if (!shows(opt.duration))
		return;
	if (len < 7)
		snprintf(text + len, 9 - len < 5 ? 9 - len : 5, ".%03u",
			 (unsigned int)(ns % 1000));
	len = strlen(text);
	fprintf(f, "%c %s us %*s|  ", opt.overhead ? mark(ns) : ' ', text,
		len < 8 ? 8 - len : 0, "");
}

static void put_no_duration(FILE *f)
{
	if (shows(opt.duration))
		fprintf(f, "%14s|  ", "");
}

static void put_context(const struct trace *t, const struct trace_entry *e,
			FILE *f)
{
	if (shows(opt.abstime)) {
		put_time(t, trace_when(e), f);
		fputs(" |  ", f);
	}
	if (shows(opt.cpu))
		fprintf(f, " %u) ", e->cpu);
	if (shows(opt.proc)) {
		put_task(t, e->pid, f);
		fputs(" | ", f);
	}
	if (opt.context && view.format) {
		fputc(' ', f);
		put_flags(e->context, f);
		fputs("| ", f);
	}
}

static void put_interrupt(const struct trace *t, const struct trace_entry *e,
			  const char *arrow, FILE *f)
{
	put_context(t, e, f);
	fprintf(f, shows(opt.duration) ? "  %s |\n" : "%s\n", arrow);
}

static void put_return(const struct trace *t, struct graph *g,
		       const struct trace_entry *e, FILE *f)
{
	put_duration(t, e->ticks, f);
	fprintf(f, "%*s}", 2 * (int)e->depth, "");
	if (g->ip[e->depth] != e->ip || opt.tail) {
		fputs(" /* ", f);
		put_function(t, e->ip, e->ip, f);
		fputs(" */", f);
	}
	fputc('\n', f);
	if (opt.overrun)
		fprintf(f, " (Overruns: %u)\n", e->missed);
	g->ip[e->depth] = 0;
	g->open = e->depth;
}

static void put_entry(const struct trace *t, struct graph *g,
		      const struct trace_entry *e, FILE *f)
{
	bool leaf = e->kind == GRAPH_LEAF;

	g->ip[e->depth] = leaf ? 0 : e->ip;
	g->open = e->depth + !leaf;
	if (leaf)
		put_duration(t, e->ticks, f);
	else
		put_no_duration(f);
	fprintf(f, "%*s", 2 * (int)e->depth, "");
	put_function(t, e->ip, e->ip, f);
	fputs(leaf ? "();\n" : "() {\n", f);
}

static void put_comment(const struct trace *t, const struct graph *g,
			const struct trace_entry *e, FILE *f)
{
	put_no_duration(f);
	fprintf(f, "%*s", 2 * (int)g->open, "");
	if (e->kind == STACK) {
		put_stack(t, e, f);
		return;
	}
	fputs("/* ", f);
	if (e->kind == MARKER)
		fprintf(f, "%.*s", (int)e->len, (const char *)e->bytes);
	else if (e->kind == RAW)
		text_of_raw(t, e, f);
	else if (e->kind == EVENT || e->kind == UNKNOWN)
		put_event(t, e, f);
	else
		put_call(t, e, f);
	fputs(" */\n", f);
}

static void put_graph_line(const struct trace *t, const struct trace_entry *e,
			   u64 irq_event, FILE *f)
{
	struct graph *g = &graphs[e->cpu];
	const struct symbol *s = image_symbol_at(&t->g->im, e->ip);
	bool is_graph = e->kind == GRAPH_ENTRY || e->kind == GRAPH_LEAF ||
			e->kind == GRAPH_RETURN;
	bool interrupt = is_graph && opt.irqs && s && s->addr == irq_event;

	if (g->begun && g->pid != e->pid)
		put_switch(t, e->cpu, g->pid, e->pid, f);
	g->begun = true;
	g->pid = e->pid;
	if (interrupt && e->kind != GRAPH_RETURN)
		put_interrupt(t, e, "==========>", f);
	put_context(t, e, f);
	if (e->kind == GRAPH_RETURN)
		put_return(t, g, e, f);
	else if (is_graph)
		put_entry(t, g, e, f);
	else
		put_comment(t, g, e, f);
	if (interrupt && e->kind != GRAPH_ENTRY)
		put_interrupt(t, e, "<==========", f);
}

/* ---- The whole ------------------------------------------------------------------- */

/* clang-format off */
static const char legend[] =
"#                                _-----=> irqs-off/BH-disabled\n"
"#                               / _----=> need-resched\n"
"#                              | / _---=> hardirq/softirq\n"
"#                              || / _--=> preempt-depth\n"
"#                              ||| / _-=> migrate-disable\n"
"#                              |||| /     delay\n"
"#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
"#              | |         |   |||||     |         |\n";
static const char short_legend[] =
"#           TASK-PID     CPU#     TIMESTAMP  FUNCTION\n"
"#              | |         |         |         |\n";
/* clang-format on */

static void put_graph_header(FILE *f)
{
	static const char *const flags[] = { "  _-----=> irqs-off        ",
					     " / _----=> need-resched    ",
					     "| / _---=> hardirq/softirq ",
					     "|| / _--=> preempt-depth   ",
					     "||| /                      " };
	const char *column = view.format ? "||||   " : "";
	bool duration = shows(opt.duration);
	int width = 16 * opt.abstime + 4 * opt.cpu + 17 * opt.proc;

	for (int i = 0; view.format && i < 5; i++)
		fprintf(f, "#%*s%s\n", width, "", flags[i]);
	fprintf(f, "#%s%s%s%s%s               FUNCTION CALLS\n",
		opt.abstime ? "     TIME       " : "", opt.cpu ? " CPU" : "",
		opt.proc ? "  TASK/PID       " : "", column,
		duration ? "  DURATION   " : "");
	fprintf(f, "#%s%s%s%s%s               |   |   |   |\n",
		opt.abstime ? "      |         " : "", opt.cpu ? " |  " : "",
		opt.proc ? "   |    |        " : "", column,
		duration ? "   |   |      " : "");
}

static void put_header(const struct trace *t, u64 entries, u64 written, FILE *f)
{
	if (!opt.context)
		return;
	fprintf(f, "# tracer: %s\n#\n", t->tracer);
	if (view.format)
		latency_header(t, &view, entries, written, f);
	if (t->graph)
		put_graph_header(f);
	if (t->graph || view.format)
		return;
	fprintf(f, "# entries-in-buffer/entries-written: %llu/%llu   #P:%u\n",
		(unsigned long long)entries, (unsigned long long)written,
		t->nr_cpus);
	fprintf(f, "#\n%s", opt.irq ? legend : short_legend);
}

/* The lines into f, returning how many entries they are. The text is f's, for the delays. */
static u64 put_lines(struct trace *t, u64 started, char **text, FILE *f)
{
	u64 irq_event = guest_symbol(t->g, NULL, "irq_event");
	u64 shown = 0, entries = 0, last = 0;
	const struct trace_entry *e;

	delay_at = 0;
	while ((e = trace_next_line(t))) {
		if (e->clock < view.since || e->clock > view.until)
			continue;
		if (delay_at) {
			fflush(f);
			(*text)[delay_at] =
				mark(latency_between(t, last, e->clock));
		}
		delay_at = 0;
		last = e->clock;
		if (!(started >> e->cpu & 1) && shown)
			fprintf(f, "##### CPU %u buffer started ####\n",
				e->cpu);
		started |= 1ull << e->cpu;
		if (e->lost)
			fprintf(f, "CPU:%u [LOST %llu EVENTS]\n", e->cpu,
				(unsigned long long)e->lost);
		shown += 1 + e->lost;
		entries += e->kind == GRAPH_LEAF ? 2 : 1;
		if (t->graph || e->kind == GRAPH_ENTRY ||
		    e->kind == GRAPH_RETURN || e->kind == GRAPH_LEAF)
			put_graph_line(t, e, irq_event, f);
		else
			put_line(t, e, f);
	}
	return entries;
}

void write_text(struct trace *t, FILE *f)
{
	u64 entries = 0, written = 0, shown, started = 0;
	char *text = NULL;
	size_t size = 0;
	FILE *lines = open_memstream(&text, &size);

	if (!lines)
		err(1, "no memory");
	read_options(t);
	latency_open(t, &view);
	memset(graphs, 0, sizeof(graphs));
	for (unsigned int i = 0; i < t->nr_cursors; i++) {
		entries += t->cursors[i].entries;
		written += t->cursors[i].entries + t->cursors[i].overwritten;
	}
	/* CPUs whose first line needs no remark. */
	if (t->graph || view.format || written == entries || !opt.annotate)
		started = ~0ull;
	shown = put_lines(t, started, &text, lines);
	if (fclose(lines))
		err(1, "no memory");
	if (view.longest)
		entries = written = shown;
	put_header(t, entries, written, f);
	fwrite(text, 1, size, f);
	free(text);
}
