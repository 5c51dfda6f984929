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

/* Context of these, unless they say otherwise: a task, trace_mutex held. */

/*
 * Make what these kinds need: the snapshot's memory, which is empty, and the jump labels. Nothing
 * is measured yet. 0, -ENOMEM, or patch_apply()'s error, explained in h, and then nothing has
 * changed.
 */
int latency_prepare(struct ctl_handle *h, unsigned int kinds);
/* Forget the longest one, and measure these kinds from now on. 0: nothing, without a snapshot if it
 * had latencies. */
void latency_measure(unsigned int kinds);

/* Forget what the longest one has left in the buffers of the CPUs of mask: `echo > trace`. */
void latency_forget(cpumask_t mask);

/* The longest one. While snapshots are held (snapshot_hold()), it stays. */
struct latency latency_longest(void);

/* The scheduler's hook, which hook_ip lies in, before ring_task(): prev is left for next.
 * Interrupts off. */
void latency_switched(const struct task *prev, const struct task *next,
		      unsigned long hook_ip);

#endif
