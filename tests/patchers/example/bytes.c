/* SPDX-License-Identifier: MIT */
/* Patch code that is wrong on purpose: while others run it erases an instruction, and stores the
 * next one byte by byte. */
#include <arch/arch_trace.h>
#include <kernel/lib/string.h>
#include <tracer/lab/patcher.h>

/* No instruction on any machine begins like that. */
static const u8 erased[]
	__attribute__((aligned(8))) = { 0xff, 0xff, 0xff, 0xff,
					0xff, 0xff, 0xff, 0xff };

static int store_bytes(unsigned long site, bool on)
{
	struct live l = { arch_site_live(site), LIVE_CALL };
	u8 room[24] __attribute__((aligned(8))), *bytes = room + l.at % 8;

	memcpy(bytes, (void *)l.at, arch_live_length);
	arch_live_write(l, (long)((unsigned long)bytes - l.at),
			arch_live_bytes(l, on));
	patcher_write(l.at, erased, arch_live_length);
	for (unsigned int i = 0; i < arch_live_length; i++)
		patcher_write(l.at + i, &bytes[i], 1);
	patcher_sync_all();
	return 0;
}

static int example_on(unsigned long site)
{
	return store_bytes(site, true);
}

static int example_off(unsigned long site)
{
	return store_bytes(site, false);
}

/* nopl's boot has prepared this site already. */
LAB_PATCHER(bytes, "byte by byte", .from = "example", .prepare = example_off,
	    .on = example_on, .off = example_off);
