/* SPDX-License-Identifier: MIT */
/* The owner of trace_ops, and the wait for tasks that have loaded it: ops.h. */
#include <tracer/ops/ops.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/irq.h>
#include <kernel/lib/bits.h>
#include <kernel/lib/string.h>
#include <kernel/patch_path.h>
#include <kernel/sched/task.h>
#include <kernel/sched/task_list.h>
#include <kernel/test/fault.h>
#include <kernel/time.h>
#include <kernel/image/unwind.h>
#include <kernel/lock/mutex.h>
#include <tracer/ops/returns.h>
#include <tracer/base/instance.h>

/* A site that is on leads to these functions: a site in one of them would lead to it again. */
PATCH_ROOT(trace_entry);
PATCH_ROOT(trace_return);
PATCH_INDIRECT(trace_entry, trace_entry_off);
PATCH_INDIRECT(trace_entry, trace_entry_ring);
PATCH_INDIRECT(trace_entry, trace_entry_call);
PATCH_INDIRECT(trace_entry, trace_entry_choose);
PATCH_INDIRECT(trace_entry, trace_entry_return);
PATCH_INDIRECT(trace_entry, trace_entry_graph);
/* These call the functions of ops. */
PATCH_INDIRECT_OPEN(trace_entry_call);
PATCH_INDIRECT_OPEN(trace_take_return);
PATCH_INDIRECT_OPEN(trace_returned);

struct trace_ops trace_ops_off = { .entry = trace_entry_off };

/* One pointer to a pair, so that no call ever sees one tracer's function with
 * another's data (H24). Trampolines load it once. */
struct trace_ops *trace_ops DATA_ENTRY = &trace_ops_off;
u32 graph_session DATA_ENTRY;

static bool borrowed; /* under trace_mutex */

/* Release: the pair behind the pointer is complete. */
static void store_ops(struct trace_ops *ops)
{
	__atomic_store_n(&trace_ops, ops, __ATOMIC_RELEASE);
}

void trace_ops_set(struct trace_ops *ops)
{
	mutex_assert_held(&trace_mutex);
	patch_path_check(trace_entry, ops->entry);
	patch_path_check(trace_entry_call, ops->func);
	patch_path_check(trace_take_return, ops->enter);
	patch_path_check(trace_returned, ops->leave);
	if (!borrowed)
		store_ops(ops);
}

int trace_ops_borrow(struct trace_ops *ops)
{
	mutex_assert_held(&trace_mutex);
	if (!borrowed && trace_ops != &trace_ops_off)
		return -EBUSY;
	borrowed = true;
	store_ops(ops);
	return 0;
}

bool trace_ops_borrowed(void)
{
	return borrowed;
}

int trace_ops_refuse(struct ctl_handle *h)
{
	mutex_assert_held(&trace_mutex);
	if (!borrowed)
		return 0;
	return ctl_error(h, -EBUSY,
			 "the lab or a test uses the trampolines now");
}

void trace_ops_give_back(void)
{
	mutex_assert_held(&trace_mutex);
	if (borrowed)
		store_ops(&trace_ops_off);
	borrowed = false;
}

/* ---- The quiesce ----------------------------------------------------------- */

/* One wait: its number, which tasks that were seen outside are marked with. */
static struct {
	const struct trace_ops *ops; /* or NULL */
	bool (*inside)(unsigned long pc);
	u32 number;
	/* Of one round: tasks that are not marked, the CPUs on which one was seen inside, a bit
	 * each, and the last such task on each CPU. */
	u32 left, seen;
	bool missed; /* a task was not at rest */
	bool again;  /* it is the second look of the round */
	struct trace_left last[MAX_CPUS];
} quiesce;
static struct mutex quiesce_mutex = MUTEX_INIT(quiesce_mutex);

static bool in_trampoline(unsigned long pc)
{
	return pc >= (unsigned long)trace_entry &&
	       pc < (unsigned long)trampoline_end;
}

/* t does not run, or is the task that f has interrupted on this CPU. */
static bool is_outside(const struct task *t, const struct trap_frame *f)
{
	u32 n = min(READ_ONCE(t->nr_returns), (u32)TASK_RETURNS);
	struct unwind u;

	for (u32 i = 0; quiesce.ops && i < n; i++)
		if (t->returns[i].ops == quiesce.ops)
			return false;
	for (unwind_start(&u, f, t); unwind_next(&u);)
		if (quiesce.inside(u.regs.pc))
			return false;
	return true;
}

/* Mark a task that is outside. Else note it down: one that was not looked at, because it ran, or
 * moved, may be anywhere. */
static void mark_outside(struct task *t, const struct trap_frame *f)
{
	struct trace_left *last = &quiesce.last[cpu_index()];

	if (is_outside(t, f)) {
		t->quiesced = quiesce.number;
		return;
	}
	last->pid = t->pid;
	memcpy(last->name, t->name, sizeof(t->name));
	__atomic_fetch_or(&quiesce.seen, 1u << cpu_index(), __ATOMIC_RELEASE);
}

/* On each CPU, from its IPI: the task that the IPI has interrupted. */
static void look_here(void *arg)
{
	struct task *t = current_task();

	(void)arg;
	/* The CPU that asks runs the waiting task itself. */
	if (irq_frame())
		mark_outside(t, irq_frame());
	else
		t->quiesced = quiesce.number;
}

/* A task that has ended goes on nowhere, though it may stand in a trampoline until it is joined. */
static void look_at_rest(struct task *t, void *arg)
{
	(void)arg;
	if (t->state == TASK_DEAD)
		t->quiesced = quiesce.number;
	else
		mark_outside(t, t->preempted ? t->frame : NULL);
}

/* The idle task of a CPU that is not online is behind its last site, or before its first one
 * (kernel/cpu/hotplug.c), whether the CPU has parked or arrived by now or not. */
static bool is_away(const struct task *t)
{
	return t == cpus[t->cpu].idle && !cpu_online(t->cpu);
}

FAULT(quiesce_blind, "no task is met at rest");
FAULT(quiesce_misses, "the first look of a round meets no task at rest");

static bool is_blind(void)
{
	return fault_happens(&fault_quiesce_blind) ||
	       (!quiesce.again && fault_happens(&fault_quiesce_misses));
}

static bool look_at_task(struct task *t, void *arg)
{
	(void)arg;
	if (is_away(t))
		t->quiesced = quiesce.number;
	if (t->quiesced != quiesce.number &&
	    (is_blind() || !task_inspect(t, look_at_rest, NULL)))
		quiesce.missed = true;
	quiesce.left += t->quiesced != quiesce.number;
	return true;
}

static void look_once(bool again)
{
	quiesce.left = quiesce.seen = 0;
	quiesce.missed = false;
	quiesce.again = again;
	cpu_call(~0u, look_here, NULL);
	/* With the turn, no CPU comes or goes. */
	call_turn_take();
	task_for_each(look_at_task, NULL);
	call_turn_give();
}

/* Is a task left? A task that a timer wakes whenever this one is woken may be going to sleep, with
 * interrupts off, at every first look. At the second it sleeps: its CPU has taken an IPI since. */
static bool look_round(void)
{
	look_once(false);
	if (quiesce.missed)
		look_once(true);
	return quiesce.left;
}

/* False: a task was seen inside in a round that began behind the limit. A host that stops the
 * machine may make one round as long as that, and a task may not be met at rest for as long. */
static bool wait_outside(u64 limit)
{
	u64 ns = NSEC_PER_MSEC / 8, start = time_ns(), begin = start;

	quiesce.number++;
	while (look_round()) {
		if (quiesce.seen && begin - start >= limit)
			return false;
		task_sleep(ns);
		ns = min(2 * ns, 4 * TICK_NS);
		begin = time_ns();
	}
	return true;
}

void trace_quiesce(const struct trace_ops *ops)
{
	mutex_lock(&quiesce_mutex);
	quiesce.ops = ops;
	quiesce.inside = in_trampoline;
	wait_outside(~0ull);
	mutex_unlock(&quiesce_mutex);
}

int trace_quiesce_code(bool (*inside)(unsigned long pc), u64 ns,
		       struct trace_left *left)
{
	bool done;

	mutex_lock(&quiesce_mutex);
	quiesce.ops = NULL;
	quiesce.inside = inside;
	done = wait_outside(ns);
	if (!done)
		*left = quiesce.last[bit_lowest(quiesce.seen)];
	mutex_unlock(&quiesce_mutex);
	return done ? 0 : -EBUSY;
}
