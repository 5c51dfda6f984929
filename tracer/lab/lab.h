/*
 * The lab: every way of patching a site that the ports use, and those that
 * history has tried and regretted, enumerated on the running machine. A victim
 * task is held at each instruction boundary of a site and its surroundings, the
 * site is patched under it, it goes on, and what then happens is compared with
 * what the scheme claims.
 *
 * What every port supplies is in arch/arch_lab.h. Schemes beyond that are data, in a
 * port's lab.c; their victims are assembly, in its lab.S. tests/README.md says how
 * to add one.
 */
#ifndef TRACER_LAB_H
#define TRACER_LAB_H

#include <arch/arch_lab.h>
#include <arch/arch_trace.h>

#define LAB_SITE_MAX 24 /* bytes of a site */
#define LAB_FORMS 4
#define LAB_STORES 6

/*
 * One store: bytes [offset, offset + length) of form `form`; 1, 2, 4 or 8 bytes at
 * an aligned address are one instruction, others go byte by byte (torn stores
 * that matter are two of these).
 */
struct lab_store {
	u8 offset, length, form;
};

/* How the stores are brought about. */
enum lab_way {
	LAB_STOP,  /* all within one rendezvous; each CPU synchronises */
	LAB_LIVE,  /* one after another while others run; all CPUs synchronise
		      after each */
	LAB_BREAK, /* arch_break_insn where the first store goes; then the
		      stores, all but the first; then the first: all CPUs
		      synchronise after each of the three */
};

struct lab_scheme {
	const char *name; /* "5x90"; the port's name is printed before it */
	const char *from; /* "seed 0", "H5b" */
	const struct lab_victim *victim;
	u8 length; /* of the site */
	struct lab_form form[LAB_FORMS];
	/* The bytes of a form at address `site`. */
	void (*encode)(unsigned long site, unsigned int form, u8 *bytes);
	u8 old, new; /* the transition, as forms */
	enum lab_way way;
	struct lab_store store[LAB_STORES]; /* in order; length 0 ends */
	/* 0: claimed safe. Else claimed unsafe: at least one of these must be
	 * seen at one boundary, or by the CPU that runs in between. */
	u32 breaks;
	const char *because; /* one line for `lab list`: why, or what cures it */
	/* Optional: what this scheme wants of every trap return that would
	 * resume in the site (the step back of the three-step retarget). */
	void (*trap_return)(struct trap_frame *f, unsigned long site);
	/* Does a run between two stores do as form `window` says, neither old nor
	 * new, by design? */
	bool has_window;
	u8 window;
	/* LAB_BREAK: what the trap does: act as that form would. */
	void (*resume)(struct trap_frame *f, unsigned long site,
		       unsigned int form);
	/* Optional: f is a fault of the victim's. If it belongs to the scheme (a
	 * page that is absent so that each access shows which instruction made
	 * it): put f behind the instruction, add to *damage, true. */
	bool (*fault)(struct trap_frame *f, unsigned long site, u32 *damage);
};
#define LAB_SCHEME(ident, ...)                                                 \
	static const struct lab_scheme lab_scheme_##ident REGISTER(            \
		lab_schemes) = { __VA_ARGS__ }
REGISTRY(struct lab_scheme, lab_schemes);

#endif
