/* SPDX-License-Identifier: MIT */
/*
 * Proves of the site table: that it is in order and small, that boot accounted
 * for every site and left each with the live instruction off, and that every
 * site is found by its address and its function's name.
 */
#include <tracer/testing.h>

#include <kernel/image/symbols.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/sites/kept_off.h>
#include <tracer/sites/sites.h>
#include <kernel/test/again.h>

KTEST(sites_counts, "sites.counts")
{
	KEXPECT(t, site_count > 0);
	KEXPECT_EQ(t, site_boot.patched + site_boot.skipped + site_boot.failed,
		   site_count);
	KEXPECT_EQ(t, site_boot.failed, 0);
	KEXPECT_EQ(t, site_weight(live_calls.patchable), site_boot.patched);
	KEXPECT(t, site_bytes() <= 5ul * site_count);
}

KTEST(sites_order, "sites.order")
{
	unsigned int i;

	for (i = 0; i < site_count; i++) {
		KEXPECT_EQ(t, site_find(site_address(i)), i);
		KEXPECT(t, strcmp(site_function(i), "?"));
		KEXPECT(t, site_address(i) < (unsigned long)_etext);
		if (i)
			KEXPECT(t, site_address(i) > site_address(i - 1));
	}
	KEXPECT_EQ(t, site_find(site_address(0) + 1), -1);
	KEXPECT_EQ(t, site_find(0), -1);
	KEXPECT_EQ(t, site_lower_bound(~0ul), site_count);
}

/* Every site is off, as nothing is traced now. Memory is asked, not the books. */
KTEST(sites_off, "sites.off_after_boot")
{
	unsigned int i;

	trace_test_reset();
	KEXPECT_EQ(t, site_weight(live_calls.enabled), 0);
	for (i = 0; i < site_count; i++) {
		struct live live = live_of_site(site_address(i));

		if (site_test(live_calls.patchable, i))
			KEXPECT_EQ(t, arch_live_read(live),
				   arch_live_bytes(live, false));
	}
}

/* A function that is marked notrace has no site. */
KTEST(sites_notrace, "sites.notrace_has_none")
{
	KEXPECT(t, trace_test_site(victim_call) >= 0);
	KEXPECT_EQ(t, trace_test_site(victim_call_notrace), -1);
}

/* Is a site of the table in the function? */
static bool is_switchable(const struct symbol *f)
{
	unsigned int i = site_lower_bound(f->start);

	return i < site_count && site_address(i) < f->start + f->size;
}

/* No function that runs while text is patched can be switched. Those that have a site are off. */
KTEST(sites_kept, "sites.kept_cannot_be_switched")
{
	unsigned int roots = 0;
	struct symbol f;

	KEXPECT(t, kept_off_count);
	for (unsigned int node = 0; node < path_count; node++) {
		KASSERT(t, symbol_get(path_symbol[node], &f));
		KEXPECT(t, !is_switchable(&f));
		roots += path_from[node] == PATH_ROOT;
		KEXPECT(t,
			path_from[node] == PATH_ROOT || path_from[node] < node);
	}
	KEXPECT(t, roots && roots < path_count);
	for (unsigned int i = 0; i < kept_off_count; i++) {
		struct live l =
			live_of_site(site_entry_address(&kept_off_table[i]));

		KEXPECT_EQ(t, site_find(site_entry_address(&kept_off_table[i])),
			   -1);
		KEXPECT_EQ(t, arch_live_read(l), arch_live_bytes(l, false));
	}
}

/* unpatchable_functions has every function that available_filter_functions lacks, and why. */
KTEST(sites_unpatchable, "sites.unpatchable_says_why")
{
	size_t size = 65536;
	char *text = kmalloc(size), line[80];
	struct symbol f;

	KASSERT(t, text);
	KASSERT(t,
		trace_test_read("unpatchable_functions", text, size, size) > 0);
	for (unsigned int i = 0; symbol_get(i, &f); i++) {
		snprintf(line, sizeof(line), "\n%.70s", f.name);
		KEXPECT(t, !sites_all_known || is_switchable(&f) ||
				   strstr(text, line) ||
				   !strncmp(text, line + 1, strlen(line + 1)));
	}
	KEXPECT(t, strstr(text, "\npatch_write_back <- "));
	KEXPECT(t,
		!sites_all_known || strstr(text, "\nvictim_call_notrace: "
						 "compiled without a site\n"));
	kfree(text);
}
