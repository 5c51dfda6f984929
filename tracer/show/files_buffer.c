/* SPDX-License-Identifier: MIT */
/* Control files that show the recorded entries: trace, trace_pipe, per_cpu, and the buffer's
 * size. */
#include <tracer/core/tracer.h>

#include <kernel/cpu/cpu.h>
#include <kernel/image/symbols.h>
#include <kernel/errno.h>
#include <kernel/lib/bits.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/lock/mutex.h>
#include <kernel/console.h>
#include <kernel/event/event.h>
#include <kernel/test/fault.h>
#include <tracer/show/files_buffer.h>
#include <tracer/show/listing.h>
#include <tracer/show/output.h>
#include <tracer/patch/patch.h>
#include <tracer/ring/ring_control.h>
#include <tracer/ring/ring_more.h>
#include <tracer/core/options.h>
#include <tracer/show/snapshot.h>
#include <tracer/core/client.h>

#define PIPE_WAIT_NS (20 * NSEC_PER_MSEC)

/* An address of a stack is shown as " => name <address>", all of them behind the columns. */
static_assert(RING_STACK_MAX * (SYMBOL_BUF + 24) + 200 <= CTL_RECORD);

/* ---- trace: a look that leaves everything where it is ----------------------- */

/* With option pause-on-trace nothing is recorded while a reader has it open. */
static void pause_for_reader(struct trace_iter *it, struct trace_instance *in,
			     bool on)
{
	if (it->pauses == on)
		return;
	it->pauses = on;
	mutex_lock(&trace_mutex);
	in->pauses += on ? 1 : -1;
	instance_refresh(in);
	mutex_unlock(&trace_mutex);
}

int trace_show_open(struct ctl_handle *h, const struct ring *set,
		    cpumask_t mask)
{
	struct trace_instance *in = instance_of(h);

	if (set == in->spares) {
		snapshot_hold(in);
		mask &= snapshot_cpus(in);
	}
	h->priv = trace_iter_open(set, mask, true);
	if (h->priv) {
		/* A reader of `snapshot` pauses nothing. A latency tracer's trace, which that file
		 * refuses to show, is set aside as well. */
		pause_for_reader(h->priv, in,
				 instance_option(in, OPT_PAUSE_ON_TRACE) &&
					 (set != in->spares ||
					  READ_ONCE(in->tracer)->latency));
		return 0;
	}
	if (set == in->spares)
		snapshot_release(in);
	return -ENOMEM;
}

void trace_show_release(struct ctl_handle *h)
{
	struct trace_instance *in = instance_of(h);
	struct trace_iter *it = h->priv;

	if (it->set == in->spares)
		snapshot_release(in);
	pause_for_reader(it, in, false);
	trace_iter_close(it);
}

bool trace_show_is_empty(struct ctl_handle *h)
{
	return !h->pos && !trace_iter_peek(h->priv);
}

int trace_show_read(struct ctl_handle *h, struct seq *s)
{
	return h->pos++ ? listing_entry(h->priv, s) :
			  listing_head((struct trace_iter **)&h->priv, s);
}

static int clear_buffer(struct ctl_handle *h, cpumask_t mask)
{
	struct trace_instance *in = instance_of(h);

	if (!h->truncate)
		return 0;
	mutex_lock(&trace_mutex);
	if (!in->tracer->latency)
		ring_clear(in->buffer, mask);
	clients_trace_cleared(in, mask);
	mutex_unlock(&trace_mutex);
	return 0;
}

/* A latency tracer's result is in the pages that it has set aside. */
static const struct ring *shown_rings(const struct trace_instance *in)
{
	return READ_ONCE(in->tracer)->latency ? in->spares : in->buffer;
}

static int buffer_trace_open(struct ctl_handle *h)
{
	return trace_show_open(h, shown_rings(instance_of(h)), cpus_of_file(h));
}

static int trace_write(struct ctl_handle *h, char *text)
{
	(void)text;
	return clear_buffer(h, cpus_of_file(h));
}
CPU_FILES(CTL_FILE, trace, .open = buffer_trace_open,
	  .release = trace_show_release, .read = trace_show_read,
	  .write = trace_write, .empties = true);

static void put_stat_time(struct seq *s, const struct trace_instance *in,
			  const char *name, u64 clock)
{
	seq_printf(s, "%s: ", name);
	trace_time(s, in, clock);
	seq_printf(s, "\n");
}

static void cpu_stats_show(struct ctl_handle *h, struct seq *s)
{
	const struct trace_instance *in = instance_of(h);
	struct ring_stats r;

	ring_stats(in->buffer, h->index, &r);
	seq_printf(s, "entries: %llu\n", (unsigned long long)r.held);
	seq_printf(s, "overrun: %llu\n", (unsigned long long)r.overwritten);
	seq_printf(s, "commit overrun: 0\n");
	seq_printf(s, "bytes: %llu\n", (unsigned long long)r.bytes);
	put_stat_time(s, in, "oldest event ts", r.oldest);
	put_stat_time(s, in, "now ts",
		      instance_counts(in) ? ring_count(0) : arch_clock());
	seq_printf(s, "dropped events: %llu\n", (unsigned long long)r.dropped);
	seq_printf(s, "read events: %llu\n", (unsigned long long)r.read);
	/* = entries + overrun + dropped events + read events */
	seq_printf(s, "written: %llu\n", (unsigned long long)r.written);
}
CTL_FILE(cpu_stats, .path = TRACING "per_cpu/cpu%u/stats",
	 .folders = &trace_folders, .show = cpu_stats_show);

/* ---- trace_pipe: consumes, and waits for more --------------------------------- */

static int pipe_open(struct ctl_handle *h)
{
	h->priv =
		trace_iter_open(instance_of(h)->buffer, cpus_of_file(h), false);
	if (!h->priv)
		return -ENOMEM;
	trace_count_pipes(instance_of(h), 1);
	return 0;
}

static void pipe_release(struct ctl_handle *h)
{
	trace_count_pipes(instance_of(h), -1);
	trace_iter_close(h->priv);
}

/*
 * Nothing wakes a reader: a wake-up from inside a traced function would be a
 * hazard of its own. As in Linux, the end comes when tracing has been turned off
 * and everything has been read.
 */
static int pipe_wait(struct ctl_handle *h)
{
	if (h->pos && !READ_ONCE(instance_of(h)->on))
		return -EPIPE;
	if (h->nonblock)
		return -EAGAIN;
	if (console_interrupted() || task_should_stop())
		return -EINTR;
	task_sleep(PIPE_WAIT_NS);
	return 0;
}

FAULT(pipe_beaten, "another reader takes each entry that trace_pipe has found");

static int pipe_read(struct ctl_handle *h, struct seq *s)
{
	struct trace_iter *it = h->priv;
	const struct ring_entry *e;
	struct ring_entry entry;
	int err;

	for (;;) {
		e = trace_iter_peek_line(it);
		if (e) {
			entry = *e;
			if (fault_happens(&fault_pipe_beaten))
				trace_iter_consume(it);
			if (trace_iter_consume(it))
				break;
			continue;
		}
		err = pipe_wait(h);
		if (err)
			return err == -EPIPE ? 0 : err;
	}
	/* Not before: the text of a read that ends without an entry is gone. */
	listing_lost(s, entry.cpu, trace_iter_lost(it));
	trace_line(s, it, &entry);
	h->pos++;
	return 1;
}
CPU_FILES(CTL_FILE, trace_pipe, .open = pipe_open, .release = pipe_release,
	  .read = pipe_read);

/* ---- Size --------------------------------------------------------- */

static void buffer_size_show(struct ctl_handle *h, struct seq *s)
{
	const struct ring *set = instance_of(h)->buffer;
	cpumask_t mask = cpus_of_file(h);
	unsigned int first = h->file->data ? h->index : 0;
	bool same = true;

	for (unsigned int cpu = first; cpu < nr_cpus && mask >> cpu; cpu++)
		same &= ring_kb(set, cpu) == ring_kb(set, first);
	if (same)
		seq_printf(s, "%lu\n", ring_kb(set, first));
	else
		seq_printf(s, "X\n"); /* as Linux shows it */
}

static int buffer_size_write(struct ctl_handle *h, char *text)
{
	struct trace_instance *in = instance_of(h);
	cpumask_t mask = cpus_of_file(h);
	u64 kb = 0;
	int err = ctl_number(h, text, ~0ull, "number of KiB", &kb);

	if (err || !kb)
		return err ?: ctl_error(h, -EINVAL, "it has 1 KiB at least");
	snapshot_hold(in);
	if (ring_resize(in->buffer, mask, kb))
		err = ctl_error(
			h, -ENOMEM,
			"no memory for "
			"%llu KiB on each of %u CPUs; it stays as it is",
			(unsigned long long)kb, bit_count(mask));
	snapshot_release(in);
	return err;
}
CPU_FILES(TRACE_FILE, buffer_size_kb, .show = buffer_size_show,
	  .write = buffer_size_write);

static void buffer_total_show(struct ctl_handle *h, struct seq *s)
{
	unsigned long kb = 0;

	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		kb += ring_kb(instance_of(h)->buffer, cpu);
	seq_printf(s, "%lu\n", kb);
}
CTL_FILE(buffer_total_size_kb, .path = TRACING "buffer_total_size_kb",
	 .folders = &trace_folders, .show = buffer_total_show);

/* ---- Other files of Linux ------------------------------------------------------ */

/* The texts that binary records point to: there is no trace_printk(), so no formats. */
static int printk_formats_read(struct ctl_handle *h, struct seq *s)
{
	unsigned int words = __stop_event_words - __start_event_words;
	const struct patch_strategy *strategy = __start_patch_strategies;
	const char *word;

	if (h->pos < words)
		word = __start_event_words[h->pos];
	else if (strategy + (h->pos - words) < __stop_patch_strategies)
		word = strategy[h->pos - words].name;
	else
		return 0;
	h->pos++;
	seq_printf(s, "0x%lx : \"%s\"\n", (unsigned long)word, word);
	return 1;
}
CTL_FILE(printk_formats, .path = TRACING "printk_formats",
	 .folders = &trace_folders, .read = printk_formats_read);

/* Stop, and give the memory of the buffer back, but for the least that a ring has. A latency tracer
 * keeps as much for the longest latency that is still to come. */
static int free_buffer_write(struct ctl_handle *h, char *text)
{
	struct trace_instance *in = instance_of(h);
	int err;

	(void)text;
	instance_record(in, false, in->cpumask);
	clients_trace_cleared(in, ~0u);
	if (!in->tracer->latency)
		snapshot_free(in);
	snapshot_hold(in);
	err = ring_resize(in->buffer, cpus_present(), 0);
	snapshot_release(in);
	return err;
}
TRACE_FILE(free_buffer, .path = TRACING "free_buffer",
	   .folders = &trace_folders, .write = free_buffer_write,
	   .empties = true);
