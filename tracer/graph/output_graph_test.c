/* SPDX-License-Identifier: MIT */
/* Proves that the text of a call graph is Linux's to the letter. */
#include <tracer/testing.h>
#include <tracer/graph/output_graph.h>

#include <kernel/irq.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/printk.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

#define RULE " ------------------------------------------\n"

static const struct text_case {
	struct ring_entry e; /* ip: filled in */
	const char *line;
} cases[] = {
	{ { .pid = -1, .graph = RING_GRAPH_RETURN, .depth = 2 },
	  " 3)   0.000 us    |      } /* victim_call */\n" },
	{ { .pid = -1, .graph = RING_GRAPH_ENTRY, .depth = 1 },
	  " 3)               |    victim_call() {\n" },
	{ { .pid = -1, .text = "a note", .len = 6 },
	  " 3)               |      /* a note */\n" },
	/*
	 * An event of the function tracer, whose task was preempted inside the
	 * function.
	 */
	{ { .pid = -1, .parent = (unsigned long)victim_outer + 4 },
	  " 3)               |      /* victim_call <-victim_outer */\n" },
	{ { .pid = -1, .graph = RING_GRAPH_LEAF, .depth = 2 },
	  " 3)   0.000 us    |      victim_call();\n" },
	{ { .pid = -1, .graph = RING_GRAPH_RETURN, .depth = 1 },
	  " 3)   0.000 us    |    }\n" },
	{ { .pid = 0, .graph = RING_GRAPH_LEAF },
	  RULE " 3)    <...>--1    =>    <idle>-0   \n" RULE "\n"
	       " 3)   0.000 us    |  victim_call();\n" },
};

/* The part of a duration that no clock's tick can change. */
static const struct {
	u64 ns;
	const char *starts, *ends;
} durations[] = {
	{ 7500, " 3)   7.", " us    |  victim_call();\n" },
	{ 70500, " 3) + 70.", " us   |  victim_call();\n" },
	{ 500500, " 3) ! 500.", " us  |  victim_call();\n" },
	{ 5000500, " 3) # 5000.", " us |  victim_call();\n" },
	{ 50000500, " 3) * 50000.", " us |  victim_call();\n" },
	{ 500000500, " 3) @ 500000.", " us |  victim_call();\n" },
	{ 2000000500, " 3) $ 2000000 us", " us  |  victim_call();\n" },
};

/* Around the handling of an interrupt, and with the column of the latency format. */
static const struct text_case interrupts[] = {
	{ { .pid = -1, .graph = RING_GRAPH_LEAF },
	  " 3)   ==========> |\n 3)   0.000 us    |  irq_event();\n"
	  " 3)   <========== |\n" },
	{ { .pid = -1, .graph = RING_GRAPH_ENTRY, .depth = 1 },
	  " 3)   ==========> |\n 3)               |    irq_event() {\n" },
	{ { .pid = -1, .graph = RING_GRAPH_RETURN, .depth = 1 },
	  " 3)   0.000 us    |    }\n 3)   <========== |\n" },
};
static const struct text_case flagged = {
	{ .pid = -1, .graph = RING_GRAPH_LEAF, .context = PREEMPT_IRQ_ONE | 2 },
	" 3)  ..h2. |   ==========> |\n"
	" 3)  ..h2. |   0.000 us    |  irq_event();\n"
	" 3)  ..h2. |   <========== |\n"
};

static const struct text_case unmarked = {
	{ .pid = -1, .graph = RING_GRAPH_LEAF },
	" 3)   0.000 us    |  irq_event();\n"
};

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), n = strlen(end);

	return len >= n && !strcmp(s + len - n, end);
}

/* A machine with more than ten CPUs has two columns for one. The cases have one column. */
static void narrow_cpu(struct seq *s)
{
	char *to = s->buf;

	for (const char *from = s->buf; *from; *to++ = *from++)
		from += !strncmp(from, "  3) ", 5);
	*to = '\0';
}

/* Is that the text of an entry of CPU 3, which is one of the function at ip? */
static bool is_line(struct seq *s, struct trace_graph *g, struct text_case c,
		    unsigned long ip, bool flags)
{
	c.e.cpu = 3;
	c.e.ip = c.e.text ? 0 : ip;
	s->len = 0;
	trace_graph_line(s, g, &c.e, flags);
	narrow_cpu(s);
	if (!strcmp(s->buf, c.line))
		return true;
	printk("# %s# is not\n# %s", s->buf, c.line);
	return false;
}

KTEST(graph_text, "graph.text")
{
	struct trace_graph *g = kmalloc_zeroed(sizeof(*g));
	struct seq *s = kmalloc_zeroed(sizeof(*s));
	struct ring_entry e;

	KASSERT(t, g && s);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		KEXPECT(t, is_line(s, g, cases[i], (unsigned long)victim_call,
				   false));
	memset(g, 0, sizeof(*g));
	for (unsigned int i = 0; i < ARRAY_SIZE(interrupts); i++)
		KEXPECT(t, is_line(s, g, interrupts[i],
				   (unsigned long)irq_event, false));
	KEXPECT(t, is_line(s, g, flagged, (unsigned long)irq_event, true));
	KEXPECT_EQ(t, trace_test_put("options/funcgraph-irqs", "0"), 0);
	KEXPECT(t, is_line(s, g, unmarked, (unsigned long)irq_event, false));
	KEXPECT_EQ(t, trace_test_put("options/funcgraph-irqs", "1"), 0);
	memset(g, 0, sizeof(*g));
	for (unsigned int i = 0; i < ARRAY_SIZE(durations); i++) {
		e = (struct ring_entry){
			.cpu = 3,
			.ip = (unsigned long)victim_call,
			.graph = RING_GRAPH_LEAF,
			.ticks = ns_to_clock_delta(durations[i].ns),
		};
		s->len = 0;
		trace_graph_line(s, g, &e, false);
		narrow_cpu(s);
		KEXPECT(t, !strncmp(s->buf, durations[i].starts,
				    strlen(durations[i].starts)));
		KEXPECT(t, ends_with(s->buf, durations[i].ends));
	}
	kfree(g);
	kfree(s);
}

/* The longest marker at the deepest level still ends its line. */
KTEST(graph_comment, "graph.longest_comment")
{
	struct trace_graph *g = kmalloc_zeroed(sizeof(*g));
	struct seq *s = kmalloc_zeroed(sizeof(*s));
	char *text = kmalloc(RING_MARK_MAX);
	struct ring_entry e = { .text = text, .len = RING_MARK_MAX };

	KASSERT(t, g && s && text);
	memset(text, 'x', RING_MARK_MAX);
	g->open = TASK_RETURNS;
	trace_graph_line(s, g, &e, false);
	KEXPECT(t, ends_with(s->buf, "x */\n"));
	kfree(text);
	kfree(g);
	kfree(s);
}
