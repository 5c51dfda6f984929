/* SPDX-License-Identifier: MIT */
/*
 * Switching sites on and off while the machine runs, and jump labels likewise. A batch is
 * a set of them that change their state. All of it is verified against memory before a
 * strategy may write the first byte. Below, "site" means both.
 */
#ifndef TRACER_PATCH_H
#define TRACER_PATCH_H

#include <tracer/ops/ops.h>
#include <tracer/sites/sites.h>

struct trap_frame;

struct patch_batch {
	const struct live_set *set;
	unsigned int lo, hi; /* words of the bitmaps: [lo, hi) */
	const u32 *changes;  /* bitmap: the sites that change, in these words */
	unsigned int on, off; /* sites that become on, and off */
	union {
		u64 held_ns; /* longest time that a CPU was held */
		/* Of strategy `bypass`, when patch_apply() returns -EBUSY: a task inside a site. */
		const struct trace_left *left;
	};
	unsigned int fallback; /* sites that another strategy had to switch */
	/* Filled when patch_apply() returns -EIO: */
	unsigned int bad_site;
	u64 found, expected; /* the live instruction's bytes */
};

/*
 * A way of carrying a batch out. Every live instruction has been verified. When
 * it returns 0 all of them are written and every CPU has synchronised, else
 * nothing has been written. Context: a task, trace_mutex held.
 */
struct patch_strategy {
	const char *name;
	/* NULL, or why this machine cannot use it. */
	const char *(*refused)(void);
	int (*carry_out)(struct patch_batch *b);
};
#define PATCH_STRATEGY(ident, ...)                                             \
	const struct patch_strategy patch_strategy_##ident REGISTER(           \
		patch_strategies) = { __VA_ARGS__ }
REGISTRY(struct patch_strategy, patch_strategies);
extern const struct patch_strategy patch_strategy_stop, patch_strategy_bypass;
#define PATCH_STRATEGY_DEFAULT                                                 \
	(arch_live_insns > 1 ? &patch_strategy_bypass : &patch_strategy_stop)

/* Why this machine cannot use a strategy, or NULL. */
const char *patch_refused(const struct patch_strategy *s);

/*
 * Choose the strategy of all later batches. -EINVAL: none of that name. -ENOSYS:
 * refused here, *why says why. Context: trace_mutex held. And its name.
 */
int patch_strategy_set(const char *name, const char **why);
const char *patch_strategy_name(void);

/*
 * The steps of a strategy that stops no CPU, in their order. Each step is first
 * written (synced false), then every CPU has synchronised (true).
 */
enum patch_step {
	PATCH_BREAK, /* a breakpoint on each first unit */
	PATCH_TAIL,  /* the new tails behind it */
	PATCH_FIRST, /* the new first units */
	PATCH_WORD,  /* whole live instructions, one store each */
};

/*
 * Hook for the lab, which runs the site on another CPU from it: the task that patches
 * calls it after each write and each sync of a step, with interrupts on. NULL when
 * nothing needs it.
 */
extern void (*patch_step_hook)(enum patch_step step, bool synced);

/*
 * Hook for the lab's own breakpoints: patch_trap() asks it first. true: it has dealt
 * with the trap. Trap context, no site. It is set by PATCH_HOOK_SET(), and needs
 * PATCH_INDIRECT(patch_trap, function). NULL when nothing needs it.
 */
extern bool (*patch_trap_hook)(struct trap_frame *f);

/*
 * Go through the sites of batch b that get the state `on`: word w, entry in the set's
 * table. Most batches change all of their sites alike, and where `on` is a constant,
 * no site is asked for its state. A shift a site is cheaper than counting zeros where
 * that is a libgcc call. Half a word without such sites is passed over at once.
 */
#define patch_for_each(b, w, entry, diff, on)                                  \
	for ((w) = (b)->lo; (w) < (b)->hi; (w)++)                              \
		if (((diff) =                                                  \
			     (b)->changes[w] & ((on) ? ~(b)->set->enabled[w] : \
						       (b)->set->enabled[w]))) \
			for ((entry) = &(b)->set->table[32 * (w)],             \
			    (diff)&0xffff ? 0 :                                \
					    ((entry) += 16, (diff) >>= 16);    \
			     (diff); (entry)++, (diff) >>= 1)                  \
				if (1 & (diff))

/* Call an always_inline function for each state and for the batch's kind: its last
 * arguments are `on` and LIVE_BY_KIND()'s. */
#define PATCH_BY_STATE(b, fn, ...)                                             \
	do {                                                                   \
		LIVE_BY_KIND((b)->set, fn, __VA_ARGS__, true);                 \
		LIVE_BY_KIND((b)->set, fn, __VA_ARGS__, false);                \
	} while (0)

/* Which of the sites 32 * w to 32 * w + 31 shall be on: bits as in the bitmaps. Bits
 * of sites that are not patchable do not count. */
typedef u32 patch_want_fn(unsigned int w, const void *arg);

/* All sites on, and all off. They ignore arg. */
patch_want_fn patch_want_on, patch_want_off;

/*
 * Switch the sites of words [lo, hi) as want(word, arg) says. 0. -EIO: a live instruction has
 * unexpected bytes, and b says which one. -EDEADLK: interrupts are off. Or the strategy's error
 * (stop_cpus()). After an error nothing has been written. Context: a task, interrupts on,
 * trace_mutex held.
 */
int patch_apply(struct patch_batch *b, unsigned int lo, unsigned int hi,
		patch_want_fn *want, const void *arg);

/* The same for one site. */
int patch_site(struct patch_batch *b, unsigned int site, bool on);

/* The same for jump labels, all words. */
int patch_apply_jumps(struct patch_batch *b, patch_want_fn *want,
		      const void *arg);

/* "name+0x0/0x20: found 0x.., expected 0x..", for an -EIO, or the task of an -EBUSY. */
int patch_explain(const struct patch_batch *b, char *buf, size_t size);

struct patch_stats {
	const char *strategy;
	unsigned int enabled; /* sites, and not jump labels */
	u32 batches;
	u64 sites_written;
	u64 fallback; /* of these: not as the strategy does */
	u64 held_ns_max;
	u64 window_ns_max; /* of writing with interrupts off, no CPU held */
	u32 traps;	   /* breakpoints hit in a batch, atomic */
	u32 late; /* and hit though they were gone from memory, atomic */
};
void patch_stats(struct patch_stats *s);

#endif
