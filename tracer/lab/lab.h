/*
 * The lab: every way of patching a site that the ports use, and those that
 * history has tried and regretted, enumerated on the running machine. A victim
 * task is held at each instruction boundary of a site and its surroundings, the
 * site is patched under it, it goes on, and what then happens is compared with
 * what the scheme claims.
 *
 * Schemes are data, in each port's lab.c; their victims are assembly, in its
 * lab.S. tests/README.md says how to add one.
 */
#ifndef TRACER_LAB_H
#define TRACER_LAB_H

#include <arch/arch_trace.h>
#include <tracer/lab/lab_damage.h>

#define LAB_SITE_MAX 24 /* bytes of a site */
#define LAB_FORMS 4
#define LAB_STORES 6
#define LAB_INSNS 8

/*
 * Victim: an assembly function that runs one site once.
 *
 * run() makes `twos` turns of a loop of two instructions and `threes` of one of
 * three, so that every number of instructions from 2 on can pass before the
 * site; puts canaries into every register that the ABI lets it hold at the site
 * and notes sp; runs two instructions of its own, the site, and two more; checks
 * all that, puts the caller's registers back and returns the damage that it saw
 * (LAB_SP, LAB_REGS, LAB_RETURN). Canaries are addresses that nothing is mapped
 * at, so that a stray instruction faults rather than writes. What it returns
 * through must be saved where sp cannot matter.
 *
 * boundary: the two instructions before the site, and the two behind it.
 */
struct lab_victim {
	u32 (*run)(unsigned long twos, unsigned long threes);
	unsigned long site;
	unsigned long boundary[4];
};

/*
 * What "on" forms call, in the port's lab.S: as trace_entry is called from a
 * site of that kind, it counts in lab_calls[0] (or [1]: a second target, to
 * retarget to), changes every register that it may, and returns.
 */
extern u32 lab_calls[2];

/* One form of a site: off, on, or something in between. */
struct lab_form {
	const char *name;
	/* Bytes of each instruction, in order, 0 behind the last; together the
	 * whole site. Negative: control never stands on these in this form,
	 * because a jump passes over them or they are in a delay slot. */
	s8 insn[LAB_INSNS];
	/* Calls that a run through the whole of it makes: of lab_calls[0], [1]. */
	u8 calls[2];
};

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

/*
 * A victim whose site is one of the port's own, as the compiler makes them
 * (SITES=), so that it stands in the site table: the lab switches it with each
 * strategy of the tracer, in both directions.
 */
extern const struct lab_victim lab_victim_own;
/* What arch_live_bytes() makes of that site, as it is after boot. */
const struct lab_form *lab_own_form(bool on);

/*
 * A function whose return address is taken, and its caller, run(), which has no
 * site: every register that a function keeps for its caller has a canary there, and
 * so has every one that the ABI lets carry something to the function. The function
 * is a site of the same shape between its four instructions; behind them it looks
 * after what it was given, puts canaries into every register that a result may be
 * in, or not if something has changed, and returns. run() compares those, its own,
 * and sp.
 */
extern const struct lab_victim lab_victim_return;

/*
 * In each port's trampoline.S, with trace_entry first and trampoline_end behind
 * the last: pairs of addresses [from, to) between which interrupts are off, so
 * that no task can be held there; 0 ends.
 */
extern const unsigned long trampoline_masked[];

#endif
