/* SPDX-License-Identifier: MIT */
/* Patch code that cannot be judged, each for another reason: tests/test_patchers.py. */
#include <arch/arch.h>
#include <arch/arch_trace.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <tracer/lab/patcher.h>

/* The site's present bytes, stored again. */
static int store_same(unsigned long at)
{
	u8 bytes[4];

	memcpy(bytes, (void *)at, sizeof(bytes));
	return patcher_write(at, bytes, sizeof(bytes));
}

static int same_prepare(unsigned long site)
{
	return store_same(site);
}

static int same_switch(unsigned long site)
{
	int err = store_same(site);

	patcher_sync_all();
	return err;
}

static int outside_on(unsigned long site)
{
	return store_same(site - 4);
}

static int endless_on(unsigned long site)
{
	store_same(site);
	for (bool on = true; on;)
		asm volatile("" : "+r"(on));
	return 0;
}

static int stores_with_interrupts_on(void *site)
{
	arch_irq_enable();
	return same_switch((unsigned long)site);
}

static int interrupts_on(unsigned long site)
{
	return patcher_hold_all(stores_with_interrupts_on, (void *)site);
}

static int nothing_on(unsigned long site)
{
	(void)site;
	return 0;
}

static int refusing_on(unsigned long site)
{
	(void)site;
	return -EINVAL;
}

static int wild_on(unsigned long site)
{
	*(volatile char *)(site & 1) = 1;
	return 0;
}

static int masked_on(unsigned long site)
{
	irq_state_t state = arch_irq_save();
	int err = same_switch(site);

	arch_irq_restore(state);
	return err;
}

#define BAD(ident, text, ...)                                                  \
	LAB_PATCHER(ident, text, .prepare = same_prepare, .off = same_switch,  \
		    __VA_ARGS__)

BAD(outside, "outside", .on = outside_on);
BAD(endless, "endless", .on = endless_on);
BAD(interrupts, "interrupts", .on = interrupts_on);
BAD(unsynced, "unsynced", .on = same_prepare);
BAD(nothing, "nothing", .on = nothing_on);
BAD(refusing, "refusing", .on = refusing_on);
BAD(wild, "wild", .on = wild_on);
BAD(masked, "masked", .on = masked_on);
BAD(lacking, "lacking");
/* No call is there when it is on. */
BAD(useless, "useless", .on = same_switch);
