/*
 * The order log's entries, and the rules that they must keep. Plain C without the
 * kernel: also compiled for the host (tools/patchcheck).
 */
#ifndef TRACER_PATCH_CHECK_H
#define TRACER_PATCH_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#define PATCH_CHECK_CPUS 8

/* What a CPU did. The words of the text form are in patch_log_words[]. */
enum patch_log_what {
	LOG_NONE,   /* not an entry (yet) */
	LOG_ONLINE, /* a: mask of the CPUs online as the log begins */
	LOG_BATCH,  /* a: sites; b: index of the strategy */
	LOG_STEP,   /* a: enum patch_step; b: sites of the chunk */
	LOG_STORE,  /* a: offset of the live instruction in the text; b: the
			store, below */
	LOG_SYNC,   /* this CPU's fetch is about to be synchronised */
	LOG_DONE,   /* the batch is declared done */
	LOG_HELD,   /* this CPU is inside a rendezvous; a: 1 if it leads */
	LOG_FREE,   /* and out of it */
	LOG_WAIT,   /* it begins to wait for the CPUs of mask a */
	LOG_WAITED, /* and has done so */
	LOG_JOINED, /* it is online from now on */
	LOG_LEFT,   /* and no more */
	LOG_RUN,    /* the live instruction at offset a was executed as "on" */
	LOG_WHATS,
};

/* b of LOG_STORE: which bytes of a live instruction; 16 if the new state is on. */
enum patch_log_store {
	STORE_BREAK, /* first unit: a breakpoint; one store */
	STORE_TAIL,  /* what is behind the first unit */
	STORE_FIRST, /* first unit: the new one; one store */
	STORE_WORD,  /* all, in one store */
	STORE_WHOLE, /* all, in as many as it takes: every CPU must be held */
	STORE_AGAIN, /* the same bytes once more: changes nothing */
	STORES,
};
#define STORE_KIND(b) ((b)&15)
#define STORE_ON 16u

extern const char *const patch_log_words[LOG_WHATS];
extern const char *const patch_store_words[STORES];

struct patch_log_entry {
	uint64_t time; /* arch_clock(); on the host ns */
	uint32_t a, b;
	uint16_t cpu;
	uint16_t what; /* enum patch_log_what; stored last */
};

/*
 * The rules. Entries are in the order in which they were appended, which never
 * contradicts the order in which things happened: a store is logged after it was
 * made, a synchronisation before it begins. "Unsynchronised on c" is a store that
 * no LOG_SYNC of c follows.
 */
enum patch_rule {
	RULE_KEPT,
	/* LOG_DONE: no store of the batch is unsynchronised on a CPU that was
	 * online when it was made (H9). */
	RULE_DONE,
	/* A store to a site: no earlier one to it is unsynchronised on a CPU
	 * that was online then. So no CPU ever has to do with two (H8). */
	RULE_STORE,
	/* A run of a site: of the stores to it at most one is unsynchronised on
	 * that CPU, and that was made in one piece, or behind a breakpoint that
	 * is synchronised. The CPU then sees the old or the new instruction, or
	 * a breakpoint; all of them whole (H8). */
	RULE_RUN,
	/* A run, and so few stores are unsynchronised only if those are left out
	 * that were made before the CPU came online (H19). */
	RULE_JOINED,
	/* STORE_WHOLE: every CPU that is online is held. */
	RULE_HELD,
	/* LOG_FREE: no store is unsynchronised on the CPU that goes on (H8). */
	RULE_FREE,
	/* LOG_WAIT: not by a CPU that is held, or leads (H7). */
	RULE_WAIT,
	/* What cannot be: an entry of a CPU that is not online, a store outside
	 * a batch, a batch within a batch, an unknown entry. */
	RULE_FORM,
	RULES,
};
extern const char *const patch_rule_words[RULES];

/* What is known of a live instruction: its last two stores, by entry number. */
struct patch_check_site {
	uint32_t offset; /* + 1; 0: free */
	uint32_t last, before;
	uint32_t kind; /* of the last */
};

struct patch_check {
	struct patch_check_site *sites; /* zeroed; a power of two of them */
	uint32_t slots;
	uint32_t n; /* entries so far; entry numbers count from 1 */
	uint32_t batches, runs, syncs;
	uint32_t online, held; /* masks */
	bool in_batch;
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
