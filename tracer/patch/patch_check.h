/* SPDX-License-Identifier: MIT */
/*
 * The order log's entries, and the rules that they must keep. This is plain C without
 * the kernel, because the host's tools/patchcheck is compiled from it too.
 */
#ifndef TRACER_PATCH_CHECK_H
#define TRACER_PATCH_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#define PATCH_CHECK_CPUS 32

/* The actions of a CPU. The words of the text form are in patch_log_words[]. */
enum patch_log_what {
	LOG_NONE,   /* not an entry (yet) */
	LOG_ONLINE, /* a: mask of the CPUs online as the log begins */
	LOG_BATCH,  /* a: sites, b: index of the strategy */
	LOG_STEP,   /* a: enum patch_step, b: sites of the chunk */
	LOG_STORE,  /* a: the live instruction's offset from _text, b: which
		       bytes of it (enum patch_store_kind) */
	LOG_SYNC,   /* this CPU's fetch is about to be synchronised */
	LOG_DONE,   /* the batch is declared done */
	LOG_HELD,   /* this CPU enters a rendezvous. a: 1 if it leads */
	LOG_FREE,   /* this CPU leaves the rendezvous */
	LOG_WAIT,   /* this CPU begins to wait for the CPUs of mask a */
	LOG_WAITED, /* this CPU has waited */
	LOG_JOINED, /* this CPU is online from now on */
	LOG_LEFT,   /* this CPU is not online any more */
	LOG_RUN,    /* the live instruction at offset a was executed as "on" */
	LOG_BYPASS, /* the batch will wait for tasks inside its sites */
	LOG_CLEAR,  /* none is inside any more */
	LOG_WHATS,
};

/* b of LOG_STORE: which bytes of a live instruction, and STORE_ON if its new state is
 * on. */
enum patch_store_kind {
	STORE_BREAK, /* a breakpoint as the first unit, by one store */
	STORE_TAIL,  /* the new bytes behind the first unit */
	STORE_FIRST, /* the new first unit, by one store */
	STORE_WORD,  /* the whole instruction, by one store */
	STORE_WHOLE, /* the whole, by any number of stores: all CPUs are held */
	STORE_AGAIN, /* the same bytes once more, which changes nothing */
	STORE_BACK, /* the old first unit, by one store: the batch is taken back */
	STORES,
};
#define STORE_KIND(b) ((b)&15)
#define STORE_ON 16u

extern const char *const patch_log_words[LOG_WHATS];
extern const char *const patch_store_words[STORES];

struct patch_log_entry {
	uint64_t time; /* arch_clock(), on the host ns */
	uint32_t a, b;
	uint16_t cpu;
	uint16_t what; /* enum patch_log_what, stored last */
};

/*
 * The rules. A store is logged after it was made, and a synchronisation before it begins, so the
 * order of the entries never contradicts that of the actions. A store is "unsynchronised on CPU c"
 * until a LOG_SYNC of c follows it.
 */
enum patch_rule {
	RULE_KEPT,
	/* When a batch is declared done, none of its stores is unsynchronised on
	 * a CPU that was online when the store was made (H9). */
	RULE_DONE,
	/* When a site is stored to, no earlier store to it is unsynchronised on
	 * a CPU that was online then. So no CPU meets two of them (H8). */
	RULE_STORE,
	/* When a CPU runs a site, at most one store to the site is
	 * unsynchronised on that CPU. That one was made in one piece, or behind
	 * a breakpoint that is synchronised. So the CPU finds the old
	 * instruction, the new one or a breakpoint, and each of them whole (H8). */
	RULE_RUN,
	/* When a CPU runs a site, the last store to the site is synchronised on
	 * that CPU if it was made before the CPU came online (H19). */
	RULE_JOINED,
	/* When STORE_WHOLE is made, every CPU that is online is held. */
	RULE_HELD,
	/* When a CPU leaves a rendezvous, no store is unsynchronised on it (H8). */
	RULE_FREE,
	/* A CPU that is held, or that leads a rendezvous, waits for no CPU (H7). */
	RULE_WAIT,
	/* In a batch with LOG_BYPASS, LOG_CLEAR comes when no breakpoint is unsynchronised
	 * on a CPU that was online then, and before the first store of a new
	 * instruction's bytes (H37). */
	RULE_INSIDE,
	/* The entry is known, its CPU is online, a store is inside a batch, and a
	 * batch is not inside another one. */
	RULE_FORM,
	RULES,
};
extern const char *const patch_rule_words[RULES];

/* The last two stores of a live instruction, by entry number. */
struct patch_check_site {
	uint32_t offset; /* + 1. 0: free */
	uint32_t last, before;
	uint32_t kind; /* of the last */
};

struct patch_check {
	struct patch_check_site *sites; /* zeroed, a power of two of them */
	uint32_t slots;
	uint32_t n; /* entries so far. Entry numbers count from 1 */
	uint32_t batches, runs, syncs;
	uint32_t online, held; /* masks */
	bool in_batch;
	bool waits;	     /* LOG_CLEAR has yet to come */
	uint32_t last_store; /* of the batch */
	uint32_t synced[PATCH_CHECK_CPUS], joined[PATCH_CHECK_CPUS];
	uint32_t broken; /* bit 1 << rule */
	/* The first that was, at which entry, by which CPU. */
	enum patch_rule rule;
	uint32_t at;
	unsigned int cpu;
};

/* Take the next entry. */
void patch_check_entry(struct patch_check *c, const struct patch_log_entry *e);

#endif
