/* SPDX-License-Identifier: MIT */
/*
 * The tracer's state: which tracer, on or off, on which CPUs, through which
 * filters, and the state of the sites, trace_ops and the rings that follows.
 * All under trace_mutex, taken first of the tracer's locks.
 */
#ifndef TRACER_TRACER_H
#define TRACER_TRACER_H

#include <arch/arch_trace.h>
#include <kernel/ctl/ctl.h>
#include <kernel/lock/lock.h>
#include <kernel/types.h>
#include <kernel/lock/mutex.h>
#include <tracer/core/instances.h>

struct tracer {
	const char *name;
	/* The work of live calls while recording. NULL: it needs no site. */
	struct trace_ops *ops;
	/* The same where C code must see the calls. NULL: as the tracer function. */
	struct trace_ops *c_ops;
	bool graph; /* the buffer is shown as a call graph */
	u8 latency; /* the latency that it measures, in the snapshot's memory */
};
#define TRACER(ident, ...)                                                     \
	static const struct tracer tracer_##ident REGISTER(                    \
		tracers) = { __VA_ARGS__ }
REGISTRY(struct tracer, tracers);
extern const struct tracer tracer_nop;
/* Live calls write an entry into the ring. */
extern struct trace_ops trace_ops_ring;

/*
 * Errors of these functions are explained in h (ctl_error()). On an error
 * nothing has changed. Context: a task, interrupts on, trace_mutex held.
 */

/* A tracer by name, or NULL. Any context. And the error that an instance has no such tracer. */
const struct tracer *trace_find(const char *name);
int trace_unknown(struct ctl_handle *h, const struct trace_instance *in,
		  const char *name);

/* The ops of the selected tracer's live calls. NULL: it wants none. Option function-trace takes
 * them from the latency tracers. */
struct trace_ops *trace_wants(const struct tracer *tracer);

/*
 * trace_wants() may have changed for the selected tracer, which had live calls or not. 0, or
 * trace_update()'s error.
 */
int trace_wants_changed(struct ctl_handle *h, bool were_on);

/* Explain patch_apply()'s error in h, and return it. Any task. */
struct patch_batch;
int trace_patch_error(struct ctl_handle *h, const struct patch_batch *b,
		      int err);

/* Select a tracer by name, and clear the buffer. -EINVAL: unknown. -EBUSY: trace_pipe is being
 * read. */
int trace_select(struct ctl_handle *h, const char *name);

/* So many more readers consume the instance's buffer, or fewer. Any task, trace_mutex not
 * held. */
void trace_count_pipes(struct trace_instance *in, int by);

/* Set tracing_on and tracing_cpumask. */
void trace_record(bool on, cpumask_t mask);
/*
 * Something that trace_ops or the rings depend on has changed: triggers, pids, the stack tracer.
 * Interrupts each CPU, so none of them still reads the old values.
 */
void trace_refresh(void);
/* A client needs more than before, or less. Interrupts no CPU if that changes nothing. */
void trace_needs_changed(void);

/*
 * Filters have changed in words [lo, hi) of the site bitmaps: switch the sites
 * there on or off as they now should be. 0, or patch_apply()'s error.
 */
int trace_update(struct ctl_handle *h, unsigned int lo, unsigned int hi);

/* tracing_thresh: in microseconds, as written, and in arch_clock()'s ticks. 0: there is none.
 * Written under trace_mutex. */
struct trace_thresh {
	u64 us, ticks;
};
extern struct trace_thresh trace_thresh;

#endif
