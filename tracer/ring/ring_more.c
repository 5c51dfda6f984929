/* SPDX-License-Identifier: MIT */
/* Code that writes entries which are no calls, and those entries: ring_more.h. */
#include <tracer/ring/ring_more.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/image/symbols.h>
#include <kernel/image/unwind.h>
#include <kernel/sched/task.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/base/instance.h>

bool ring_enter(irq_state_t *state)
{
	const struct cpu_head *head;
	struct ring *r;

	*state = arch_irq_save();
	head = &arch_this_cpu()->head;
	r = &rings[head->index];
	/* An NMI may have come while the ring was being written. */
	if (r->busy || (head->preempt_count & PREEMPT_NMI)) {
		r->dropped++;
		arch_irq_restore(*state);
		return false;
	}
	r->busy = true;
	ring_reopen(r);
	return true;
}

void ring_leave(irq_state_t state)
{
	struct ring *r = &rings[cpu_index()];

	r->busy = false;
	ring_reopen(r);
	arch_irq_restore(state);
}

int ring_mark_as(struct ring *set, u32 type, const void *bytes, size_t len)
{
	bool irqs_off = arch_irqs_off();
	irq_state_t state;
	struct ring *r;
	int err = -EBUSY;

	if (!ring_enter(&state))
		return -EBUSY;
	r = &set[cpu_index()];
	if (ring_is_on(r))
		err = ring_put_bytes(r, type, ring_context(irqs_off), bytes,
				     len);
	ring_leave(state);
	return err;
}

void ring_stack(const struct trace_instance *in, unsigned long ip, bool behind,
		bool irqs_off)
{
	u32 offsets[RING_STACK_MAX];
	unsigned int n = 0;
	bool begun = false;
	irq_state_t state;
	struct unwind u;
	struct ring *r;

	if (!ring_enter(&state))
		return;
	r = &in->buffer[cpu_index()];
	if (ring_is_on(r)) {
		/* The walk begins here. The tracer's own calls are left out. */
		for (unwind_start(&u, NULL, NULL);
		     unwind_next(&u) && n < RING_STACK_MAX;) {
			if (begun || (u.regs.pc == ip && !behind))
				offsets[n++] = u.regs.pc - (unsigned long)_text;
			begun |= u.regs.pc == ip;
		}
		ring_put_bytes(r, RING_STACK, ring_context(irqs_off), offsets,
			       n * sizeof(offsets[0]));
	}
	ring_leave(state);
}

/* The last call of a CPU that was recorded. */
static struct last_call {
	unsigned long ip, parent;
	s32 pid;
	u32 count;	 /* how often it has come again since */
	u64 clock, when; /* when it came last, and by the ring's clock */
} last_calls[MAX_CPUS];

/* Of Linux's format, which has 16 bits. */
#define REPEATS_MAX 0xffff

static void put_count(struct ring *r, const struct last_call *last,
		      bool irqs_off)
{
	struct ring_repeats repeats = {
		.ip = last->ip - (unsigned long)_text,
		.parent = last->parent - (unsigned long)_text,
		.count = last->count,
		.last = { last->when, last->when >> 32 },
	};
	irq_state_t state;

	if (!ring_enter(&state))
		return;
	ring_put_bytes(r, RING_REPEATS, ring_context(irqs_off), &repeats,
		       sizeof(repeats));
	ring_leave(state);
}

/* This is the last time that the call has come. */
static void note_time(struct last_call *last, const struct ring *r)
{
	last->clock = arch_clock();
	last->when = instance_counts(r->in) ? ring_count(1) : last->clock;
}

bool ring_repeats(unsigned long ip, unsigned long parent, bool irqs_off)
{
	struct last_call *last = &last_calls[cpu_index()];
	struct ring *r = &rings[cpu_index()];
	/* A call that was cleared from the buffer cannot come again. */
	bool known = (s64)(last->clock - r->began) >= 0;
	s32 pid = current_task()->pid;

	/* An NMI may have come while another call is being counted. */
	if (!ring_takes_calls(r) || r->busy || (ring_context(0) & PREEMPT_NMI))
		return false;
	if (known && last->ip == ip && last->parent == parent &&
	    last->pid == pid && last->count < REPEATS_MAX) {
		last->count++;
		note_time(last, r);
		return true;
	}
	if (known && last->count)
		put_count(r, last, irqs_off);
	*last = (struct last_call){ ip, parent, pid, .clock = arch_clock() };
	return false;
}

/* ---- The numbers of trace_clock `counter` ---- */

static u64 counted;
static u32 counting; /* a CPU reads or writes `counted` */

/* Not every CPU can add to 64 bits at once. */
u64 ring_count(unsigned int more)
{
	irq_state_t state = arch_irq_save();
	u64 number;

	while (__atomic_exchange_n(&counting, 1, __ATOMIC_ACQUIRE))
		arch_cpu_relax();
	number = counted += more;
	__atomic_store_n(&counting, 0, __ATOMIC_RELEASE);
	arch_irq_restore(state);
	return number;
}
