/* SPDX-License-Identifier: MIT */
/* Selecting tracers, starting and stopping: from the settings of users to the
 * state of sites, trace_ops and rings. */
#include <tracer/core/tracer.h>

#include <boot/boot_info.h>
#include <tracer/ops/ops.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/param.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/lock/mutex.h>
#include <tracer/patch/patch.h>
#include <tracer/ring/ring.h>
#include <tracer/ring/ring_control.h>
#include <tracer/core/filter.h>
#include <tracer/ops/returns.h>
#include <tracer/core/comm.h>
#include <tracer/core/pids.h>
#include <tracer/core/calls.h>
#include <tracer/core/client.h>
#include <tracer/core/options.h>
#include <tracer/core/warning.h>

struct trace_ops trace_ops_ring = { .entry = trace_entry_ring };

TRACER(function, .name = "function", .ops = &trace_ops_ring);

struct trace_thresh trace_thresh;

static void on_switch(struct task *prev, struct task *next)
{
	bool counts = trace_option(OPT_SLEEP_TIME);
	u64 now = counts ? 0 : arch_clock(), left_at = next->left_at;

	prev->left_at = now;
	next->left_at = 0;
	comm_switched(next);
	clients_switched(prev, next, left_at && !counts ? now - left_at : 0,
			 (unsigned long)__builtin_return_address(0));
	ring_task(prev, next, pid_is_traced(&trace_top, next->pid));
}
PATCH_ROOT(on_switch); /* as the latency tracers' hooks */

static bool takes_task(s32 pid)
{
	return pid_is_traced(&trace_top, pid);
}

struct trace_ops *trace_wants(const struct tracer *tracer)
{
	return tracer->latency && !trace_option(OPT_FUNCTION_TRACE) ?
		       NULL :
		       tracer->ops;
}

/* How the CPUs record the top level: what follows from the settings and from the clients' needs. */
struct recording {
	struct trace_ops *ops; /* &trace_ops_off: no call is seen */
	u32 mode;   /* RING_ bits. No bit of RING_GATE: no ring records */
	bool watch; /* the switch of tasks */
};

static struct recording recording_wanted(void)
{
	const struct tracer *tracer = trace_top.tracer;
	struct trace_ops *ops = calls_ops(tracer), *own = trace_wants(tracer);
	/* C code looks at tracing_on itself, for a trigger or a warning may change it. */
	u32 needs = clients_need();
	bool triggers = needs & NEED_C || warning_ends_trace();
	/* Where entries have numbers, a record that a filter refuses must not have one. */
	bool apart = needs & NEED_APART || instance_counts(&trace_top);
	bool in_c = calls_all_in_c(ops);
	bool on = (trace_top.on || in_c || triggers) && !trace_top.pauses;
	bool calls = ops || (on && own);
	struct recording r = { .ops = ops ?: calls ? own : &trace_ops_off };

	if (on)
		r.mode = in_c || triggers || pids_are_listed(&trace_top) ?
				 RING_ASKS :
				 RING_OPEN;
	r.mode |= own == &trace_ops_ring ? RING_CALLS : 0;
	r.mode |= in_c || triggers || apart ? RING_BY_C : 0;
	r.mode |= triggers ? RING_TRIGGERS : 0;
	r.mode |= apart ? RING_APART : 0;
	r.mode |= !ops && calls && tracer->graph &&
				  !(needs & NEED_C_FOR_RETURNS) ?
			  RING_GRAPH :
			  0;
	/* Events need the names of tasks, too. And a call that is in the buffer may return after
	 * the next start: then the time counts that its task has slept since. */
	r.watch = calls || needs & NEED_TASKS || tracer->latency ||
		  (tracer->graph && !trace_option(OPT_SLEEP_TIME));
	return r;
}

/*
 * Starting: the hook first, so that ring_record() marks each CPU's task when no switch can be
 * missed any more. Live calls come last. Stopping, or changing over to another tracer in an empty
 * buffer: live calls first. A task that was preempted inside a trampoline comes out of it with the
 * old ops much later. Then ring.calls, or which tracer runs, tells it whether to record. The hook
 * goes last: until ring_record() has told a CPU, the CPU records events of all its tasks.
 *
 * The calls and returns of a task that goes from CPU to CPU stop at once: first each CPU leaves
 * function_graph to C code, then one store tells all of C code (RING_GATE). If a CPU recorded on
 * while calls were off already, it would record a return, but no call inside.
 *
 * A session of function_graph ends before the CPUs are interrupted, and begins behind that.
 * Its trampolines look at ring.graph alone. It is open only while trace_ops
 * is function_graph's: otherwise calls would be left out whose callers' returns are
 * recorded. C code, which goes by the session, does their work while that changes.
 */
static void apply_tracer(bool clear)
{
	struct recording now = recording_wanted();
	u32 mode = now.mode & ~RING_GRAPH, kept;

	if (mode == now.mode)
		ring_let_graph(false);
	/* A gate that is closed opens behind ring_record(). */
	kept = ring_mode & RING_GATE ? 0 : RING_GATE;
	ring_set_mode((mode & ~kept) | (ring_mode & RING_GRAPH));
	/* Meanwhile triggers, the profiler and other instances miss nothing. */
	if (now.ops == &trace_ops_off || clear)
		trace_ops_set(calls_ops(&tracer_nop) ?: &trace_ops_off);
	if (now.watch) {
		comm_save_all();
		WRITE_ONCE(sched_switch_hook, on_switch);
	}
	if (clear)
		graph_session_end();
	ring_record(rings, mode & RING_GATE ? trace_top.cpumask : 0, clear,
		    takes_task);
	ring_set_mode(mode | (ring_mode & RING_GRAPH));
	if (!now.watch)
		WRITE_ONCE(sched_switch_hook, NULL);
	if (clear && trace_top.tracer->graph)
		graph_session_begin();
	trace_ops_set(now.ops);
	if (now.mode & RING_GRAPH)
		ring_let_graph(true);
}

void trace_record(bool on, cpumask_t mask)
{
	mutex_assert_held(&trace_mutex);
	/* C code that asks sees at once that it is off, the trampolines later. */
	if (!on)
		ring_let_graph(false);
	trace_top.on = on;
	trace_top.cpumask = mask;
	apply_tracer(false);
}

void trace_count_pipes(struct trace_instance *in, int by)
{
	mutex_lock(&trace_mutex);
	in->pipes += by;
	mutex_unlock(&trace_mutex);
}

void trace_refresh(void)
{
	mutex_assert_held(&trace_mutex);
	apply_tracer(false);
}

void trace_needs_changed(void)
{
	struct recording now = recording_wanted();

	mutex_assert_held(&trace_mutex);
	/* A borrower has its own ops until it gives them back. */
	if (now.mode != ring_mode || now.watch != !!sched_switch_hook ||
	    (now.ops != trace_ops && !trace_ops_borrowed()))
		apply_tracer(false);
}

static u32 want_calls(unsigned int w, const void *arg)
{
	(void)arg;
	return calls_want(w);
}

static u32 want_filtered(unsigned int w, const void *arg)
{
	(void)arg;
	return instance_takes_word(&trace_top, w) | calls_want(w);
}

int trace_patch_error(struct ctl_handle *h, const struct patch_batch *b,
		      int err)
{
	char text[120];

	if (err != -EIO && !b->left)
		return ctl_error(h, err, "cannot hold the CPUs from here");
	patch_explain(b, text, sizeof(text));
	return ctl_error(h, err, "%s", text);
}

int trace_update(struct ctl_handle *h, unsigned int lo, unsigned int hi)
{
	bool active = trace_wants(trace_top.tracer);
	struct patch_batch b;
	int err;

	mutex_assert_held(&trace_mutex);
	/* No client has sites now, and the borrower has set them as it needs them. */
	if (trace_ops_borrowed())
		return 0;
	calls_before_update();
	err = patch_apply(&b, lo, hi, active ? want_filtered : want_calls,
			  NULL);
	if (err)
		return trace_patch_error(h, &b, err);
	calls_after_update();
	return 0;
}

const struct tracer *trace_find(const char *name)
{
	const struct tracer *t;

	for_each_registered (t, tracers)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

int trace_unknown(struct ctl_handle *h, const struct trace_instance *in,
		  const char *name)
{
	const struct tracer *t;
	char names[80];
	size_t n = 0;

	for_each_registered (t, tracers)
		if (instance_has(in, t))
			n += format_within(names + n, sizeof(names) - n, " %s",
					   t->name);
	return ctl_error(h, -EINVAL, "no tracer '%.32s'; there are:%s", name,
			 names);
}

/* From the tracer `old`, whose calls were on or not, to trace_top.tracer. */
static int switch_calls(struct ctl_handle *h, bool were_on)
{
	bool some = trace_top.filter.count;

	if (were_on == !!trace_wants(trace_top.tracer))
		return 0;
	/* Outside the filter's words nothing is or becomes "on". */
	return trace_update(h, some ? trace_top.filter.lo : 0,
			    some ? trace_top.filter.hi : site_words);
}

int trace_wants_changed(struct ctl_handle *h, bool were_on)
{
	int err = switch_calls(h, were_on);

	if (!err)
		apply_tracer(false);
	return err;
}

int trace_select(struct ctl_handle *h, const char *name)
{
	const struct tracer *t = trace_find(name), *old = trace_top.tracer;
	int err;

	mutex_assert_held(&trace_mutex);
	if (!t)
		return trace_unknown(h, &trace_top, name);
	if (t == old)
		return 0;
	if (trace_top.pipes)
		return ctl_error(h, -EBUSY, "trace_pipe is being read");
	if (trace_wants(t) && trace_ops_refuse(h))
		return -EBUSY;
	err = clients_allow(h, t) ?: clients_prepare(h, t);
	if (err)
		return err;
	trace_top.tracer = t;
	instance_settle(&trace_top);
	err = switch_calls(h, trace_wants(old));
	if (err) {
		trace_top.tracer = t = old;
		instance_settle(&trace_top);
		clients_prepare(h, old);
	} else {
		apply_tracer(true);
	}
	clients_selected(t);
	return err;
}
