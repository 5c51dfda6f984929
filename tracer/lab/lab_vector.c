/* SPDX-License-Identifier: MIT */
/*
 * The breakpoint's vector in the lab (H14): the port's own site is switched on by
 * breakpoint, and the trap searches a vector of three with the tracer's own
 * search: once as a batch is, ascending, once as it was handed to Linux in 2025,
 * not sorted.
 */
#include <kernel/patch_path.h>
#include <tracer/lab/lab_internal.h>
#include <tracer/patch/patch.h>
#include <tracer/lab/patcher.h>
#include <tracer/patch/patch_live.h>
#include <tracer/sites/sites.h>
#include <tracer/patch/patch_break.h>

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
LAB_PATCHER_TRAP(vector_trap);

/* With two others of the table, the nearest below or above it. */
static int prepare_sorted(unsigned long at)
{
	unsigned int site = site_find(at), first = site < 2 ? site : site - 2;

	vector.count = steps.count = 0;
	patch_chunk_add(&steps, live_of_site(at), true);
	for (unsigned int i = first; i < first + 3; i++)
		patch_chunk_add(&vector, live_of_site(site_address(i)), true);
	return lab_own_switch(at, PATCH_STRATEGY_DEFAULT->name, false);
}

static int prepare_unsorted(unsigned long at)
{
	int err = prepare_sorted(at);
	struct patch_chunk_site least = vector.site[0];

	vector.site[0] = vector.site[2];
	vector.site[2] = least;
	return err;
}

/* All steps but the breakpoint's need no other CPU to stand still: no task is inside then. */
static void vector_rest(void)
{
	if (arch_break_length < arch_live_length)
		patch_chunk_step(&steps, PATCH_TAIL);
	patch_chunk_step(&steps, PATCH_FIRST);
	patch_chunk_settle(&steps, PATCH_FIRST);
}

static int vector_on(unsigned long site)
{
	(void)site;
	patch_chunk_step(&steps, PATCH_BREAK);
	vector_rest();
	return 0;
}

/* The site's books know nothing of these steps: for them it has been off all the time. */
static int vector_off(unsigned long site)
{
	(void)site;
	steps.site[0].entry &= ~1u;
	vector_rest();
	steps.site[0].entry |= 1;
	return 0;
}

static const struct lab_patcher vectors[] = {
	{ .name = "vector-unsorted",
	  .from = "H14",
	  .prepare = prepare_unsorted,
	  .on = vector_on,
	  .off = vector_off,
	  .trap = vector_trap,
	  .breaks = { LAB_FAULT } },
	{ .name = "vector",
	  .from = "H14",
	  .prepare = prepare_sorted,
	  .on = vector_on,
	  .off = vector_off,
	  .trap = vector_trap },
};

bool lab_case_vector(struct lab_case *c, unsigned int *i)
{
	if (*i >= ARRAY_SIZE(vectors)) {
		*i -= ARRAY_SIZE(vectors);
		return false;
	}
	lab_patcher_case(c, &vectors[*i], 0);
	c->because = c->breaks ? "the trap finds no entry; cure: vector" :
				 "the trap's search needs it ascending";
	c->strategy = "breakpoint";
	c->length = 0;
	return true;
}
