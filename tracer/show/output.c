/* SPDX-License-Identifier: MIT */
/* Events as text: the merge over CPUs, and Linux's line format. */
#include <tracer/show/files_marker.h>
#include <tracer/show/output.h>

#include <kernel/errno.h>

#include <kernel/cpu/cpu.h>
#include <kernel/lib/format.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/core/tracer.h>
#include <tracer/core/comm.h>
#include <tracer/core/options.h>
#include <tracer/show/lines.h>
#include <tracer/base/stored.h>

/* Does a room above show it? */
#define SHOWN(member, ...)                                                     \
	({                                                                     \
		const struct trace_lines *lines;                               \
		bool shown = false;                                            \
                                                                               \
		for_each_registered (lines, trace_lines)                       \
			if (!shown && lines->member)                           \
				shown = lines->member(__VA_ARGS__);            \
		shown;                                                         \
	})

/* ---- Merging ---------------------------------------------------------------- */

struct trace_iter *trace_iter_open(const struct ring *set, cpumask_t mask,
				   bool bounded)
{
	struct trace_iter *it = kmalloc_zeroed(sizeof(*it));
	unsigned int cpu;

	if (it)
		it->graph = kmalloc_zeroed(nr_cpus * sizeof(*it->graph));
	if (it && !it->graph) {
		kfree(it);
		return NULL;
	}
	if (it) {
		it->set = set;
		it->in = set[0].in;
		it->until = ~0ull;
		it->mask = mask;
	}
	for (cpu = 0; it && cpu < nr_cpus; cpu++) {
		if (!(mask & 1u << cpu))
			continue;
		if (ring_cursor_open(&it->cursors[it->nr], set, cpu, bounded)) {
			trace_iter_close(it);
			return NULL;
		}
		it->nr++;
	}
	return it;
}

void trace_iter_close(struct trace_iter *it)
{
	if (!it)
		return;
	while (it->nr)
		ring_cursor_close(&it->cursors[--it->nr]);
	kfree(it->graph);
	kfree(it);
}

void trace_iter_restart(struct trace_iter *it, cpumask_t mask)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < it->nr; i++) {
		struct ring_cursor *c = &it->cursors[i];

		ring_cursor_restart(c);
		if (mask & 1u << c->cpu) {
			struct ring_cursor first = it->cursors[kept];

			it->cursors[kept++] = *c;
			*c = first;
		}
	}
	it->nr = kept;
}

bool trace_iter_window(struct trace_iter *it)
{
	return SHOWN(open, it);
}

static bool peek_in_window(const struct trace_iter *it, struct ring_cursor *c)
{
	while (ring_cursor_peek(c)) {
		if (c->entry.clock >= it->from && c->entry.clock <= it->until)
			return true;
		ring_cursor_next(c);
	}
	return false;
}

const struct ring_entry *trace_iter_peek(struct trace_iter *it)
{
	unsigned int i;

	it->next = NULL;
	for (i = 0; i < it->nr; i++) {
		struct ring_cursor *c = &it->cursors[i];

		if (peek_in_window(it, c) &&
		    (!it->next ||
		     ring_when(&c->entry) < ring_when(&it->next->entry)))
			it->next = c;
	}
	return it->next ? &it->next->entry : NULL;
}

const struct ring_entry *trace_iter_peek_line(struct trace_iter *it)
{
	const struct ring_entry *e = trace_iter_peek(it);

	if (e)
		ring_cursor_join(it->next);
	return e;
}

void trace_iter_next(struct trace_iter *it)
{
	ring_cursor_next(it->next);
}

bool trace_iter_consume(struct trace_iter *it)
{
	return ring_cursor_take(it->next);
}

u64 trace_iter_lost(struct trace_iter *it)
{
	u64 lost = it->next->lost;

	it->next->lost = 0;
	return lost;
}

/* ---- Clocks ----------------------------------------------------------------- */

/*
 * There is one clock for all CPUs, which counts from boot and never sleeps. So local, global, mono
 * and boot are the same, in nanoseconds. uptime is in hundredths of a second. counter gives each
 * entry of any instance the next number.
 */
const char trace_clock_names[] = "local global counter uptime mono boot";
static const char *const clocks[] = { "local",	"global", "counter",
				      "uptime", "mono",	  "boot" };
#define CLOCK_UPTIME 3
#define UPTIME_NS (10 * NSEC_PER_MSEC)

void trace_clock_show(struct seq *s, const struct trace_instance *in)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++)
		seq_printf(s, i == in->clock ? "%s[%s]" : "%s%s", i ? " " : "",
			   clocks[i]);
	seq_printf(s, "\n");
}

int trace_clock_select(struct trace_instance *in, const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++)
		if (!strcmp(clocks[i], name)) {
			in->clock = i;
			return 0;
		}
	return -EINVAL;
}

static bool is_in_ns(const struct trace_instance *in)
{
	return !instance_counts(in) && READ_ONCE(in->clock) != CLOCK_UPTIME;
}

notrace u64 trace_stamp(const struct trace_instance *in, u64 when)
{
	if (instance_counts(in))
		return when;
	return clock_to_ns(when) / (is_in_ns(in) ? 1 : UPTIME_NS);
}

void trace_time(struct seq *s, const struct trace_instance *in, u64 when)
{
	u64 stamp = trace_stamp(in, when), us = stamp / NSEC_PER_USEC;

	if (is_in_ns(in)) {
		seq_decimal(s, us / 1000000, 5, ' ');
		seq_puts(s, ".");
		seq_decimal(s, us % 1000000, 6, '0');
	} else {
		seq_printf(s, "%12llu", (unsigned long long)stamp);
	}
}

char trace_mark(u64 ns)
{
	static const struct {
		char mark;
		u32 ns;
	} marks[] = {
		{ '$', 1000000000 }, { '@', 100000000 }, { '*', 10000000 },
		{ '#', 1000000 },    { '!', 100000 },	 { '+', 10000 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(marks); i++)
		if (ns > marks[i].ns)
			return marks[i].mark;
	return ' ';
}

/* ---- Lines ------------------------------------------------------------------ */

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

void trace_count(const struct ring *set, cpumask_t mask, u64 *entries,
		 u64 *written)
{
	struct ring_stats stats;

	*entries = *written = 0;
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++) {
		if (!(mask & 1u << cpu))
			continue;
		ring_stats(set, cpu, &stats);
		*entries += stats.held;
		*written += stats.held + stats.overwritten;
	}
}

void trace_header(struct seq *s, const struct trace_iter *it)
{
	bool whole;

	if (!instance_option(it->in, OPT_CONTEXT_INFO))
		return;
	seq_printf(s, "# tracer: %s\n#\n", READ_ONCE(it->in->tracer)->name);
	whole = SHOWN(summary, s, it);
	if (SHOWN(header, s, it) || whole)
		return;
	seq_printf(s,
		   "# entries-in-buffer/entries-written: %llu/%llu   #P:%u\n",
		   (unsigned long long)it->announced,
		   (unsigned long long)it->written, nr_cpus);
	seq_printf(s, "#\n%s",
		   instance_option(it->in, OPT_IRQ_INFO) ? legend :
							   short_legend);
}

void trace_duration(struct seq *s, u64 ns)
{
	size_t begin = s->len, width;

	seq_decimal(s, ns / NSEC_PER_USEC, 1, ' ');
	if (s->len - begin < 7) {
		seq_puts(s, ".");
		seq_decimal(s, ns % NSEC_PER_USEC, 3, '0');
		s->len = min(s->len, begin + 8);
	}
	width = s->len - begin;
	seq_puts(s, " us ");
	seq_fill(s, ' ', 8 - (int)width);
}

/* Linux's five characters. There are no bottom halves, and only
 * preempt_disable() keeps a task from migrating. */
void trace_flags(struct seq *s, u32 context)
{
	unsigned int depth = min(context & PREEMPT_DEPTH_MASK, 15u);
	bool irq = context & PREEMPT_IRQ_MASK, nmi = context & PREEMPT_NMI;

	const char text[] = { context & RING_CONTEXT_IRQS_OFF ? 'd' : '.',
			      context & PREEMPT_RESCHED ? 'N' : '.',
			      nmi ? (irq ? 'Z' : 'z') :
			      irq ? 'h' :
				    '.',
			      depth ? "0123456789abcdef"[depth] : '.',
			      '.',
			      ' ',
			      '\0' };

	seq_puts(s, text);
}

void trace_function(struct seq *s, unsigned long addr, unsigned long at)
{
	struct symbol sym;

	if (symbol_at(at, &sym))
		seq_puts(s, sym.name);
	else
		seq_printf(s, "0x%08lx", addr);
}

/* A function's name, with the additions of the options sym-offset and sym-addr. */
static void put_place(struct seq *s, const struct trace_instance *in,
		      unsigned long addr, unsigned long at)
{
	struct symbol sym;

	trace_function(s, addr, at);
	if (instance_option(in, OPT_SYM_OFFSET) && symbol_at(at, &sym))
		seq_printf(s, "+0x%lx/0x%lx", addr - sym.start, sym.size);
	if (instance_option(in, OPT_SYM_ADDR))
		seq_printf(s, " <%0*lx>", (int)(2 * STORED_LONG), addr);
}

/* A parent is a return address: after a call that ends a function it lies in the
 * next one, so look a byte before it. */
void trace_call(struct seq *s, const struct trace_instance *in,
		const struct ring_entry *e)
{
	put_place(s, in, e->ip, e->ip);
	if (!instance_option(in, OPT_PRINT_PARENT))
		return;
	seq_puts(s, " <-");
	put_place(s, in, e->parent, e->parent - 1);
}

void trace_stack(struct seq *s, const struct trace_instance *in,
		 const struct ring_entry *e)
{
	seq_printf(s, "<stack trace>\n");
	for (unsigned int i = 0; i < e->len / sizeof(u32); i++) {
		unsigned long pc = STORED_TEXT + stored_u32(&e->stack[i]);

		seq_printf(s, " => ");
		put_place(s, in, pc, pc - 1);
		seq_printf(s, "\n");
	}
}

/* "victim_call <-victim_outer (repeats: 4, last_ts:     1.234567)" */
static void put_repeats_line(struct seq *s, const struct trace_instance *in,
			     const struct ring_entry *e)
{
	trace_call(s, in, e);
	seq_printf(s, " (repeats: %u, last_ts: ", e->repeats);
	trace_time(s, in, e->last);
	seq_printf(s, ")");
}

/* "      5:  4:R   + [001]       9:  7:R fork": the task that ran, and the one that comes. */
static void put_ring_switch(struct seq *s, const struct ring_entry *e)
{
	const struct ring_switch *sw = e->record;
	u32 next = stored_u32(&sw->next_pid);
	char comm[TASK_NAME_LEN];

	comm_find(next, comm, sizeof(comm));
	seq_printf(s, " %7u:%3u:%c %s [%03u] %7u:%3u:%c %s",
		   stored_u32(&sw->prev_pid), sw->prev_prio,
		   RING_STATES[sw->prev_state % sizeof(RING_STATES)],
		   e->event == RING_WAKEUP ? "  +" : "==>",
		   stored_u32(&sw->next_cpu), next, sw->next_prio,
		   RING_STATES[sw->next_state % sizeof(RING_STATES)], comm);
}

void trace_event(struct seq *s, const struct ring_entry *e)
{
	if (e->event == RING_WAKEUP || e->event == RING_SWITCH) {
		put_ring_switch(s, e);
		return;
	}
	if (!SHOWN(event, s, e))
		seq_printf(s, "an event of the unknown kind %u", e->event);
}

void trace_marker_text(struct seq *s, const struct ring_entry *e, u32 room)
{
	if (!e->raw) {
		seq_printf(s, "%.*s", (int)min(e->len, room), e->text);
		return;
	}
	seq_printf(s, "# %x buf:", stored_u32((const u32 *)e->text));
	for (u32 i = sizeof(u32); i < e->len; i++)
		seq_printf(s, " %02x", (u8)e->text[i]);
}

static void put_mark_line(struct seq *s, const struct ring_entry *e)
{
	unsigned long ip = (unsigned long)tracing_mark_write;

	if (!e->raw) {
		trace_function(s, ip, ip);
		seq_printf(s, ": ");
	}
	trace_marker_text(s, e, e->len);
}

/* "            ping-7       [001] " */
static void put_task_columns(struct seq *s, const struct ring_entry *e)
{
	char comm[TASK_NAME_LEN];
	size_t begin;

	comm_find(e->pid, comm, sizeof(comm));
	seq_fill(s, ' ', 16 - (int)strlen(comm));
	seq_puts(s, comm);
	seq_puts(s, "-");
	begin = s->len;
	seq_decimal(s, e->pid, 0, ' ');
	seq_fill(s, ' ', 7 - (int)(s->len - begin));
	seq_puts(s, " [");
	seq_decimal(s, e->cpu, 3, '0');
	seq_puts(s, "] ");
}

void trace_line(struct seq *s, struct trace_iter *it,
		const struct ring_entry *e)
{
	if (SHOWN(line, s, it, e))
		return;
	if (instance_option(it->in, OPT_CONTEXT_INFO) &&
	    !SHOWN(columns, s, it, e)) {
		put_task_columns(s, e);
		if (instance_option(it->in, OPT_IRQ_INFO))
			trace_flags(s, e->context);
		trace_time(s, it->in, ring_when(e));
		seq_puts(s, ": ");
	}
	if (e->stack) {
		trace_stack(s, it->in, e);
		return;
	}
	if (e->event)
		trace_event(s, e);
	else if (e->repeats)
		put_repeats_line(s, it->in, e);
	else if (!e->text)
		trace_call(s, it->in, e);
	else
		put_mark_line(s, e);
	seq_puts(s, "\n");
}

void trace_line_mark(struct seq *s, struct trace_iter *it, u64 clock)
{
	SHOWN(mark, s, it, clock);
}
