/* SPDX-License-Identifier: MIT */
/*
 * Writing an event's record into the trace buffer, where it will be read. Everything that is
 * usual is inline, because each event's function has its own copy. No site.
 */
#ifndef TRACER_RING_EVENT_H
#define TRACER_RING_EVENT_H

#include <arch/arch.h>
#include <kernel/cpu/cpu.h>
#include <tracer/ring/ring.h>

#define EVENT_MAX 128 /* bytes of a record */

/* Interrupts as they were before ring_event_begin(). */
static always_inline void ring_event_drop(bool irqs_off)
{
	if (!irqs_off)
		arch_irq_enable();
}

/*
 * Turn interrupts off, and return room for `size` bytes, aligned to 8. *recorded false:
 * nothing is recorded now, and interrupts are as they were. Else *irqs_off says how they
 * were, to ring_event_end() or ring_event_drop(). In an NMI, and while the CPU is inside
 * the tracer, the event is dropped and counted. Any context.
 *
 * While any event has a trigger (RING_TRIGGERS), there is room although tracing_on is 0,
 * because a trigger may be about to change that. The caller then looks at tracing_on itself.
 *
 * If ring.end is not NULL, the CPU records, it is not inside the tracer, no trigger may
 * change tracing_on, and the ring knows which task runs. The scheduler's hook tells it,
 * while any event is on.
 */
static always_inline void *ring_event_begin(bool *irqs_off, u32 size,
					    bool *recorded)
{
	struct cpu_head *head;
	struct ring_event *e;
	char *end;
	u64 delta;
	u32 rare;

	*irqs_off = arch_irqs_off();
	if (!*irqs_off)
		arch_irq_disable();
	/* First, while nothing else has to be kept. */
	delta = arch_clock();
	head = &arch_this_cpu()->head;
	delta -= head->ring.base;
	e = (struct ring_event *)head->ring.cur;
	/* 4 bytes for the alignment. A slot is left for a mark of the time. */
	end = (char *)(e + 2 + RING_MORE_SLOTS(size + 4));
	/* Two reasons in one word cost one branch. */
	rare = delta >> 32 | (head->preempt_count & PREEMPT_NMI);
	if (__builtin_expect(end > head->ring.end || rare, 0)) {
		e = ring_event_slow(*irqs_off, size);
		*recorded = e;
		return e;
	}
	*recorded = true;
	e->delta = delta;
	return ring_event_record(e);
}

/* Publish the bytes that were filled. */
static always_inline void ring_event_publish(bool irqs_off, unsigned int id,
					     u32 size)
{
	struct cpu_head *head = &arch_this_cpu()->head;
	struct ring_event *e = (struct ring_event *)head->ring.cur;
	struct ring_page *p =
		(struct ring_page *)ALIGN_DOWN((uintptr_t)e, PAGE_SIZE);
	/* With 4 bytes for the alignment, so that it is a constant for most events. */
	u32 len = size + 4, more = RING_MORE_SLOTS(len);
	/* 16 bits, and bit 14, which is RING_IRQS_OFF in the flags, is 0: arch/cpu_head.h. */
	u32 context = head->preempt_count;

	e->ip = RING_EVENT(id) << 8 | (context & 0xff);
	e->parent = len << 8 | context >> 8 | (irqs_off ? RING_IRQS_OFF : 0);
	p->inner += more;
	/* Pairs with the acquire of ring.cur in ring_read.c. */
	__atomic_store_n(&head->ring.cur, (char *)(e + 1 + more),
			 __ATOMIC_RELEASE);
}

/* And let interrupts be as they were. */
static always_inline void ring_event_end(bool irqs_off, unsigned int id,
					 u32 size)
{
	ring_event_publish(irqs_off, id, size);
	ring_event_drop(irqs_off);
}

#endif
