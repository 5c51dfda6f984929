/* SPDX-License-Identifier: MIT */
/* The site table: look-ups, and the conversion of all sites at boot. */
#include <tracer/sites/sites.h>
#include <tracer/sites/kept_off.h>

#include <arch/arch_trace.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/lib/bits.h>
#include <kernel/param.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/mm/kmalloc.h>

#define REPORT_LINES 10

struct live_set live_calls = { .table = site_table };
struct live_set live_jumps = { .table = jump_table, .distance = jump_distance };
struct site_recorder site_recorder;
struct site_bits site_bits;
unsigned int site_words;
struct site_boot site_boot;

static const char *nop_wanted;

/* Is the word `w` one of the blank-separated words of `list`? */
static bool word_in(const char *list, const char *w)
{
	size_t n = strlen(w);
	const char *p;

	for (p = list; (p = strstr(p, w)); p++)
		if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' '))
			return n > 0 && !strchr(w, ' ');
	return false;
}

static int nop_set(const char *value)
{
	if (!word_in(arch_nop_names, value))
		return -EINVAL;
	nop_wanted = value;
	return 0;
}
KERNEL_PARAM(nop, "nop", arch_nop_names, nop_set);

static unsigned int lower_bound(const u32 *table, unsigned int count,
				unsigned long addr)
{
	unsigned int lo = 0, hi = count;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (site_entry_address(&table[mid]) < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

unsigned int site_lower_bound(unsigned long addr)
{
	return lower_bound(live_calls.table, site_count, addr);
}

/* Where addresses were found last, by some of their bits: C code looks for the same few functions
 * at each call. Any CPU writes it at any time. A stale place is noticed by its address. */
static u32 found_last[256];

static bool site_is_at(unsigned int i, unsigned long addr)
{
	return i < site_count && site_address(i) == addr;
}

int site_find(unsigned long addr)
{
	u32 *last = &found_last[addr / 16 % ARRAY_SIZE(found_last)];
	unsigned int i = READ_ONCE(*last);

	if (site_is_at(i, addr))
		return i;
	i = site_lower_bound(addr);
	if (!site_is_at(i, addr))
		return -1;
	WRITE_ONCE(*last, i);
	return i;
}

int jump_find(unsigned long addr)
{
	unsigned int i = lower_bound(jump_table, jump_count, addr);

	return i < jump_count && site_entry_address(&jump_table[i]) == addr ?
		       (int)i :
		       -1;
}

/* For ps: is pc anywhere in a site? Those that end at or below pc come before
 * the one that is looked for. */
static bool pc_on_site(unsigned long pc)
{
	unsigned int i = site_lower_bound(pc - arch_site_length + 1);

	return i < site_count && site_address(i) <= pc;
}

const char *site_function(unsigned int i)
{
	struct symbol s;

	return symbol_at(site_address(i), &s) ? s.name : "?";
}

unsigned int site_weight(const u32 *bits)
{
	unsigned int i, n = 0;

	for (i = 0; i < site_count; i++)
		n += site_test(bits, i);
	return n;
}

#define AT_BOOT 5 /* bitmaps of the sites that are there from boot on */

unsigned long site_bytes(void)
{
	u32 *const *map = (u32 *const *)&site_bits;
	unsigned int maps = 3; /* live_calls has three */

	for (unsigned int m = 0; m < NR_SITE_BITMAPS; m++)
		maps += !!map[m];
	return (site_count + maps * site_words) * sizeof(u32);
}

unsigned long jump_bytes(void)
{
	unsigned int words = (jump_count + 31) / 32;

	return jump_count * (sizeof(u32) + sizeof(s16) + sizeof(u8)) +
	       2 * words * sizeof(u32);
}

u32 *site_bitmap_alloc(void)
{
	return kmalloc_zeroed((site_capacity() + 31) / 32 * sizeof(u32));
}

static void bitmaps_alloc(void)
{
	unsigned int words = (site_capacity() + 31) / 32;
	unsigned int jump_words = (jump_count + 31) / 32;
	u32 *bits = kmalloc_zeroed(
		max((AT_BOOT * words + 2 * jump_words) * sizeof(u32), 1ul));

	if (!bits)
		panic("no memory for the state of %u sites", site_capacity());
	site_words = (site_count + 31) / 32;
	live_calls.patchable = bits;
	live_calls.enabled = bits + words;
	site_bits.filter[0] = bits + 2 * words;
	site_bits.left_out[0] = bits + 3 * words;
	live_calls.touched = bits + 4 * words;
	live_jumps.patchable = bits + AT_BOOT * words;
	live_jumps.enabled = live_jumps.patchable + jump_words;
}

notrace void site_sync(unsigned long site)
{
	arch_text_sync_site(site);
	arch_text_sync_site(site + arch_site_length - 1);
}

/*
 * Fixed part and "off" into every site. A site that the port does not know, or
 * whose trampoline is out of reach, is counted, never patched again, and goes on
 * calling the stub.
 */
static always_inline unsigned int convert_kind(const struct live_set *set,
					       unsigned int count, long delta,
					       unsigned int *out_of_reach,
					       bool jumps)
{
	const struct live_set live = *set;
	const u32 *entry = live.table;
	unsigned int patched = 0, skipped = 0;

	for (u32 *word = live.patchable; count; word++) {
		unsigned int n = min(count, 32u);
		u32 ready = 0;

		for (u32 bit = 1; n; n--, count--, entry++, bit <<= 1) {
			struct live l = live_of_kind(&live, entry, jumps);
			unsigned long site = site_entry_address(entry);
			int err = arch_site_prepare(
				site, jumps ? l.target : LIVE_CALL, delta);

			if (!err)
				ready |= bit;
			else if (err == -ERANGE)
				skipped++;
			if (arch_sync_each_site)
				site_sync(site);
		}
		*word = ready;
		patched += bit_count(ready);
	}
	*out_of_reach = skipped;
	return patched;
}

static notrace unsigned int convert_set(const struct live_set *set,
					unsigned int count, long delta,
					unsigned int *skipped)
{
	return LIVE_BY_KIND(set, convert_kind, set, count, delta, skipped);
}

/* These are in no table of sites that can be switched, so nothing turns them on again. */
static notrace void convert_kept_off(long delta)
{
	unsigned int patched = 0, skipped = 0;

	for (unsigned int i = 0; i < kept_off_count; i++) {
		unsigned long site = site_entry_address(&kept_off_table[i]);
		int err = arch_site_prepare(site, LIVE_CALL, delta);

		patched += !err;
		skipped += err == -ERANGE;
		if (arch_sync_each_site)
			site_sync(site);
	}
	site_boot.kept_off = patched;
	site_boot.kept_off_skipped = skipped;
}

/* notrace, as are its callees: the CPU would run text that it has just changed
 * (tools/patchpath). */
static noinline notrace void sites_convert_all(long delta)
{
	convert_kept_off(delta);
	site_boot.patched =
		convert_set(&live_calls, site_count, delta, &site_boot.skipped);
	site_boot.failed = site_count - site_boot.patched - site_boot.skipped;
	site_boot.jumps = convert_set(&live_jumps, jump_count, delta,
				      &site_boot.jumps_skipped);
	arch_text_sync();
}

/*
 * The boot CPU alone, interrupts off: no task can be inside a site, and a CPU
 * that starts later synchronises its instruction fetch first.
 */
static void sites_convert(void)
{
	u64 clock;

	site_boot.nop = arch_nop_select(nop_wanted);
	if (!site_boot.nop) {
		printk("param: nop=%s does not work on this CPU; accepted: "
		       "%s\n",
		       nop_wanted, arch_nop_names);
		site_boot.nop = arch_nop_select(NULL);
	}
	site_boot.live_at = arch_site_live(0);
	site_boot.length = arch_site_length;
	clock = arch_clock();
	bitmaps_alloc();
	sites_convert_all(arch_text_open());
	arch_text_close();
	site_boot.clock = arch_clock() - clock;
	task_on_site = pc_on_site;
}
INIT_HOOK(INIT_SITES, sites_convert);

static void report_left(unsigned long site, const char *format,
			const char *expected)
{
	const u8 *bytes = (const u8 *)site;
	char found[8 * 3 + 1];
	unsigned int b;

	for (b = 0; b < 8; b++)
		snprintf(found + 3 * b, sizeof(found) - 3 * b, " %02x",
			 bytes[b]);
	if (format)
		printk("sites: skipped %pS: found%s, a %s, but its target is "
		       "out of its reach\n",
		       (void *)site, found, format);
	else
		printk("sites: failed %pS: found%s, expected %s\n",
		       (void *)site, found, expected);
}

static void report_call(unsigned long site)
{
	static char name[40];
	const char *format = arch_site_recognise(site);

	snprintf(name, sizeof(name), "%s site", format ? format : "");
	report_left(site, format ? name : NULL, arch_site_expected);
}

static void report_site(unsigned int i)
{
	report_call(site_address(i));
}

static void report_jump(unsigned int i)
{
	struct live l = jump_live(i);

	report_left(l.at,
		    arch_site_prepare(l.at, l.target, 0) == -ERANGE ?
			    "jump label" :
			    NULL,
		    "a jump label as compiled");
}

static unsigned int report_set(const struct live_set *set, unsigned int count,
			       unsigned int lines, void (*report)(unsigned int))
{
	unsigned int said = 0;

	for (unsigned int i = 0; i < count && said < lines; i++)
		if (!site_test(set->patchable, i)) {
			report(i);
			said++;
		}
	return said;
}

/* Those that conversion has left as they were compiled. */
static unsigned int report_kept_off(unsigned int lines)
{
	unsigned int said = 0;

	for (unsigned int i = 0; i < kept_off_count && said < lines; i++) {
		struct live l =
			live_of_site(site_entry_address(&kept_off_table[i]));

		if (arch_live_read(l) == arch_live_bytes(l, false))
			continue;
		report_call(site_entry_address(&kept_off_table[i]));
		said++;
	}
	return said;
}

void sites_report(void)
{
	unsigned int calls = site_count + kept_off_count,
		     all = calls + jump_count;
	unsigned int patched =
		site_boot.patched + site_boot.kept_off + site_boot.jumps;
	unsigned int skipped = site_boot.skipped + site_boot.kept_off_skipped +
			       site_boot.jumps_skipped;
	unsigned int said;
	u64 ns = clock_delta_to_ns(site_boot.clock);

	printk("sites: %u calls + %u jumps = %u patched + %u skipped + %u "
	       "failed, nop=%s, %llu us, %llu ns/site\n",
	       calls, jump_count, patched, skipped, all - patched - skipped,
	       site_boot.nop, (unsigned long long)ns / NSEC_PER_USEC,
	       (unsigned long long)(all ? ns / all : 0));
	said = report_set(&live_calls, site_count, REPORT_LINES, report_site);
	said += report_kept_off(REPORT_LINES - said);
	said += report_set(&live_jumps, jump_count, REPORT_LINES - said,
			   report_jump);
	if (all - patched > said)
		printk("sites: and %u more left alone\n", all - patched - said);
}
