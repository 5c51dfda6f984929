/* SPDX-License-Identifier: MIT */
/* The latency tracers: latency.h. */
#include <tracer/latency/latency.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/event/latency.h>
#include <kernel/image/symbols.h>
#include <kernel/image/unwind.h>
#include <kernel/init.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/patch_path.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <tracer/core/client.h>
#include <tracer/ring/ring_control.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/patch/keys.h>
#include <tracer/show/snapshot.h>
#include <tracer/core/tracer.h>

#define TRACER_LATENCY(ident, kinds)                                           \
	TRACER(ident, .name = #ident, .ops = &trace_ops_ring,                  \
	       .latency = (kinds))
TRACER_LATENCY(irqsoff, LATENCY_IRQS);
TRACER_LATENCY(preemptoff, LATENCY_PREEMPT);
TRACER_LATENCY(preemptirqsoff, LATENCY_IRQS | LATENCY_PREEMPT);
TRACER_LATENCY(wakeup, LATENCY_WAKEUP);
TRACER_LATENCY(wakeup_rt, LATENCY_WAKEUP | LATENCY_RT);

static unsigned int measured; /* LATENCY_ bits */

/* Each is written by its CPU alone, with interrupts off. since 0: none is open. */
static struct section {
	u64 since;
	unsigned long began;
} sections[MAX_CPUS];

/* Under `keeping`, as are the longest latency and the value of tracing_max_latency. */
static struct {
	s32 pid; /* of the task whose way is measured. 0: of none */
	int prio;
	u64 since;
} woken;

static struct latency longest;
static u64 limit_ns; /* the next one must take longer */

/*
 * A bare lock, of the tracer alone: its own places to turn interrupts off are not watched, and the
 * sites of the functions that run under it are kept off. Interrupts off.
 */
static u32 keeping;

static void keep_begin(void)
{
	while (__atomic_exchange_n(&keeping, 1, __ATOMIC_ACQUIRE))
		arch_cpu_relax();
}

static void keep_end(void)
{
	__atomic_store_n(&keeping, 0, __ATOMIC_RELEASE);
}

/* ---- One latency ------------------------------------------------------------------------ */

/* The first function of a task or a CPU has no known caller: it is recorded as its own caller.
 * False: not recorded. */
static bool write_call(unsigned long ip, unsigned long parent)
{
	if (parent - (unsigned long)_text >= (unsigned long)(_etext - _text))
		parent = ip;
	return ring_put_call(&rings[cpu_index()], ip, parent,
			     ring_context(true));
}

/* Where a task that is left, or woken, stands in RING_STATES. */
static u8 latency_task_state(const struct task *t)
{
	static const u8 states[] = {
		[TASK_READY] = 0,
		[TASK_BLOCKED] = 1,
		[TASK_HELD] = 3,
		[TASK_DEAD] = 5,
	};

	return states[t->state];
}

static void write_switch(unsigned int id, const struct task *prev,
			 const struct task *next, unsigned int cpu)
{
	struct ring_switch sw = {
		.prev_pid = prev->pid,
		.next_pid = next->pid,
		.next_cpu = cpu,
		.prev_prio = prev->prio,
		.prev_state = latency_task_state(prev),
		.next_prio = next->prio,
		.next_state = latency_task_state(next),
	};

	ring_put_event(&rings[cpu_index()], id, true, &sw, sizeof(sw));
}

static bool is_worth_keeping(u64 ticks)
{
	return trace_thresh.ticks ?
		       ticks >= trace_thresh.ticks :
		       clock_delta_to_ns(ticks) > READ_ONCE(limit_ns);
}

/* The buffer of the CPUs of mask belongs to l, which is over. Under `keeping`. */
static void keep_latency(struct latency *l, cpumask_t mask)
{
	l->cpu = cpu_index();
	l->until = arch_clock();
	if (!is_worth_keeping(l->ticks) || !snapshot_trigger(&trace_top, mask))
		return;
	longest = *l;
	WRITE_ONCE(limit_ns, clock_delta_to_ns(l->ticks));
}

/* The ring of this CPU can be written, and exchanged. Else the latency that is kept would lack its
 * beginning or its end. */
static bool is_recording(void)
{
	const struct ring *r = &rings[cpu_index()];

	return ring_is_on(r) && !r->busy && !(ring_context(true) & PREEMPT_NMI);
}

/* ---- Sections ---------------------------------------------------------------------------- */

static void begin_section(unsigned long ip, unsigned long parent)
{
	struct section *s = &sections[cpu_index()];

	if (s->since || !is_recording())
		return;
	s->since = arch_clock();
	s->began = ip;
	write_call(ip, unwind_caller(parent));
}

static void end_section(unsigned long ip, unsigned long parent)
{
	struct section *s = &sections[cpu_index()];
	struct task *t = current_task();
	struct latency l = {
		.since = s->since,
		.ticks = arch_clock() - s->since,
		.pid = t->pid,
		.prio = t->prio,
		.began = s->began,
		.ended = ip,
	};

	s->since = 0;
	if (!l.since || !is_worth_keeping(l.ticks) || !is_recording())
		return;
	write_call(ip, unwind_caller(parent));
	keep_begin();
	keep_latency(&l, 1u << cpu_index());
	keep_end();
}

#define HERE ((unsigned long)__builtin_return_address(0))

static void on_irqs_off(unsigned long parent)
{
	if (READ_ONCE(measured) & LATENCY_IRQS)
		begin_section(HERE, parent);
}

static void on_irqs_on(unsigned long parent)
{
	unsigned int kinds = READ_ONCE(measured);

	if ((kinds & LATENCY_IRQS) &&
	    !((kinds & LATENCY_PREEMPT) && preempt_depth()))
		end_section(HERE, parent);
}

static void on_preempt_off(unsigned long parent)
{
	if (READ_ONCE(measured) & LATENCY_PREEMPT)
		begin_section(HERE, parent);
}

static void on_preempt_on(unsigned long parent, bool irqs_off)
{
	unsigned int kinds = READ_ONCE(measured);

	if ((kinds & LATENCY_PREEMPT) && !((kinds & LATENCY_IRQS) && irqs_off))
		end_section(HERE, parent);
}

/* ---- Wakeups ------------------------------------------------------------------------------- */

/* Of all tasks that are on their way, the most urgent one is measured. */
static void on_woken(const struct task *t, unsigned int cpu,
		     unsigned long parent)
{
	unsigned int kinds = READ_ONCE(measured);

	if (!(kinds & LATENCY_WAKEUP) || !is_recording() ||
	    t->prio <= READ_ONCE(cpus[cpu].rq.running_prio) ||
	    ((kinds & LATENCY_RT) && t->prio < LATENCY_RT_PRIO))
		return;
	keep_begin();
	/* Or this beginning would lie in the buffer of the wakeup before, which may have been kept
	 * while this CPU waited. */
	snapshot_answer();
	if (!woken.pid || t->prio > woken.prio) {
		woken.pid = t->pid;
		woken.prio = t->prio;
		/* Behind the entries of a less urgent wakeup. */
		woken.since = arch_clock();
		write_switch(RING_WAKEUP, current_task(), t, cpu);
		write_call(HERE, unwind_caller(parent));
	}
	keep_end();
}

static const struct latency_hooks hooks = {
	.irqs_off = on_irqs_off,
	.irqs_on = on_irqs_on,
	.preempt_off = on_preempt_off,
	.preempt_on = on_preempt_on,
	.woken = on_woken,
};

/* With a site, they would fill the trace with themselves. */
PATCH_ROOT(on_irqs_off);
PATCH_ROOT(on_irqs_on);
PATCH_ROOT(on_preempt_off);
PATCH_ROOT(on_preempt_on);
PATCH_ROOT(on_woken);

static void latency_start(void)
{
	latency_hooks = &hooks;
}
INIT_HOOK(INIT_SITES, latency_start);

static void latency_switched(struct task *prev, struct task *next, u64 away,
			     unsigned long hook_ip)
{
	struct latency l = { .pid = next->pid, .prio = next->prio };

	(void)away;
	/* Idle tasks have the pid 0, and are never woken. */
	if (!next->pid || READ_ONCE(woken.pid) != next->pid)
		return;
	keep_begin();
	if (woken.pid == next->pid) {
		l.since = woken.since;
		l.ticks = arch_clock() - woken.since;
		woken.pid = 0;
		if (is_recording()) {
			write_call(hook_ip, hook_ip);
			write_switch(RING_SWITCH, prev, next, cpu_index());
			keep_latency(&l, ~0u);
		}
	}
	keep_end();
}
PATCH_INDIRECT(clients_switched, latency_switched);

/* ---- Starting and stopping ------------------------------------------------------------------ */

static void set_latency_keys(unsigned int kinds)
{
	key_irqsoff.on = kinds & LATENCY_IRQS;
	key_preemptoff.on = kinds & LATENCY_PREEMPT;
	key_wakeup.on = kinds & LATENCY_WAKEUP;
}

static unsigned int latency_keys(void)
{
	return (key_irqsoff.on ? LATENCY_IRQS : 0) |
	       (key_preemptoff.on ? LATENCY_PREEMPT : 0) |
	       (key_wakeup.on ? LATENCY_WAKEUP : 0);
}

static int apply_keys(struct ctl_handle *h, unsigned int kinds)
{
	unsigned int before = latency_keys();
	struct patch_batch b;
	int err;

	mutex_assert_held(&trace_mutex);
	if ((kinds & ~LATENCY_RT) == before)
		return 0;
	set_latency_keys(kinds);
	err = static_keys_apply(&b);
	if (!err)
		return 0;
	set_latency_keys(before);
	return trace_patch_error(h, &b, err);
}

static void close_section(void *arg)
{
	(void)arg;
	sections[cpu_index()].since = 0;
}

static void measure_nothing(void)
{
	if (measured) {
		WRITE_ONCE(measured, 0);
		/* A CPU that answers is in the middle of no section that it would still keep. */
		cpu_call(~0u, close_section, NULL);
	}
	woken.pid = 0;
}

/* Under trace_mutex. The kinds of the tracer whose longest latency stands in the snapshot's pages,
 * or 0. And: did these pages come with a tracer that is not selected yet? */
static unsigned int kept_kinds;
static bool made_pages;

static void forget_latencies(struct trace_instance *in, cpumask_t mask)
{
	if (!in->tracer->latency)
		return;
	snapshot_hold(in);
	snapshot_forget(in, mask);
	longest = (struct latency){ 0 };
	snapshot_release(in);
}

/*
 * Make the tracer's means: the snapshot's memory, and the jump labels. Nothing is measured
 * meanwhile. After an error nothing has changed.
 */
static int prepare_latency(struct ctl_handle *h, const struct tracer *tracer)
{
	bool some = tracer->latency && !trace_top.spares[0].pages;
	int err = some ? snapshot_make(h, &trace_top) : 0;

	if (err)
		return err;
	err = apply_keys(h, tracer->latency);
	if (err && some)
		snapshot_free(&trace_top);
	if (err)
		return err;
	made_pages |= some;
	measure_nothing();
	return 0;
}

/* After an error the tracer is the same as before, and keeps its longest latency. A user keeps what
 * stands in the snapshot. */
static void measure_latency(const struct tracer *tracer)
{
	bool another = tracer->latency != kept_kinds;

	if (another) {
		longest = (struct latency){ 0 };
		limit_ns = 0;
	}
	if (another && tracer->latency)
		snapshot_forget(&trace_top, ~0u);
	else if (another || (made_pages && !tracer->latency))
		snapshot_free(&trace_top);
	made_pages = false;
	kept_kinds = tracer->latency;
	WRITE_ONCE(measured, tracer->latency);
}

TRACE_CLIENT(latency, .prepares = prepare_latency, .selected = measure_latency,
	     .trace_cleared = forget_latencies, .switched = latency_switched);

struct latency latency_longest(void)
{
	return longest;
}

/* ---- tracing_max_latency ----------------------------------------------------------------- */

static void latency_max_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "%llu\n",
		   (unsigned long long)(READ_ONCE(limit_ns) / NSEC_PER_USEC));
}

/* In microseconds, as in Linux: only longer latencies are kept from now on. */
static int latency_max_write(struct ctl_handle *h, char *text)
{
	irq_state_t state;
	u64 us;
	int err = ctl_number(h, text, ~0ull / NSEC_PER_USEC,
			     "number of microseconds; 0 begins anew", &us);

	if (err)
		return err;
	state = arch_irq_save();
	keep_begin();
	WRITE_ONCE(limit_ns, us * NSEC_PER_USEC);
	keep_end();
	arch_irq_restore(state);
	return 0;
}
CTL_FILE(tracing_max_latency, .path = TRACING "tracing_max_latency",
	 .show = latency_max_show, .write = latency_max_write, .at_boot = "0");
