/* SPDX-License-Identifier: MIT */
/* All that a buffer holds, as `trace` shows it: listing.h. */
#include <tracer/show/listing.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <tracer/core/options.h>
#include <tracer/core/tracer.h>

void listing_lost(struct seq *s, unsigned int cpu, u64 lost)
{
	if (lost)
		seq_printf(s, "CPU:%u [LOST %llu EVENTS]\n", cpu,
			   (unsigned long long)lost);
}

/* At the end: how many entries the header has announced and writers have
 * overwritten since, unless a line has said so. */
static int put_missing(struct seq *s, struct trace_iter *it)
{
	u64 missing = it->announced > it->shown ? it->announced - it->shown : 0;

	it->announced = 0;
	if (missing)
		seq_printf(s,
			   "# %llu of these entries were overwritten while "
			   "they were read; echo 0 > tracing_on keeps them\n",
			   (unsigned long long)missing);
	return missing != 0;
}

/* Of an iterator that is used for nothing else any more. */
static u64 count_entries(struct trace_iter *it)
{
	u64 n = 0;

	trace_iter_window(it);
	for (; trace_iter_peek(it); n++)
		trace_iter_next(it);
	return n;
}

int listing_head(struct trace_iter **iter, struct seq *s)
{
	struct trace_iter *old = *iter, *it;
	u64 announced, written;

	trace_count(old->set, old->mask, &announced, &written);
	it = trace_iter_open(old->set, old->mask, true);
	if (!it)
		return -ENOMEM;
	if (trace_iter_window(it))
		announced = written = count_entries(old);
	it->pauses = old->pauses;
	trace_iter_close(old);
	*iter = it;
	it->announced = announced;
	it->written = written;
	trace_header(s, it);
	/* A line of a call graph is about more than one entry. */
	if (READ_ONCE(it->in->tracer)->graph || it->latency_format)
		it->announced = 0;
	else if (written > announced && instance_option(it->in, OPT_ANNOTATE))
		it->annotate = it->mask;
	return 1;
}

/*
 * As Linux: where old events were overwritten, a CPU's first line says that earlier lines are
 * other CPUs' alone.
 */
static void put_started(struct seq *s, struct trace_iter *it, unsigned int cpu)
{
	cpumask_t bit = 1u << cpu;

	if ((it->annotate & bit) && it->shown)
		seq_printf(s, "##### CPU %u buffer started ####\n", cpu);
	it->annotate &= ~bit;
}

int listing_entry(struct trace_iter *it, struct seq *s)
{
	const struct ring_entry *e = trace_iter_peek_line(it);
	u64 lost, clock;

	if (!e)
		return put_missing(s, it);
	put_started(s, it, e->cpu);
	lost = trace_iter_lost(it);
	it->shown += 1 + lost;
	listing_lost(s, e->cpu, lost);
	trace_line(s, it, e);
	clock = e->clock;
	trace_iter_next(it);
	trace_line_mark(s, it, clock);
	return 1;
}
