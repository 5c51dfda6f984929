/* SPDX-License-Identifier: MIT */
/*
 * The breakpoint's vector in the lab (H14): the port's own site is switched on by
 * breakpoint, and the trap searches a vector of three with the tracer's own
 * search: once as a batch is, ascending, once as it was handed to Linux in 2025,
 * not sorted.
 */
#include <kernel/patch_path.h>
#include <tracer/lab/lab_internal.h>
#include <tracer/patch/patch_live.h>
#include <tracer/sites/sites.h>
#include <tracer/patch/patch_break.h>

static const struct lab_form off_form = { "off", { 0 }, { 0, 0 } };
static const struct lab_form on_form = { "on", { 0 }, { 1, 0 } };

static unsigned int own;	  /* the site's number */
static struct patch_chunk vector; /* the trap searches it */
static struct patch_chunk steps;  /* the own site alone, for the writing */

static bool vector_trap(struct trap_frame *f)
{
	unsigned long pc = arch_frame_pc(f);
	struct live l;
	bool on;

	if (pc != patch_chunk_live(&steps, 0).at ||
	    !patch_chunk_find(&vector, vector.count, pc, &l, &on))
		return false;
	arch_break_resume(f, l, on);
	return true;
}
PATCH_INDIRECT(patch_trap, vector_trap);

/* With two others of the table, the nearest below or above it. */
static void fill_vector(unsigned int site, bool sorted)
{
	unsigned int first = site < 2 ? site : site - 2, i;
	struct patch_chunk_site least;

	own = site;
	vector.count = steps.count = 0;
	patch_chunk_add(&steps, live_of_site(site_address(site)), true);
	for (i = first; i < first + 3; i++)
		patch_chunk_add(&vector, live_of_site(site_address(i)), true);
	if (sorted)
		return;
	least = vector.site[0];
	vector.site[0] = vector.site[2];
	vector.site[2] = least;
}

static int vector_step(struct lab_case *c, unsigned int from)
{
	(void)c;
	if (from == 0) {
		patch_chunk_step(&steps, PATCH_BREAK);
		return 0;
	}
	if (arch_break_length < arch_live_length)
		patch_chunk_step(&steps, PATCH_TAIL);
	patch_chunk_step(&steps, PATCH_FIRST);
	patch_chunk_settle(&steps, PATCH_FIRST);
	return 0;
}

/* The site's books know nothing of the steps: first go back to the state in the books. */
static int vector_set(struct lab_case *c, unsigned int state)
{
	int err;

	steps.site[0].entry &= ~1u;
	steps.site[0].entry |= site_test(live_calls.enabled, own);
	vector_step(c, 1);
	steps.site[0].entry |= 1;
	err = lab_own_switch(c->victim, "stop", state == c->last);
	if (!err && state && state < c->last)
		vector_step(c, 0);
	return err;
}

static void begin_vector(struct lab_case *c)
{
	fill_vector(site_find(c->victim->site), !c->breaks);
	PATCH_HOOK_SET(patch_trap_hook, patch_trap, vector_trap);
}

static void end_vector(struct lab_case *c)
{
	(void)c;
	PATCH_HOOK_SET(patch_trap_hook, patch_trap, NULL);
}

bool lab_case_vector(struct lab_case *c, unsigned int *i)
{
	bool sorted = *i == 1;

	if (*i >= 2) {
		*i -= 2;
		return false;
	}
	*c = (struct lab_case){
		.name = sorted ? "vector" : "vector-unsorted",
		.from = "H14",
		.because = sorted ? "the trap's search needs it ascending" :
				    "the trap finds no entry; cure: vector",
		.strategy = "breakpoint",
		.old = "off",
		.new = "on",
		.victim = &lab_victim_own,
		.before = &off_form,
		.after = &on_form,
		.breaks = sorted ? 0 : LAB_FAULT,
		.last = 2,
		.live = true,
		.own = true,
		.begin = begin_vector,
		.end = end_vector,
		.set = vector_set,
		.step = vector_step,
		.lo = lab_victim_own.boundary[0],
		.hi = lab_victim_own.boundary[3] + 1,
		.span = 700,
		.ops = &lab_count_ops,
	};
	return true;
}
