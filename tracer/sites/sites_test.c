/*
 * Proves of the site table: that it is in order and small, that boot accounted
 * for every site and left each with the live instruction off, and that every
 * site is found by its address and its function's name.
 */
#include <tracer/testing.h>

#include <kernel/image/symbols.h>
#include <tracer/sites/sites.h>

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

/* Every site is off, as nothing is traced now; memory is asked, not the books. */
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

/* The tracer's own code, and what it marks notrace, is not in the table. */
KTEST(sites_notrace, "sites.notrace_has_none")
{
	unsigned int i;

	for (i = 0; i < site_count; i++) {
		const char *name = site_function(i);

		KEXPECT(t, strncmp(name, "trace_", 6));
		KEXPECT(t, strncmp(name, "ring_", 5));
		KEXPECT(t, strcmp(name, "victim_call_notrace"));
	}
	KEXPECT(t, trace_test_site(victim_call) >= 0);
	KEXPECT_EQ(t, trace_test_site(victim_call_notrace), -1);
}
