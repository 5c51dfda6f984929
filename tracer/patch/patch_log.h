/* SPDX-License-Identifier: MIT */
/*
 * The order log: in which order text was written, CPUs synchronised, were held, waited for each
 * other, came and went, and ran the new text. Emulators fetch coherently, so that a missing
 * synchronisation never shows as a crash. This is where it shows. The entries and the rules are in
 * patch_check.h.
 *
 * On with patchlog=on, or while a test wants it. The file patch_log shows it, one
 * line an entry. A write to the file clears it. patch_log_check says
 * whether the rules were kept.
 */
#ifndef TRACER_PATCH_LOG_H
#define TRACER_PATCH_LOG_H

#include <kernel/types.h>
#include <kernel/test/fault.h>
#include <tracer/patch/patch_check.h>

struct trace_ops;

extern bool patch_log_on;

/* Append an entry, of this CPU and of now. Any context, no site, never waits:
 * when the log is full, the entry is counted as lost. */
void patch_log_add(enum patch_log_what what, u32 a, u32 b);

static inline void patch_log(enum patch_log_what what, u32 a, u32 b)
{
	if (READ_ONCE(patch_log_on))
		patch_log_add(what, a, b);
}

/* The same for a store to a live instruction, if the log is on. */
void patch_log_store(unsigned long live, enum patch_store_kind kind, bool on);

/*
 * Begin an empty log: 0 or -ENOMEM. And end it: nothing is logged any more, and its
 * memory is free, unless patchlog=on wants it to go on. Context: a task, may
 * sleep, trace_mutex held.
 */
int patch_log_start(void);
void patch_log_stop(void);

struct patch_log_stats {
	u32 entries, lost; /* entries: kept */
};
void patch_log_stats(struct patch_log_stats *s);

/* Entry i, or NULL: not there, or not yet. */
const struct patch_log_entry *patch_log_get(u32 i);

/*
 * Hold the log against the rules. 0, *c has the verdict. -ENOMEM. -ENOSPC:
 * entries were lost, nothing can be said. Context: a task, trace_mutex held.
 */
int patch_log_check(struct patch_check *c);

/* The ops of live calls in a test: log that the site has run. */
extern struct trace_ops patch_log_ops;

/* Faults that tests plant, to see that the rules notice. */
FAULT_DECLARE(sync_skipped); /* by the CPU fault_sync_skipped.cpu */
FAULT_DECLARE(sync_early);
FAULT_DECLARE(stop_waits);
FAULT_DECLARE(stop_loose);
FAULT_DECLARE(bypass_loose);
FAULT_DECLARE(bypass_wide);

/* Is this CPU to leave out its synchronisation? No site. */
bool patch_fault_no_sync(void);

/* Interrupt another CPU and wait for an answer, at most for a millisecond, where
 * that is forbidden. No site. */
void patch_fault_wait(void);
/* Between the stores of a step and its end: of fault_batch_traps. */
void patch_fault_trap(void);

#endif
