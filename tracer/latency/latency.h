/* SPDX-License-Identifier: MIT */
/*
 * The latency tracers: irqsoff, preemptoff, preemptirqsoff, wakeup and wakeup_rt. Each measures how
 * long something takes: a section with interrupts or preemption off, or the way of a woken task to
 * its CPU. When one has taken longer than any before, the buffer is set aside as a snapshot is
 * (tracer/show/snapshot.h), and `trace` shows the calls and events of that time.
 *
 * Sections begin and end in the kernel's own calls (kernel/event/latency.h). Beside the section's
 * first and last call, only the entries that the other tracers would write are recorded.
 */
#ifndef TRACER_LATENCY_H
#define TRACER_LATENCY_H

#include <kernel/ctl/ctl.h>
#include <kernel/types.h>
#include <tracer/show/output.h>

struct task;

/* struct tracer.latency: the latencies that it measures. */
#define LATENCY_IRQS 1u	   /* sections with interrupts off */
#define LATENCY_PREEMPT 2u /* sections with preemption off */
#define LATENCY_WAKEUP                                                         \
	4u	      /* of tasks that are more urgent than their CPU's task */
#define LATENCY_RT 8u /* ... and of at least LATENCY_RT_PRIO */
#define LATENCY_RT_PRIO PRIO_HIGH

/* The longest one. While snapshots are held (snapshot_hold()), it stays. */
struct latency latency_longest(void);

#endif
