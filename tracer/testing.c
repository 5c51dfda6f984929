/* SPDX-License-Identifier: MIT */
/* Helpers that the tracer's tests share: testing.h. */
#include <tracer/testing.h>
#include <tracer/core/client.h>

#include <tracer/user/cmd_reset.h>

#include <kernel/printk.h>
#include <kernel/image/symbols.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/page.h>
#include <kernel/sched/hold.h>
#include <kernel/time.h>
#include <tracer/show/snapshot.h>
#include <kernel/test/again.h>

char trace_test_error[160];

static int write_file(const char *file, const char *text, bool append)
{
	char path[128];

	trace_test_error[0] = '\0';
	snprintf(path, sizeof(path), TRACING "%s", file);
	return ctl_echo(path, text, append, trace_test_error,
			sizeof(trace_test_error));
}

int trace_test_put(const char *file, const char *text)
{
	return write_file(file, text, false);
}

int trace_test_add(const char *file, const char *text)
{
	return write_file(file, text, true);
}

static int site_of_function(unsigned long (*fn)(unsigned long x))
{
	unsigned int i = site_lower_bound((unsigned long)fn);
	struct symbol s;

	if (i == site_count || !symbol_at(site_address(i), &s) ||
	    s.start != (unsigned long)fn)
		return -1;
	return i;
}

static void ignore_value(unsigned long x)
{
	(void)x;
}

/*
 * RECORD=runtime knows only functions that have been called. Once: sites that a
 * test has looked up keep their index while it runs.
 */
static void meet_victims(void)
{
	if (!site_recorder.learn || site_of_function(victim_call) >= 0)
		return;
	victim_other(victim_outer(victim_leaf(1)));
	victim_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
	victim_two(1);
	victim_struct(1);
	victim_varargs(1, 2);
	victim_nested(1);
	victim_callback(ignore_value, 1);
	site_recorder.learn();
}

bool trace_test_has(const char *client)
{
	const struct trace_client *c;

	for_each_registered (c, trace_clients)
		if (!strcmp(c->name, client))
			return true;
	return false;
}

void trace_test_reset(void)
{
	/* Else C code would write all returns of the test's task from then on. */
	current_task()->returns_missed = 0;
	meet_victims();
	if (cmd_reset() && ktest_with_fault)
		cmd_reset();
}

ssize_t trace_test_read_path(const char *path, char *text, size_t size,
			     size_t chunk)
{
	struct ctl_handle *h;
	size_t len = 0;
	ssize_t n;

	n = ctl_open(path, false, false, &h);
	if (n)
		return n;
	while (len + 1 < size &&
	       (n = ctl_read(h, text + len, min(chunk, size - 1 - len))) > 0)
		len += n;
	text[len] = '\0';
	ctl_abandon(h);
	return n < 0 ? n : (ssize_t)len;
}

ssize_t trace_test_read(const char *file, char *text, size_t size, size_t chunk)
{
	char path[128];

	snprintf(path, sizeof(path), TRACING "%s", file);
	return trace_test_read_path(path, text, size, chunk);
}

static void end_test_task(void *arg)
{
	(void)arg;
}

/* Most ticks come where a trampoline's callee has just enabled interrupts. */
bool trace_test_wait_held(struct task *task)
{
	static u32 seed = 7;
	u64 end = time_ns() + 60 * NSEC_PER_SEC;

	while (!task_wait_held(task,
			       ktest_random(&seed) % (50 * NSEC_PER_USEC))) {
		if (time_ns() >= end)
			return false;
		cpu_call(task->affinity, end_test_task, NULL);
	}
	return true;
}

void trace_test_strategy(struct ktest_run *t, const char *name,
			 void (*test)(struct ktest_run *t))
{
	const char *before = patch_strategy_name(), *why;
	int err;

	mutex_lock(&trace_mutex);
	err = patch_strategy_set(name, &why);
	mutex_unlock(&trace_mutex);
	if (err == -ENOSYS)
		KSKIP(t, why);
	KASSERT(t, !err);
	test(t);
	KEXPECT_EQ(t, trace_test_put("patch_strategy", before), 0);
}

void trace_test_ops(struct trace_ops *ops)
{
	if (ops)
		BUG_ON(trace_ops_borrow(ops));
	else
		trace_ops_give_back();
}

int trace_test_switch_all(struct patch_batch *b, bool on)
{
	return patch_apply(b, 0, site_words,
			   on ? patch_want_on : patch_want_off, NULL);
}

bool trace_test_says(const char *file, const char *text)
{
	static char got[2000];
	static const size_t pieces[] = { 1, 7, 100, sizeof(got) };

	for (unsigned int i = 0; i < ARRAY_SIZE(pieces); i++) {
		got[0] = '\0';
		trace_test_read(file, got, sizeof(got), pieces[i]);
		if (strcmp(got, text)) {
			printk("# %s: %s", file, got);
			return false;
		}
	}
	return true;
}

void trace_test_overwrite(struct live l, u64 bytes)
{
	irq_state_t state = arch_irq_save();
	long delta = arch_text_open();

	arch_live_write(l, delta, bytes);
	arch_text_close();
	if (arch_sync_each_site)
		arch_text_sync_site(l.at);
	arch_text_sync();
	arch_irq_restore(state);
}

unsigned int trace_test_count_off(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < site_count; i++) {
		struct live live = live_of_site(site_address(i));

		n += arch_live_read(live) == arch_live_bytes(live, false);
	}
	return n;
}

int trace_test_victim(void)
{
	trace_test_reset();
	if (trace_test_put("set_ftrace_filter", "victim_call"))
		return -EINVAL;
	return trace_test_put("current_tracer", "function");
}

const unsigned int trace_test_site_length = arch_site_length;

int trace_test_site(unsigned long (*fn)(unsigned long x))
{
	if (site_of_function(fn) < 0)
		meet_victims();
	return site_of_function(fn);
}

bool trace_test_books(struct ring_stats *sum)
{
	return trace_test_books_of(rings, sum);
}

bool trace_test_books_of(const struct ring *set, struct ring_stats *sum)
{
	struct ring_stats s;
	bool right = true;
	unsigned int cpu;

	*sum = (struct ring_stats){ 0 };
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		ring_stats(set, cpu, &s);
		right &= s.written ==
			 s.read + s.overwritten + s.dropped + s.held;
		sum->written += s.written;
		sum->read += s.read;
		sum->overwritten += s.overwritten;
		sum->dropped += s.dropped;
		sum->held += s.held;
	}
	return right;
}

void trace_test_size(unsigned long kb)
{
	char text[24];

	snprintf(text, sizeof(text), "%lu", kb);
	trace_test_put("buffer_size_kb", text);
}

u64 trace_test_written(void)
{
	struct ring_stats s;

	return trace_test_books(&s) ? s.written : ~0ull;
}

static u64 walk_rings(cpumask_t mask, bool consume)
{
	struct trace_iter *it = trace_iter_open(rings, mask, true);
	u64 n = 0;

	while (it && trace_iter_peek(it)) {
		if (!consume)
			trace_iter_next(it);
		n += !consume || trace_iter_consume(it);
	}
	trace_iter_close(it);
	return n;
}

u64 trace_test_walk(bool consume)
{
	return walk_rings(cpus_present(), consume);
}

void trace_test_walk_eight(unsigned int i, bool consume)
{
	cpumask_t eight = 0xffu << i % ((nr_cpus + 7) / 8) * 8;

	walk_rings(cpus_present() & eight, consume);
}

static void *taken[400];
static unsigned int nr_taken;

void trace_test_memory_take(unsigned long keep)
{
	struct mm_stats mm;

	/* Large pieces first, as long as there are any. */
	for (int order = 10; order >= 0; order--)
		while (nr_taken < ARRAY_SIZE(taken)) {
			mm_stats(&mm);
			if (mm.pages_free < (1ul << order) + keep)
				break;
			taken[nr_taken] = page_alloc(order);
			if (!taken[nr_taken])
				break;
			*(int *)taken[nr_taken++] = order;
		}
}

void trace_test_memory_give(void)
{
	for (; nr_taken; nr_taken--)
		page_free(taken[nr_taken - 1], *(int *)taken[nr_taken - 1]);
}

/* ---- the witness ---- */

static void see_call(unsigned long ip, unsigned long parent,
		     struct trace_ops *ops)
{
	struct trace_witness *w = container_of(ops, struct trace_witness, ops);
	unsigned long site = ip - arch_site_length;
	u32 *count = &w->other_calls;

	(void)parent;
	if (site == site_address(w->steady))
		count = &w->steady_calls;
	else if (site == site_address(w->never))
		count = &w->never_calls;
	count_up(count);
}

bool trace_witness_begin(struct trace_witness *w, const char *strategy)
{
	struct patch_batch b;
	const char *why;

	*w = (struct trace_witness){
		.ops = { trace_entry_call, see_call },
		.steady = trace_test_site(victim_call),
		.never = trace_test_site(victim_other),
		.before = patch_strategy_name(),
	};
	if (w->steady < 0 || w->never < 0)
		return false;
	trace_test_reset();
	mutex_lock(&trace_mutex);
	if (patch_strategy_set(strategy, &why)) {
		mutex_unlock(&trace_mutex);
		return false;
	}
	trace_test_ops(&w->ops);
	BUG_ON(patch_site(&b, w->steady, true));
	return true;
}

static u32 bit_in_word(unsigned int site, unsigned int w)
{
	return site / 32 == w ? 1u << site % 32 : 0;
}

static u32 want_witness(unsigned int word, const void *arg)
{
	const struct trace_witness *w = arg;
	u32 bits = w->others_on ? ~0u : 0;

	return (bits | bit_in_word(w->steady, word)) &
	       ~bit_in_word(w->never, word);
}

int trace_witness_toggle(struct trace_witness *w, bool on)
{
	struct patch_batch b;

	w->others_on = on;
	return patch_apply(&b, 0, site_words, want_witness, w);
}

void trace_witness_end(struct trace_witness *w, struct ktest_run *t)
{
	struct patch_batch b;
	const char *why;

	KEXPECT_EQ(t, trace_witness_toggle(w, false), 0);
	KEXPECT_EQ(t, patch_site(&b, w->steady, false), 0);
	trace_test_ops(NULL);
	patch_strategy_set(w->before, &why);
	mutex_unlock(&trace_mutex);
	/* w is on a stack. */
	trace_quiesce(&w->ops);
	KEXPECT(t, w->steady_made > 0);
	KEXPECT_EQ(t, w->steady_calls, w->steady_made);
	KEXPECT_EQ(t, w->never_calls, 0);
	KEXPECT(t, w->other_calls > 0);
}

/* ---- workers ---- */

struct trace_worker trace_workers[MAX_CPUS];

static void trace_work(void *arg)
{
	struct trace_worker *w = arg;
	unsigned long x;

	while (w->calls ? w->done < w->calls : !task_should_stop()) {
		x = w->done;
		if (victim_call(x) != x + 3)
			w->wrong++;
		WRITE_ONCE(w->done, x + 1);
		/* Under icount the CPUs take turns: this gives one away. */
		if (x % 64 == 0)
			arch_cpu_relax();
	}
	WRITE_ONCE(w->finished, true);
}

bool trace_workers_start(struct trace_worker *w, unsigned int calls)
{
	unsigned int cpu;
	bool all = true;

	memset(w, 0, MAX_CPUS * sizeof(*w));
	for_each_online_cpu (cpu) {
		w[cpu].calls = calls;
		w[cpu].task = task_create_expendable(
			"worker", PRIO_LOW, 1u << cpu, trace_work, &w[cpu]);
		all &= !!w[cpu].task;
	}
	return all;
}

unsigned long trace_workers_join(struct trace_worker *w)
{
	unsigned long sum = 0;
	unsigned int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		if (!w[cpu].task)
			continue;
		if (!w[cpu].calls)
			task_stop(w[cpu].task);
		task_join(w[cpu].task);
		sum += w[cpu].done;
	}
	return sum;
}

unsigned int trace_test_kept_lines(void)
{
	struct trace_iter *it;
	unsigned int n = 0;

	snapshot_hold(&trace_top);
	it = trace_iter_open(ring_spares, snapshot_cpus(&trace_top), true);
	trace_iter_window(it);
	for (; it && trace_iter_peek(it); n++)
		trace_iter_next(it);
	trace_iter_close(it);
	snapshot_release(&trace_top);
	return n;
}

u64 trace_test_ipis(void (*act)(void))
{
	u64 least = ~0ull;

	for (int i = 0; i < 20; i++) {
		u64 n = 0;
		unsigned int cpu;

		for (cpu = 0; cpu < nr_cpus; cpu++)
			n -= READ_ONCE(cpus[cpu].irq_counts[IRQ_IPI]);
		act();
		for (cpu = 0; cpu < nr_cpus; cpu++)
			n += READ_ONCE(cpus[cpu].irq_counts[IRQ_IPI]);
		least = min(least, n);
	}
	return least;
}
