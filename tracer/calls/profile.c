/* SPDX-License-Identifier: MIT */
/*
 * The function profiler: how often each function was called, and how long it took until it
 * returned, on each CPU. Files: function_profile_enabled, trace_stat/functionN.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/sort.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/patch_path.h>
#include <kernel/time.h>
#include <tracer/calls/variance.h>
#include <tracer/core/calls.h>
#include <tracer/core/client.h>
#include <tracer/core/filter.h>
#include <tracer/ops/returns.h>
#include <tracer/ops/ops.h>
#include <tracer/core/options.h>
#include <tracer/show/output.h>
#include <tracer/sites/sites.h>
#include <tracer/core/tracer.h>

/* Of one function on one CPU, which alone writes it. */
struct count {
	u64 hits, ns;
	u64 squares; /* the sum of the squares of microseconds, 2^64 - 1 at most */
};

/* symbol_count of them for each CPU. NULL: nothing was counted. Written under trace_mutex,
 * read with interrupts off. */
static struct count *counts;
static bool on; /* under trace_mutex */
/* Calls are counted: `counts` are there for this profile. It began at `since`, arch_clock(). The
 * time of a call that began before belongs to an earlier profile, or to function_graph. */
static bool counting;
static u64 since; /* written while no CPU counts */

static struct count *count_of(struct count *all, unsigned int cpu,
			      unsigned int function)
{
	return &all[cpu * symbol_count + function];
}

/* Where the function is counted that was called from ip, on this CPU. NULL: nowhere. */
static struct count *count_here(unsigned long ip)
{
	struct count *all = READ_ONCE(counts);
	struct symbol s;

	return all && symbol_at(ip, &s) ? count_of(all, cpu_index(), s.index) :
					  NULL;
}

/* Acquire: pairs with the release in change_counts(). */
static bool is_counting(void)
{
	return __atomic_load_n(&counting, __ATOMIC_ACQUIRE);
}

static bool profile_enter(struct task_return *r)
{
	struct count *c = is_counting() ? count_here(r->ip) : NULL;

	if (!c)
		return false;
	c->hits++;
	r->clock = arch_clock();
	return true;
}

static void profile_leave(const struct task_return *r, unsigned int depth)
{
	u64 ticks = arch_clock() - r->clock, ns = clock_delta_to_ns(ticks);
	struct count *c;

	if (!is_counting() || (s64)(r->clock - since) < 0)
		return;
	if (!trace_option(OPT_GRAPH_TIME))
		returns_leave_out(current_task(), depth, ticks, since);
	c = count_here(r->ip);
	if (!c)
		return;
	c->ns += ns;
	add_square(&c->squares, ns / NSEC_PER_USEC);
}

static void profile_switched(struct task *prev, struct task *next, u64 away,
			     unsigned long hook_ip)
{
	(void)prev;
	(void)hook_ip;
	if (away && is_counting())
		returns_leave_out(next, next->nr_returns, away, since);
}
PATCH_INDIRECT(clients_switched, profile_switched);

static bool profile_is_on(void)
{
	mutex_assert_held(&trace_mutex);
	return on;
}

static int allow_tracer(struct ctl_handle *h, const struct tracer *tracer)
{
	if (!tracer->graph || !profile_is_on())
		return 0;
	return ctl_error(h, -EBUSY,
			 "function_profile_enabled is 1, and takes "
			 "the returns that function_graph needs");
}

static u32 profile_want(unsigned int w)
{
	return on ? instance_takes_word(&trace_top, w) : 0;
}

static bool function_profiled(struct task_return *r, unsigned int depth)
{
	struct seen_call c;
	bool taken;

	(void)depth;
	calls_begin(&c, r->ip, r->ret);
	calls_record(&c, r->ip, r->ret);
	calls_finish(&c);
	taken = c.recorded && profile_enter(r);
	calls_end(&c);
	return taken;
}
PATCH_INDIRECT(trace_take_return, function_profiled);

static void profile_returned(struct task_return *r, unsigned int depth)
{
	irq_state_t state = arch_irq_save();

	profile_leave(r, depth);
	arch_irq_restore(state);
}
PATCH_INDIRECT(trace_returned, profile_returned);

static struct trace_ops profile_ops = {
	.entry = trace_entry_return,
	.enter = function_profiled,
	.leave = profile_returned,
};

static struct trace_ops *ops_of_profile(void)
{
	return profile_is_on() ? &profile_ops : NULL;
}
/* Replace the counts, and switch counting on or off. The memory of `new` belongs to this
 * function. */
static int change_counts(struct ctl_handle *h, bool to, struct count *new)
{
	struct count *old = counts;
	bool before = on;
	int err;

	WRITE_ONCE(counting, false);
	on = to;
	/* C code sees the calls before the first site is on for it. */
	if (to)
		trace_refresh();
	err = trace_update(h, 0, site_words);
	if (err) {
		on = before;
		trace_refresh();
		WRITE_ONCE(counting, before);
		if (new != old)
			kfree(new);
		return err;
	}
	WRITE_ONCE(counts, new);
	trace_refresh(); /* after this no CPU counts in the old ones */
	since = arch_clock();
	/* Release: pairs with the acquire in is_counting(). */
	__atomic_store_n(&counting, to, __ATOMIC_RELEASE);
	if (old != new)
		kfree(old);
	return 0;
}

static int profile_enable(struct ctl_handle *h, bool to)
{
	struct count *new = counts;

	if (to == on)
		return 0;
	if (to && trace_ops_refuse(h))
		return -EBUSY;
	if (to && trace_top.tracer->graph)
		return ctl_error(h, -EBUSY,
				 "function_graph takes the returns; choose "
				 "another tracer first");
	if (to) {
		new = kmalloc_zeroed(nr_cpus * symbol_count * sizeof(*new));
		if (!new)
			return ctl_error(h, -ENOMEM, "out of memory");
	}
	return change_counts(h, to, new);
}

/* Beyond its switch, the tables are forgotten. */
static int profile_restart(struct ctl_handle *h,
			   const struct trace_instance *in, bool reset)
{
	return counts && reset && in == &trace_top ?
		       change_counts(h, false, NULL) :
		       0;
}
TRACE_CLIENT(profiler, .instance_restarts = profile_restart,
	     .wants = profile_want, .ops = ops_of_profile,
	     .allows = allow_tracer, .switched = profile_switched);

/* ---- Control files ----------------------------------------------------------------- */

static void profile_enabled_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "%d\n", READ_ONCE(on));
}

static int profile_enabled_write(struct ctl_handle *h, char *text)
{
	bool to;
	int err = ctl_bool(h, text, &to);

	return err ?: profile_enable(h, to);
}
TRACE_FILE(function_profile_enabled, .path = TRACING "function_profile_enabled",
	   .show = profile_enabled_show, .write = profile_enabled_write);

/* A row of the table, copied when the file is opened. */
struct row {
	u32 function;
	struct count count;
};

struct table {
	unsigned int nr;
	struct row row[];
};

static bool took_longer(const void *a, const void *b)
{
	return ((const struct row *)a)->count.ns >
	       ((const struct row *)b)->count.ns;
}

static int stat_open(struct ctl_handle *h)
{
	struct table *t =
		kmalloc_zeroed(sizeof(*t) + symbol_count * sizeof(t->row[0]));

	if (!t)
		return -ENOMEM;
	mutex_lock(&trace_mutex);
	for (unsigned int i = 0; counts && i < symbol_count; i++) {
		struct count c = *count_of(counts, h->index, i);

		/* A call may return on another CPU than the one that has counted it. */
		if (c.hits || c.ns)
			t->row[t->nr++] = (struct row){ i, c };
	}
	mutex_unlock(&trace_mutex);
	sort_rows(t->row, t->nr, sizeof(t->row[0]), took_longer);
	h->priv = t;
	return 0;
}

static void stat_release(struct ctl_handle *h)
{
	kfree(h->priv);
}

static void put_us(struct seq *s, u64 ns)
{
	seq_printf(s, "    ");
	trace_duration(s, ns);
}

static int stat_read(struct ctl_handle *h, struct seq *s)
{
	const struct table *t = h->priv;
	const struct row *row;
	struct symbol sym;
	u64 variance;

	if (h->pos > t->nr)
		return 0;
	if (!h->pos++) {
		seq_printf(s, "  Function                               Hit"
			      "    Time            Avg             s^2\n"
			      "  --------                               ---"
			      "    ----            ---             ---\n");
		return 1;
	}
	row = &t->row[h->pos - 2];
	symbol_get(row->function, &sym);
	seq_printf(s, "  %-30.30s  %10llu", sym.name,
		   (unsigned long long)row->count.hits);
	put_us(s, row->count.ns);
	put_us(s, row->count.ns / max(row->count.hits, 1ull));
	variance = call_variance(row->count.hits, row->count.ns / NSEC_PER_USEC,
				 row->count.squares);
	put_us(s, min(variance, ~0ull / NSEC_PER_USEC) * NSEC_PER_USEC);
	seq_printf(s, "\n");
	return 1;
}
CTL_FILE(trace_stat, .path = TRACING "trace_stat/function%u", .open = stat_open,
	 .release = stat_release, .read = stat_read);
