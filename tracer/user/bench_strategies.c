/* SPDX-License-Identifier: MIT */
/* The part of the shell's `bench` that patches all sites, by each strategy. */
#include <tracer/user/bench_strategies.h>

#include <kernel/lib/format.h>
#include <kernel/lib/string.h>
#include <tracer/patch/patch.h>
#include <tracer/sites/sites.h>
#include <tracer/user/bench.h>
#include <tracer/user/probe.h>

#define TURNS 8

static u64 measure_batch(bool on)
{
	struct patch_batch b;
	u64 start = arch_instructions();

	patch_apply(&b, 0, site_words, on ? patch_want_on : patch_want_off,
		    NULL);
	return arch_instructions() - start;
}

/* Batches of every site: the least of some, which the tick did not interrupt. */
static void cost_of_batches(u64 *enable, u64 *disable)
{
	unsigned int i, sites = max(site_boot.patched, 1u);

	*enable = *disable = ~0ull;
	for (i = 0; i < TURNS; i++) {
		*enable = min(*enable, measure_batch(true));
		*disable = min(*disable, measure_batch(false));
	}
	*enable = *enable * 10 / sites;
	*disable = *disable * 10 / sites;
}

/*
 * Linux, for comparison, instructions a site to enable everything: 4,473 to 5,312
 * with breakpoints on x86-64, 544 on RISC-V, 669 on MIPS. The stall is the
 * longest that a task at the highest priority was kept from running, waking it
 * included.
 */
static void measure_strategy(struct sink *out, const char *name,
			     unsigned int limit)
{
	char what[40];
	u64 enable, disable, stall;

	cost_of_batches(&enable, &disable);
	snprintf(what, sizeof(what), "%s_enable_all", name);
	bench_figure(out, what, enable, "instructions/site", limit);
	snprintf(what, sizeof(what), "%s_disable_all", name);
	bench_figure(out, what, disable, "instructions/site", limit);
	snprintf(what, sizeof(what), "%s_longest_stall", name);
	if (!probe_measure(site_count, &stall))
		bench_figure(out, what, stall * 10, "ns", 0);
}

/* Every strategy that this CPU does not refuse. */
int bench_strategies(struct sink *out)
{
	const char *before = patch_strategy_name(), *why;
	const struct patch_strategy *s;

	for_each_registered (s, patch_strategies) {
		if (patch_strategy_set(s->name, &why))
			continue;
		measure_strategy(out, s->name,
				 !strcmp(s->name, "bypass")	? 140 :
				 !strcmp(s->name, "breakpoint") ? 118 :
								  50);
	}
	patch_strategy_set(before, &why);
	return 0;
}
