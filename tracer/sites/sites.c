/* The site table: look-ups, and the conversion of all sites at boot. */
#include <tracer/sites/sites.h>

#include <arch/arch_trace.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/param.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/mm/kmalloc.h>

#define REPORT_LINES 10

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

unsigned int site_lower_bound(unsigned long addr)
{
	unsigned int lo = 0, hi = site_count;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (site_address(mid) < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int site_find(unsigned long addr)
{
	unsigned int i = site_lower_bound(addr);

	return i < site_count && site_address(i) == addr ? (int)i : -1;
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

#define AT_BOOT 4 /* bitmaps that are there from boot on */

unsigned long site_bytes(void)
{
	u32 *const *map = (u32 *const *)&site_bits;
	unsigned int maps = 0;

	for (unsigned int m = 0; m < NR_SITE_BITMAPS; m++)
		maps += !!map[m];
	return (site_count + maps * site_words) * sizeof(u32);
}

u32 *site_bitmap_alloc(void)
{
	return kzalloc((site_capacity + 31) / 32 * sizeof(u32));
}

static void bitmaps_alloc(void)
{
	unsigned int words = (site_capacity + 31) / 32;
	u32 *bits = kzalloc(max(AT_BOOT * words * sizeof(u32), 1ul));

	if (!bits)
		panic("no memory for the state of %u sites", site_capacity);
	site_words = (site_count + 31) / 32;
	site_bits.patchable = bits;
	site_bits.enabled = bits + words;
	site_bits.filter = bits + 2 * words;
	site_bits.excluded = bits + 3 * words;
}

void site_sync(unsigned long site)
{
	arch_text_sync_site(site);
	arch_text_sync_site(site + arch_site_length - 1);
}

/*
 * Fixed part and "off" into every site. A site that the port does not know, or
 * whose trampoline is out of reach, is counted, never patched again, and goes on
 * calling the stub.
 */
static void convert_all(long delta)
{
	u32 *patchable = site_bits.patchable;
	unsigned int i, failed = 0, skipped = 0;

	for (i = 0; i < site_count; i++) {
		unsigned long site = site_address(i);
		int err = arch_site_prepare(site, delta);

		if (!err)
			patchable[i / 32] |= 1u << (i % 32);
		else if (err == -ERANGE)
			skipped++;
		else
			failed++;
		if (arch_sync_each_site)
			site_sync(site);
	}
	site_boot.failed = failed;
	site_boot.skipped = skipped;
	site_boot.patched = site_count - failed - skipped;
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
		printk("nop=%s does not work on this CPU; accepted: %s\n",
		       nop_wanted, arch_nop_names);
		site_boot.nop = arch_nop_select(NULL);
	}
	clock = arch_clock();
	bitmaps_alloc();
	convert_all(arch_text_open());
	arch_text_sync();
	arch_text_close();
	site_boot.clock = arch_clock() - clock;
	task_on_site = pc_on_site;
}
INIT_HOOK(INIT_SITES, sites_convert);

static void report_left(unsigned int i)
{
	unsigned long site = site_address(i);
	const char *format = arch_site_recognise(site);
	const u8 *bytes = (const u8 *)site;
	char found[8 * 3 + 1];
	unsigned int b;

	for (b = 0; b < 8; b++)
		snprintf(found + 3 * b, sizeof(found) - 3 * b, " %02x",
			 bytes[b]);
	if (format)
		printk("sites: skipped %pS: found%s, a %s site, but the tracer "
		       "is out of its reach\n",
		       (void *)site, found, format);
	else
		printk("sites: failed %pS: found%s, expected %s\n",
		       (void *)site, found, arch_site_expected);
}

void sites_report(void)
{
	unsigned int left = site_count - site_boot.patched, said = 0, i;
	u64 ns = clock_delta_to_ns(site_boot.clock);

	printk("sites: %u = %u patched + %u skipped + %u failed, nop=%s, "
	       "%llu us, %llu ns/site\n",
	       site_count, site_boot.patched, site_boot.skipped,
	       site_boot.failed, site_boot.nop,
	       (unsigned long long)ns / NSEC_PER_USEC,
	       (unsigned long long)(site_count ? ns / site_count : 0));
	for (i = 0; i < site_count && said < min(left, REPORT_LINES + 0u); i++)
		if (!site_test(site_bits.patchable, i)) {
			report_left(i);
			said++;
		}
	if (left > said)
		printk("sites: and %u more left alone\n", left - said);
}
