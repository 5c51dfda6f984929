/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: the entries in the rings are set aside, and recording goes on in other pages. That is
 * an exchange of pages, so it takes no longer for a full ring. Each CPU exchanges its own. A
 * trigger, which cannot wait, does it on its CPU at once and sends the others an interrupt. The
 * latency tracers keep the longest latency in the same place.
 */
#ifndef TRACER_SNAPSHOT_H
#define TRACER_SNAPSHOT_H

#include <kernel/ctl/ctl.h>
#include <kernel/types.h>
#include <tracer/core/instances.h>

/*
 * Get the memory of an instance's snapshot, if it is not there yet: as much as its rings have.
 * 0. -ENOMEM, which is explained in h. Context: a task, trace_mutex held.
 */
int snapshot_make(struct ctl_handle *h, struct trace_instance *in);

/*
 * Set aside the entries of the CPUs of mask in an instance. The calling CPU is one of them. False:
 * nothing was done, since there is no memory, or a task reads the last snapshot, or another
 * CPU begins one at this moment, or this is an NMI, which may have come while the ring was
 * being written. Interrupts off. No site.
 */
bool snapshot_trigger(struct trace_instance *in, cpumask_t mask);

/* If another CPU's trigger wants this CPU's part, and its interrupt has not come yet: do it now.
 * Interrupts off. No site. */
void snapshot_answer(void);

/* From here to snapshot_release() no snapshot of the instance is begun, and none is under way.
 * Calls nest. Context: a task, interrupts on. */
void snapshot_hold(struct trace_instance *in);
void snapshot_release(struct trace_instance *in);

/* May users read and take snapshots of the file's instance? 0. -EBUSY, which is explained in h: a
 * latency tracer keeps its record there. Any context. */
int snapshot_check(struct ctl_handle *h);

/* The CPUs that have a part in the last snapshot. Between hold and release it stays. */
cpumask_t snapshot_cpus(const struct trace_instance *in);

/* Forget the entries of the CPUs of mask in the last snapshot, or all, and give its memory back.
 * Context: as snapshot_make(). */
void snapshot_forget(struct trace_instance *in, cpumask_t mask);
void snapshot_free(struct trace_instance *in);

#endif
