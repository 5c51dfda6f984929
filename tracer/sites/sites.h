/* SPDX-License-Identifier: MIT */
/*
 * The site table and the facts about each site: 4 bytes a site for the table, made by tools/mksites
 * after the link, and one bit in each of four bitmaps. Jump labels have tables of their own, 7
 * bytes a label, and two bitmaps.
 */
#ifndef TRACER_SITES_H
#define TRACER_SITES_H

#include <arch/arch_trace.h>
#include <kernel/image/symbols.h>
#include <kernel/types.h>
#include <tracer/base/instance.h>

/*
 * From build/<arch>/tables.S: the sites' offsets from _text, ascending, which live_calls.table
 * points to. With RECORD=runtime no site is known at first. Then record.c provides another
 * table, which grows under trace_mutex, so a site's index is valid only as long as the caller
 * holds trace_mutex.
 */
extern u32 site_count; /* in read-only memory if all are known */
extern const u32 site_table[];
extern const bool sites_all_known;

/* How many sites there can be. */
static inline u32 site_capacity(void)
{
	return sites_all_known ? site_count : symbol_count;
}

/*
 * Of RECORD=runtime. Both are NULL if all sites are known. start(): once, at boot. learn(): make
 * sites now of the calls recorded so far, instead of when the recorder next wakes. A task calls
 * them that does not hold trace_mutex.
 */
extern struct site_recorder {
	void (*start)(void);
	void (*learn)(void);
} site_recorder;

/*
 * The jump labels' offsets, likewise ascending. Of each, how far its jump goes, and the
 * number of its key among all keys (keys.h).
 */
extern const u32 jump_count;
extern const u32 jump_table[];
extern const s16 jump_distance[];
extern const u8 jump_key_number[];

/*
 * The live instructions of one kind, which a batch may switch together. Of bitmaps, bit
 * i % 32 of word i / 32 belongs to entry i. `patchable` stands from boot on. `enabled`
 * changes under trace_mutex (tracer/base/instance.h).
 */
struct live_set {
	const u32 *table;
	const s16 *distance; /* of the jumps. NULL: functions' sites */
	u32 *patchable;	     /* prepared at boot: may be switched */
	u32 *enabled;	     /* the live instruction is "on" in memory */
	u32 *touched;	     /* it has ever been. NULL: that is not kept */
};
extern struct live_set live_calls, live_jumps;

#ifndef NO_LAYOUT /* arch_trace.h */
/* The live instruction of an entry of the set's table. `jumps`: are they jump labels? */
static always_inline struct live live_of_kind(const struct live_set *set,
					      const u32 *entry, bool jumps)
{
	unsigned long at = (unsigned long)_text + *entry;

	if (!jumps)
		return live_of_site(at);
	return (struct live){ at, at + set->distance[entry - set->table] };
}

static inline struct live live_of_entry(const struct live_set *set,
					const u32 *entry)
{
	return live_of_kind(set, entry, set->distance);
}

/* Jump label i. */
static inline struct live jump_live(unsigned int i)
{
	return live_of_entry(&live_jumps, &jump_table[i]);
}
#endif

/*
 * Call an always_inline function whose last argument says whether the set has jump
 * labels. So there is a loop for each kind, and none asks for every entry.
 */
#define LIVE_BY_KIND(set, fn, ...)                                             \
	((set)->distance ? fn(__VA_ARGS__, true) : fn(__VA_ARGS__, false))

/* The sites that users choose: bitmaps likewise, which change under trace_mutex. */
struct site_bits {
	/* Of each instance, NULL where there is none. */
	u32 *filter[INSTANCES]; /* set_ftrace_filter. Meaningless when it is empty */
	u32 *left_out[INSTANCES]; /* set_ftrace_notrace */
	/* NULL until they are first needed: */
	u32 *graph; /* set_graph_function. Meaningless when it is empty */
	u32 *graph_hidden; /* set_graph_notrace */
	u32 *stack;	   /* stack_trace_filter */
};
#define NR_SITE_BITMAPS (sizeof(struct site_bits) / sizeof(u32 *))
extern struct site_bits site_bits;
extern unsigned int site_words; /* in each bitmap */

/* A bitmap with room for every site there can be, all 0. NULL: out of memory. */
u32 *site_bitmap_alloc(void);

/* The address that a word of the table stands for. */
static inline unsigned long site_entry_address(const u32 *entry)
{
	return (unsigned long)_text + *entry;
}

static inline unsigned long site_address(unsigned int i)
{
	return site_entry_address(&live_calls.table[i]);
}

static inline bool site_test(const u32 *bits, unsigned int i)
{
	return bits[i / 32] >> (i % 32) & 1;
}

/* First site at or above an address, site_count when there is none. */
unsigned int site_lower_bound(unsigned long addr);

/* The site at exactly `addr`, or -1. */
int site_find(unsigned long addr);

/* The jump label at exactly `addr`, or -1. */
int jump_find(unsigned long addr);

/* The name of the function that has site i, "?" if no symbol covers it. */
const char *site_function(unsigned int i);

/* How many bits of a bitmap are set. */
unsigned int site_weight(const u32 *bits);

/* The results of boot conversion. patched + skipped + failed = site_count. */
struct site_boot {
	unsigned int patched, skipped, failed;
	unsigned int kept_off,
		kept_off_skipped; /* likewise, of kept_off_table (kept_off.h) */
	unsigned int
		jumps; /* jump labels patched. The others were skipped or failed */
	unsigned int jumps_skipped;
	const char *nop; /* chosen by arch_nop_select() */
	u64 clock; /* arch_clock() ticks that it took, choosing the NOP, which
		      does not depend on the sites, is not in it */
	/* Bytes from a site to its live instruction, and of the site: for debuggers. */
	unsigned int live_at, length;
};
extern struct site_boot site_boot;

/* arch_text_sync_site() for all of a site: it may lie across two cache lines. */
void site_sync(unsigned long site);

/* Bytes of tables and bitmaps together: of the sites, and of the jump labels. */
unsigned long site_bytes(void);
unsigned long jump_bytes(void);

/*
 * Print the boot line, and a line for each site that was left alone. Once the
 * clock's rate is known. Any task.
 */
void sites_report(void);

#endif
