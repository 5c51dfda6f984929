/* SPDX-License-Identifier: MIT */
/*
 * The lab enumerates, on the running machine, every way of patching a site that the ports use, and
 * ways that history has tried and regretted. It holds a victim task at each instruction boundary of
 * a site and its surroundings, patches the site under the task, lets the task go on, and compares
 * the outcome with the scheme's claim.
 *
 * Every port supplies the functions of arch/arch_lab.h. Schemes beyond that are data, in a port's
 * lab.c. Their victims are assembly, in its lab.S. tests/README.md says how to add one.
 */
#ifndef TRACER_LAB_H
#define TRACER_LAB_H

#include <arch/arch_lab.h>
#include <arch/arch_trace.h>

#define LAB_SITE_MAX 24 /* bytes of a site */
#define LAB_FORMS 4
#define LAB_STORES 6

/*
 * One store: bytes [offset, offset + length) of form `form`. 1, 2, 4 or 8 bytes at an
 * aligned address are stored by one instruction, any other number byte by byte. A
 * store that is torn in two, where that matters, is two of these.
 */
struct lab_store {
	u8 offset, length, form;
};

/* How the stores are brought about. */
enum lab_way {
	/* All stores within one rendezvous, which each CPU synchronises in. */
	LAB_STOP,
	/* One store after another while others run. All CPUs synchronise after
	 * each of them. */
	LAB_LIVE,
	/* First arch_break_insn where the first store goes, then all stores but
	 * the first, then the first. All CPUs synchronise after each of the
	 * three. */
	LAB_BREAK,
	/* The same, but the trap leads around the site: through a copy of the old form, or as
	 * resume() does it if that calls. Behind the breakpoint the lab waits until no task
	 * stands inside the site, and at the end until none is in the copy. */
	LAB_BYPASS,
	LAB_NO_WAIT, /* it waits for no task */
	LAB_IN_PLACE, /* there is no copy: it goes on behind the first instruction */
};

struct lab_scheme {
	const char *name; /* "5x90". The port's name is printed before it */
	const char *from; /* "seed 0", "H5b" */
	const struct lab_victim *victim;
	u8 length; /* of the site */
	struct lab_form form[LAB_FORMS];
	/* The bytes of a form at address `site`. */
	void (*encode)(unsigned long site, unsigned int form, u8 *bytes);
	u8 old, new; /* the transition, as forms */
	enum lab_way way;
	struct lab_store store[LAB_STORES]; /* in order. Length 0 ends */
	/* 0: the scheme is claimed to be safe. Else to be unsafe: at least one of
	 * these bits must be seen at one boundary, or by the CPU that runs in
	 * between. */
	u32 breaks;
	const char *because; /* one line for `lab list`: why, or the cure */
	/* Optional: the work of this scheme at every trap return into the site
	 * (the step back of the three-step retarget). */
	void (*trap_return)(struct trap_frame *f, unsigned long site);
	/* By design a run between two stores may do as form `window` says, which
	 * is neither the old form nor the new one. */
	bool has_window;
	u8 window;
	/* LAB_BREAK and LAB_BYPASS: the trap calls it, to act as that form would. */
	void (*resume)(struct trap_frame *f, unsigned long site,
		       unsigned int form);
	/* Optional: f is a fault of the victim's. If the scheme has provoked it (by
	 * an absent page, where each access shows which instruction made it), put
	 * f behind the instruction, add to *damage, and return true. */
	bool (*fault)(struct trap_frame *f, unsigned long site, u32 *damage);
};
#define LAB_SCHEME(ident, ...)                                                 \
	static const struct lab_scheme lab_scheme_##ident REGISTER(            \
		lab_schemes) = { __VA_ARGS__ }
REGISTRY(struct lab_scheme, lab_schemes);

#endif
