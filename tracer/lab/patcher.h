/* SPDX-License-Identifier: MIT */
/*
 * Patch code that is not nopl's own, for the lab to judge (tests/patchers/README.md). The code, or
 * an adapter of a few lines, says LAB_PATCHER(), and changes text through the functions here.
 *
 * The lab runs the code once to learn its stores. Then it stops the code behind each of them: it
 * holds a victim at every instruction of the text as it is there, lets the code go on, and lets
 * the victim go.
 */
#ifndef TRACER_PATCHER_H
#define TRACER_PATCHER_H

#include <kernel/patch_path.h>
#include <kernel/types.h>
#include <tracer/lab/lab.h>

enum { PATCHER_OFF, PATCHER_ON, PATCHER_ON2, PATCHER_FORMS };

struct lab_patcher {
	const char *name;
	const char *from; /* "Linux 6.1" */
	/* It runs the site. NULL: lab_victim_own, whose call is counted as a tracer's. */
	const struct lab_victim *victim;
	u8 length; /* of its site, in bytes */
	/* Calls that a run makes in each form, of lab_calls[0] and [1]. By default one of [0] on,
	 * and one of [1] with another target. */
	u8 calls[PATCHER_FORMS][2];
	/*
	 * Each makes of the site's present form the next one, and returns 0 or an error. They run
	 * in a task. The first is the boot's work, from whatever bytes are there to "off".
	 * retarget goes from on to another target, and is NULL where there is none.
	 */
	int (*prepare)(unsigned long site);
	int (*on)(unsigned long site);
	int (*off)(unsigned long site);
	int (*retarget)(unsigned long site);
	/* The code relies on its caller to hold all CPUs. So the lab runs each of these three in
	 * a rendezvous, and no CPU comes to the site between two of its stores. */
	bool all_held;
	/* Optional: this trap is the code's own, and f is where the CPU goes on. Trap context.
	 * LAB_PATCHER_TRAP(function) stands beside it. */
	bool (*trap)(struct trap_frame *f);
	/* What the author claims of on, off and retarget: damage that is seen (LAB_FAULT and so
	 * on), or 0, safe. */
	u32 breaks[PATCHER_FORMS];
};
#define LAB_PATCHER(ident, text, ...)                                          \
	static const struct lab_patcher lab_patcher_##ident REGISTER(          \
		lab_patchers) = { .name = "patcher " text, __VA_ARGS__ }
#define LAB_PATCHER_TRAP(fn) PATCH_INDIRECT(patcher_trap, fn)
REGISTRY(struct lab_patcher, lab_patchers);

/*
 * Store bytes of text at `at`: 1, 2, 4 or, where a long has them, 8 at an aligned address by one
 * instruction, any other number byte by byte. 0, or -EFAULT outside the site: nothing is stored.
 */
int patcher_write(unsigned long at, const void *bytes, size_t length);
/* The same, where the code makes one store of it that is not aligned. */
int patcher_write_once(unsigned long at, const void *bytes, size_t length);
/* This CPU, or every CPU, fetches what was stored. */
void patcher_sync(void);
void patcher_sync_all(void);
/* Run fn(arg) while no other CPU runs, with interrupts off, and return its result. */
int patcher_hold_all(int (*fn)(void *arg), void *arg);

bool patcher_trap(struct trap_frame *f);

#endif
