/* SPDX-License-Identifier: MIT */
/*
 * Return addresses: taken when a function is called, given back when it returns.
 * Nothing is locked and interrupts stay as they were: returns_push().
 */
#include <tracer/ops/returns.h>

#include <kernel/cpu/cpu.h>
#include <kernel/init.h>
#include <kernel/lock/mutex.h>
#include <kernel/printk.h>
#include <kernel/image/symbols.h>
#include <kernel/image/unwind.h>
#include <tracer/base/instance.h>

u32 returns_lost, returns_refused;

/* ---- Sessions -----------------------------------------------------------------
 *
 * A session of function_graph begins when the tracer is selected, and ends when another one is.
 * Which ops take the calls in between may change: C code does the work while other clients
 * want the same calls. Depths, and the calls that a task is inside of, belong to a session. A
 * taken return is of the session that runs if its clock says that it began since.
 */
u64 graph_session_began;

void graph_session_begin(void)
{
	static u32 last;

	mutex_assert_held(&trace_mutex);
	graph_session_began = arch_clock();
	/* Release: pairs with the acquire in graph_session_runs(). */
	__atomic_store_n(&graph_session, ++last, __ATOMIC_RELEASE);
}

void graph_session_end(void)
{
	mutex_assert_held(&trace_mutex);
	WRITE_ONCE(graph_session, 0);
}

bool graph_session_runs(struct task *t)
{
	u32 session = __atomic_load_n(&graph_session, __ATOMIC_ACQUIRE);

	if (session && t->graph_session != session) {
		t->graph_session = session;
		t->graph_depth = t->returns_missed = 0;
		t->graph_hidden = t->graph_root = 0;
	}
	return session;
}

/* ---- Taking and giving back ---- */

/*
 * Make room for a return address that is taken at `depth`, and give the one there back. An
 * interrupt, or an NMI, at any point of this takes and gives back addresses of its own above
 * those of the task, so the count goes up before an entry is written, and down after it was
 * read for the last time. By its CFA a walk knows whose an entry is.
 */
static always_inline void push_return(struct task *t, u32 depth,
				      unsigned long cfa)
{
	t->returns[depth].cfa = cfa;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	WRITE_ONCE(t->nr_returns, depth + 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static always_inline void pop_return(struct task *t, u32 depth,
				     unsigned long *place)
{
	WRITE_ONCE(*place, t->returns[depth].ret);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	WRITE_ONCE(t->nr_returns, depth);
}

static struct frame_kept frames[MAX_CPUS][FRAMES_KEPT]
	__attribute__((aligned(PAGE_SIZE)));
CPU_ARRAY(frames);

static void returns_start(void)
{
	for (unsigned int cpu = 0; cpu < MAX_CPUS; cpu++)
		cpus[cpu].head.frames = frames[cpu];
}
INIT_HOOK(INIT_SITES, returns_start);

/* As unwind_frame(), and keeps the answer where the trampolines look for it. */
static bool find_taken_frame(unsigned long ip, unsigned long sp,
			     unsigned long *cfa, unsigned long *slot)
{
	irq_state_t state = arch_irq_save();
	const struct cpu_head *head = &arch_this_cpu()->head;
	struct frame_kept *f =
		&head->frames[ip / FRAME_KEPT_SIZE % FRAMES_KEPT];
	bool found = ip && f->ip == (u32)ip; /* 0: an empty place */

	if (found) {
		*cfa = sp + f->cfa;
		*slot = f->slot < 0 ? 0 : sp + f->slot;
	} else if (unwind_frame(ip, sp, cfa, slot)) {
		found = true;
		/* An NMI may have come while another is being written. */
		if (!(head->preempt_count & PREEMPT_NMI))
			*f = (struct frame_kept){
				.ip = ip,
				.cfa = *cfa - sp,
				.slot = *slot ? (s16)(*slot - sp) : -1,
			};
	}
	arch_irq_restore(state);
	return found;
}

/* Interrupts off, because an interrupt counts, too, and may begin the task's part in a session. */
static noinline void count_missed(struct task *t)
{
	irq_state_t state = arch_irq_save();

	count_up(&returns_lost);
	graph_session_runs(t);
	t->returns_missed++;
	arch_irq_restore(state);
}

void trace_take_return(unsigned long ip, unsigned long parent,
		       struct trace_ops *ops, unsigned long sp)
{
	struct task *t = current_task();
	u32 depth = READ_ONCE(t->nr_returns);
	struct task_return *r = &t->returns[depth];
	unsigned long cfa, slot;

	if (!parent) /* the task's first function: arch_task_init() */
		return;
	if (!returns_plausible(parent) ||
	    !find_taken_frame(ip, sp, &cfa, &slot)) {
		count_up(&returns_refused);
		return;
	}
	if (depth == TASK_RETURNS) {
		count_missed(t);
		return;
	}
	push_return(t, depth, cfa);
	*r = (struct task_return){
		.ops = ops,
		.ret = parent,
		.ip = ip,
		.cfa = cfa,
	};
	if (!slot)
		slot = sp - arch_link_below;
	if (ops->enter(r, depth))
		WRITE_ONCE(*(unsigned long *)slot, (unsigned long)trace_return);
	else
		WRITE_ONCE(t->nr_returns, depth);
}

void returns_leave_out(struct task *t, u32 nr, u64 ticks, u64 since)
{
	for (u32 i = 0; i < nr; i++) {
		struct task_return *r = &t->returns[i];

		if (r->clock != RETURN_HIDDEN && (s64)(r->clock - since) >= 0)
			r->clock += ticks;
	}
}

void trace_returned(unsigned long *place)
{
	struct task *t = current_task();
	u32 depth = READ_ONCE(t->nr_returns) - 1;
	struct task_return *r = &t->returns[depth];

	if (depth >= TASK_RETURNS)
		panic("a function returned whose return address nobody took");
	r->ops->leave(r, depth);
	pop_return(t, depth, place);
}
