/* SPDX-License-Identifier: MIT */
/*
 * The latency tracers: irqsoff, preemptoff, preemptirqsoff, wakeup and wakeup_rt. Each measures
 * how long something takes: a section with interrupts or preemption off, or the way of a woken
 * task to its CPU. When one has taken longer than any before, the buffer is set aside as a
 * snapshot is (tracer/show/snapshot.h), and `trace` shows what happened in that time.
 *
 * Sections begin and end in the kernel's own calls (kernel/event/latency.h). Nothing is recorded
 * apart from the section's first and last call, and what the other tracers would record.
 */
#ifndef TRACER_LATENCY_H
#define TRACER_LATENCY_H

#include <kernel/ctl/ctl.h>
#include <kernel/types.h>
#include <tracer/show/output.h>

struct task;

/* struct tracer.latency: what is measured. */
#define LATENCY_IRQS 1u	   /* sections with interrupts off */
#define LATENCY_PREEMPT 2u /* sections with preemption off */
#define LATENCY_WAKEUP                                                         \
	4u /* of tasks that are more urgent than what runs on their CPU */
#define LATENCY_RT 8u /* ... and of at least LATENCY_RT_PRIO */
#define LATENCY_RT_PRIO PRIO_HIGH

/* The longest one. While snapshots are held (snapshot_hold()), it stays. */
struct latency latency_longest(void);

#endif
