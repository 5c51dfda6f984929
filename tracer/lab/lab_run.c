/* SPDX-License-Identifier: MIT */
/*
 * The enumeration. For each state s that the text goes through, each boundary b of that state, and
 * each later state e: bring the text into s, hold a victim at b, take the steps up to e under it,
 * let it go, look at the outcome. Between any two steps a second CPU runs the site from start to
 * end.
 *
 * The right calls: a victim that was held before the site runs it as it is in e, and a victim
 * behind the site has run it as it was in s. Inside, and wherever s or e is a state in between, it
 * may be as in the old form or as in the new one, never anything else.
 */
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <tracer/lab/lab_internal.h>
#include <tracer/patch/patch.h>

#define SWEEPS_MORE 8

/* The case that is being enumerated: one at a time. */
static struct lab_case *running;
static struct lab_task *held_task, *other_task; /* the tasks of the two CPUs */
static struct lab_map seen_map;

/* The boundaries of its present state. */
static struct {
	unsigned int count;
	unsigned long at[LAB_BOUNDARIES];
} boundaries;

static void mark_incomplete(struct lab_case *c, const char *why,
			    unsigned long at)
{
	if (c->incomplete)
		return;
	c->incomplete = why;
	c->incomplete_at = at;
}

/* ---- outcomes ---- */

static bool calls_are(const u32 *calls, const struct lab_form *form)
{
	return calls[0] == form->calls[0] && calls[1] == form->calls[1];
}

enum { AS_OLD = 1, AS_NEW = 2, AS_WINDOW = 4 };

static bool calls_allowed(const struct lab_case *c, const u32 *calls,
			  unsigned int as)
{
	return (as & AS_OLD && calls_are(calls, c->before)) ||
	       (as & AS_NEW && calls_are(calls, c->after)) ||
	       (as & AS_WINDOW && c->window && calls_are(calls, c->window));
}

/* as: which forms it may have been as in. */
static u32 damage_of(const struct lab_case *c, const struct lab_task *l,
		     enum lab_end end, unsigned int as)
{
	u32 damage = 0;

	if (end == LAB_DIED)
		return LAB_FAULT | l->fault_damage;
	if (end == LAB_LOST)
		return LAB_HUNG | l->fault_damage;
	damage = l->damage;
	if (!calls_allowed(c, l->calls, as))
		damage |= LAB_CALLS;
	return damage;
}

static struct lab_finding *find_like(struct lab_case *c,
				     const struct lab_finding *like)
{
	for (unsigned int i = 0; i < c->nr_findings; i++) {
		struct lab_finding *f = &c->finding[i];

		if (f->damage == like->damage && f->what == like->what &&
		    f->at == like->at && f->state == like->state &&
		    f->between == like->between)
			return f;
	}
	if (c->nr_findings == LAB_FINDINGS)
		return NULL;
	c->finding[c->nr_findings] = *like;
	return &c->finding[c->nr_findings++];
}

static void add_held_place(struct lab_finding *f, unsigned long pc)
{
	for (unsigned int i = 0; i < f->nr_held; i++)
		if (f->held[i] == pc)
			return;
	if (f->nr_held < ARRAY_SIZE(f->held))
		f->held[f->nr_held++] = pc;
}

/* pc: where it was held. 0: it was not. */
static void record_finding(struct lab_case *c, const struct lab_task *l,
			   enum lab_end end, u32 damage, unsigned int state,
			   unsigned long pc)
{
	struct lab_finding f = { .damage = damage,
				 .state = state,
				 .between = !pc };
	struct lab_finding *mine;

	c->runs++;
	if (!damage)
		return;
	c->seen |= damage;
	if (end == LAB_DIED) {
		f.what = l->fault.what;
		f.at = l->fault.pc;
	}
	mine = find_like(c, &f);
	if (mine && pc)
		add_held_place(mine, pc);
}

/* Run the site on the other CPU, now, between two writes. True: all was well. */
static bool run_between(struct lab_case *c, unsigned int state)
{
	enum lab_end end;
	u32 kept[2], damage;

	if (!other_task)
		return true;
	memcpy(kept, lab_calls, sizeof(kept));
	other_task->scheme = c->scheme;
	end = lab_once(other_task, c->victim);
	damage = damage_of(c, other_task, end, AS_OLD | AS_NEW | AS_WINDOW);
	record_finding(c, other_task, end, damage, state, 0);
	memcpy(lab_calls, kept, sizeof(kept));
	return !damage;
}

/* From within a strategy. PATCH_WORD and the last sync leave nothing in between. */
static void run_in_batch(enum patch_step step, bool synced)
{
	(void)synced;
	run_between(running, 1 + step);
}

static int make_step(struct lab_case *c, unsigned int from)
{
	int err;

	if (c->step_is_batch)
		patch_step_hook = run_in_batch;
	err = c->step(c, from);
	patch_step_hook = NULL;
	return err;
}

/* ---- which boundaries there are ---- */

static bool boundary_is_listed(unsigned long pc)
{
	for (unsigned int i = 0; i < boundaries.count; i++)
		if (boundaries.at[i] == pc)
			return true;
	return false;
}

static void list_add(unsigned long pc)
{
	if (boundaries.count < LAB_BOUNDARIES)
		boundaries.at[boundaries.count++] = pc;
}

/* Two before, those of the form that control stands on, two behind. */
static void list_declared(const struct lab_case *c, const struct lab_form *form)
{
	unsigned long at = c->victim->site;
	int i;

	boundaries.count = 0;
	list_add(c->victim->boundary[0]);
	list_add(c->victim->boundary[1]);
	for (i = 0; i < LAB_INSNS && form->insn[i]; i++) {
		int n = form->insn[i];

		if (n > 1 && fault_happens(&fault_lab_form))
			list_add(at + 1);
		if (n > 0)
			list_add(at);
		at += n < 0 ? -n : n;
	}
	list_add(c->victim->boundary[2]);
	list_add(c->victim->boundary[3]);
}

/*
 * An address that one trial alone has met is no boundary of this state: the trampoline went a way
 * that it seldom goes, as when the clock's low word ran over.
 */
static void list_seen(void)
{
	boundaries.count = 0;
	for (unsigned long pc = seen_map.lo; pc < seen_map.hi; pc++)
		if (seen_map.times[pc - seen_map.lo] > 1)
			list_add(pc);
}

/* An interrupt came where the form has no boundary: its declaration is false. */
static void check_unlisted(struct lab_case *c)
{
	for (unsigned long pc = seen_map.lo; pc < seen_map.hi; pc++)
		if (seen_map.delay[pc - seen_map.lo] && !boundary_is_listed(pc))
			mark_incomplete(c,
					"interrupted where no boundary is "
					"declared",
					pc);
}

static bool is_missing(void)
{
	for (unsigned int i = 0; i < boundaries.count; i++)
		if (!seen_map.delay[boundaries.at[i] - seen_map.lo])
			return true;
	return false;
}

/* Where a tick of the clock and an instruction are no multiples of each other,
 * one sweep may step over a boundary that the next one meets. */
static void sweep_missing(struct lab_case *c)
{
	for (int i = 0; i < SWEEPS_MORE && is_missing(); i++)
		if (lab_sweep(held_task, c->victim, &seen_map, c->span) !=
		    LAB_DONE)
			return;
}

/* As above, where the form declares no boundaries: a sweep from a wrong delay on meets none. */
static void list_met(struct lab_case *c)
{
	list_seen();
	for (int i = 0; i < SWEEPS_MORE && !boundaries.count; i++) {
		lab_sweep(held_task, c->victim, &seen_map, c->span);
		list_seen();
	}
}

static void check_missing(struct lab_case *c)
{
	for (unsigned int i = 0; i < boundaries.count; i++)
		if (!seen_map.delay[boundaries.at[i] - seen_map.lo])
			mark_incomplete(c, "never interrupted at",
					boundaries.at[i]);
}

/* False: in this state the victim does not even come to its end. */
static bool sweep_boundaries(struct lab_case *c)
{
	memset(&seen_map, 0, sizeof(seen_map));
	seen_map.lo = c->lo;
	seen_map.hi = c->hi;
	held_task->scheme = c->scheme;
	return lab_sweep(held_task, c->victim, &seen_map, c->span) == LAB_DONE;
}

/* ---- one task held ---- */

static void release_held(struct lab_case *c, unsigned int s, unsigned int e,
			 unsigned long pc)
{
	bool before = pc <= c->victim->site && pc >= c->victim->boundary[0];
	bool behind =
		pc >= c->victim->boundary[2] && pc <= c->victim->boundary[3];
	unsigned int as = AS_OLD | AS_NEW | AS_WINDOW;
	enum lab_end end;

	if (before && e == c->last)
		as = AS_NEW;
	else if (behind && s == 0)
		as = AS_OLD;
	else if (s == 0 && e == c->last)
		as = AS_OLD | AS_NEW;
	if (c->scheme && c->scheme->trap_return)
		c->scheme->trap_return(held_task->task->frame, c->victim->site);
	end = lab_finish(held_task);
	record_finding(c, held_task, end, damage_of(c, held_task, end, as), e,
		       pc);
}

/* Hold at pc in state s, go to state e, let go. */
static bool hold_one(struct lab_case *c, unsigned int s, unsigned int e,
		     unsigned long pc)
{
	bool wrong =
		pc == boundaries.at[0] && fault_happens(&fault_lab_boundary);

	if (c->set(c, s) || wrong || !lab_hold(held_task, pc))
		return false;
	if (c->held_at)
		c->held_at(pc);
	for (unsigned int k = s; k < e; k++)
		if (make_step(c, k))
			mark_incomplete(c, "a step was refused", pc);
	release_held(c, s, e, pc);
	return true;
}

static void hold_all(struct lab_case *c, unsigned int s)
{
	for (unsigned int i = 0; i < boundaries.count; i++) {
		bool all = true;

		for (unsigned int e = s + 1; e <= c->last; e++)
			all &= hold_one(c, s, e, boundaries.at[i]);
		if (!all)
			mark_incomplete(c, "could not be held at",
					boundaries.at[i]);
		c->held += all;
		c->boundaries++;
	}
}

/* ---- one state after the other ---- */

/*
 * At rest in its first or last form a scheme does as that form says, and has a
 * boundary exactly where it says. Only a scheme that is claimed to be unsafe may
 * do harm at rest: then nothing more is to be shown. True: go on.
 */
static bool check_form(struct lab_case *c, unsigned int state,
		       const struct lab_form *form)
{
	enum lab_end end;
	u32 damage;

	if (c->set(c, state))
		mark_incomplete(c, "the text could not be written", 0);
	memcpy(c->bytes[state != 0], (void *)c->victim->site, LAB_SITE_MAX);
	held_task->scheme = c->scheme;
	end = lab_once(held_task, c->victim);
	damage = damage_of(c, held_task, end, state ? AS_NEW : AS_OLD);
	if (damage && !(damage & c->breaks))
		c->wrong = form->name;
	else
		record_finding(c, held_task, end, damage, state, 0);
	if (end != LAB_DONE || c->wrong)
		return false;
	if (!sweep_boundaries(c))
		mark_incomplete(c, "the sweep did not end in form", 0);
	if (!form->insn[0]) {
		list_met(c);
		return true;
	}
	list_declared(c, form);
	sweep_missing(c);
	check_unlisted(c);
	check_missing(c);
	return true;
}

/* Step by step, the other CPU running in between, which states it survives. */
static u32 walk_steps(struct lab_case *c)
{
	u32 good = 1;

	if (c->set(c, 0))
		return 0;
	for (unsigned int s = 0; s + 1 < c->last; s++) {
		if (make_step(c, s))
			mark_incomplete(c, "a step was refused", 0);
		if (run_between(c, s + 1))
			good |= 2u << s;
	}
	return good;
}

/* A state in between: the sweep finds the places where control stands in it. */
static void enumerate_between(struct lab_case *c, unsigned int s)
{
	if (c->set(c, s) || !sweep_boundaries(c))
		return;
	list_seen();
	hold_all(c, s);
}

void lab_enumerate(struct lab_case *c, struct lab_task *l, struct lab_task *o)
{
	u32 good;

	running = c;
	held_task = l;
	other_task = o;
	if (!check_form(c, c->last, c->after) || !check_form(c, 0, c->before))
		return;
	if (c->live && !other_task)
		mark_incomplete(c, "needs a second CPU", 0);
	hold_all(c, 0);
	good = walk_steps(c);
	for (unsigned int s = 1; s < c->last; s++)
		if (good & 1u << s)
			enumerate_between(c, s);
	c->set(c, 0);
}
