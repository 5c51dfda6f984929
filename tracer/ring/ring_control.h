/* SPDX-License-Identifier: MIT */
/* Making, sizing, clearing and switching the trace buffer. */
#ifndef TRACER_RING_CONTROL_H
#define TRACER_RING_CONTROL_H

#include <tracer/ring/ring.h>

/* Context of all: a task, trace_mutex held (tracer/core/tracer.h). */

/*
 * Give the CPUs of mask a ring of kb KiB in the set, rounded up to pages, and a spare one if the
 * instance has spare ones. The newest events that fit stay. 0. -ENOMEM: the old rings stay as they
 * are. Interrupts on. Spare rings are held (tracer/show/snapshot.h).
 */
int ring_resize(struct ring *set, cpumask_t mask, unsigned long kb);
unsigned long ring_kb(const struct ring *set, unsigned int cpu);
/* Free the rings of a set that nothing writes any more. */
void ring_free(struct ring *set);

/* Make an instance's spare rings, as large as its rings are. 0, if there are some already, too.
 * -ENOMEM. */
int ring_spares_make(struct trace_instance *in);
/* Forget the entries in its spare rings of the CPUs of mask. Nothing may exchange them. */
void ring_spares_clear(struct trace_instance *in, cpumask_t mask);

/* Forget everything in the set and set the counts to 0, on the CPUs of mask. */
void ring_clear(struct ring *set, cpumask_t mask);

/*
 * Record on the CPUs of mask and on no other. clear: and forget everything. Of the tasks that run
 * now, record those that takes() lets pass, or all of them where it is NULL. When it returns no CPU
 * outside the mask is in the middle of writing an event.
 */
void ring_record(struct ring *set, cpumask_t mask, bool clear,
		 bool (*takes)(s32 pid));

/* Set ring_mode. A ring that is open stays open until ring_record(). */
void ring_set_mode(u32 mode);

/* Let function_graph's trampolines write the rings of the top level, where they record, or leave
 * all of it to C code. When it returns, each CPU does so. */
void ring_let_graph(bool on);

/*
 * Run fn(cpu, arg) for the CPUs of mask, where and how their rings' writers run:
 * there, interrupts off. For a CPU that is not online, which has no writer, here.
 */
void ring_call(cpumask_t mask, void (*fn)(unsigned int cpu, void *arg),
	       void *arg);

#endif
