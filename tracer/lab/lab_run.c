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
#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <tracer/lab/lab_internal.h>

#define SWEEPS_MORE 8

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
static bool run_between(struct lab_run *r, unsigned int state)
{
	struct lab_case *c = &r->test;
	struct lab_task *other = &r->other;
	enum lab_end end;
	u32 kept[2], damage;

	if (!r->second)
		return true;
	memcpy(kept, lab_calls, sizeof(kept));
	other->scheme = c->scheme;
	end = lab_once(other, c->victim);
	damage = damage_of(c, other, end, AS_OLD | AS_NEW | AS_WINDOW);
	record_finding(c, other, end, damage, state, 0);
	memcpy(lab_calls, kept, sizeof(kept));
	return !damage;
}

/* ---- which boundaries there are ---- */

static bool boundary_is_listed(const struct lab_run *r, unsigned long pc)
{
	for (unsigned int i = 0; i < r->nr_boundaries; i++)
		if (r->boundary[i] == pc)
			return true;
	return false;
}

static void list_add(struct lab_run *r, unsigned long pc)
{
	if (r->nr_boundaries < LAB_BOUNDARIES)
		r->boundary[r->nr_boundaries++] = pc;
}

/* Two before, those of the form that control stands on, two behind. */
static void list_declared(struct lab_run *r, const struct lab_form *form)
{
	const struct lab_victim *v = r->test.victim;
	unsigned long at = v->site;
	int i;

	r->nr_boundaries = 0;
	list_add(r, v->boundary[0]);
	list_add(r, v->boundary[1]);
	for (i = 0; i < LAB_INSNS && form->insn[i]; i++) {
		int n = form->insn[i];

		if (n > 1 && fault_happens(&fault_lab_form))
			list_add(r, at + 1);
		if (n > 0)
			list_add(r, at);
		at += n < 0 ? -n : n;
	}
	list_add(r, v->boundary[2]);
	list_add(r, v->boundary[3]);
}

/*
 * An address that one trial alone has met is no boundary of this state: the trampoline went a way
 * that it seldom goes, as when the clock's low word ran over.
 */
static void list_seen(struct lab_run *r)
{
	r->nr_boundaries = 0;
	for (unsigned long pc = r->map.lo; pc < r->map.hi; pc++)
		if (r->map.times[pc - r->map.lo] > 1)
			list_add(r, pc);
	for (unsigned int i = 0; r->map.beside && i < LAB_BYPASS_SIZE; i++)
		if (r->map.times[LAB_REGION - LAB_BYPASS_SIZE + i] > 1)
			list_add(r, r->map.beside + i);
}

/* An interrupt came where the form has no boundary: its declaration is false. */
static void check_unlisted(struct lab_run *r)
{
	for (unsigned long pc = r->map.lo; pc < r->map.hi; pc++)
		if (r->map.delay[pc - r->map.lo] && !boundary_is_listed(r, pc))
			mark_incomplete(&r->test,
					"interrupted where no boundary is "
					"declared",
					pc);
}

static bool is_missing(const struct lab_run *r)
{
	for (unsigned int i = 0; i < r->nr_boundaries; i++)
		if (!r->map.delay[r->boundary[i] - r->map.lo])
			return true;
	return false;
}

static enum lab_end sweep_state(struct lab_run *r)
{
	return lab_sweep(&r->held, r->test.victim, &r->map, r->test.span);
}

/* Where a tick of the clock and an instruction are no multiples of each other,
 * one sweep may step over a boundary that the next one meets. */
static void sweep_missing(struct lab_run *r)
{
	for (int i = 0; i < SWEEPS_MORE && is_missing(r); i++)
		if (sweep_state(r) != LAB_DONE)
			return;
}

/* As above, where the form declares no boundaries: a sweep from a wrong delay on meets none. */
static void list_met(struct lab_run *r)
{
	list_seen(r);
	for (int i = 0; i < SWEEPS_MORE && !r->nr_boundaries; i++) {
		sweep_state(r);
		list_seen(r);
	}
}

static void check_missing(struct lab_run *r)
{
	for (unsigned int i = 0; i < r->nr_boundaries; i++)
		if (!r->map.delay[r->boundary[i] - r->map.lo])
			mark_incomplete(&r->test, "never interrupted at",
					r->boundary[i]);
}

/* False: in this state the victim does not even come to its end. */
static bool sweep_boundaries(struct lab_run *r)
{
	memset(&r->map, 0, sizeof(r->map));
	r->map.lo = r->test.lo;
	r->map.hi = r->test.hi;
	r->map.beside = r->test.beside;
	r->held.scheme = r->test.scheme;
	return sweep_state(r) == LAB_DONE;
}

/* ---- one task held ---- */

/* Another task runs the victim instead, in that state. */
static enum lab_end replace_held(struct lab_run *r, unsigned int e,
				 unsigned long pc)
{
	struct lab_case *c = &r->test;

	lab_kill(&r->held);
	if (c->set(c, e))
		mark_incomplete(c, "a state was refused", pc);
	return lab_once(&r->held, c->victim);
}

static void release_held(struct lab_run *r, unsigned int s, unsigned int e,
			 unsigned long pc)
{
	struct lab_case *c = &r->test;
	bool before = pc <= c->victim->site && pc >= c->victim->boundary[0];
	bool behind =
		pc >= c->victim->boundary[2] && pc <= c->victim->boundary[3];
	unsigned int as = AS_OLD | AS_NEW | AS_WINDOW;
	enum lab_end end;

	if ((before || c->kills) && e == c->last)
		as = AS_NEW;
	else if (behind && s == 0)
		as = AS_OLD;
	else if (s == 0 && e == c->last)
		as = AS_OLD | AS_NEW;
	if (c->scheme && c->scheme->trap_return)
		c->scheme->trap_return(r->held.task->frame, c->victim->site);
	end = c->kills ? replace_held(r, e, pc) : lab_finish(&r->held);
	record_finding(c, &r->held, end, damage_of(c, &r->held, end, as), e,
		       pc);
}

/* Hold at pc in state s, go to state e, let go. */
static bool hold_one(struct lab_run *r, unsigned int s, unsigned int e,
		     unsigned long pc)
{
	struct lab_case *c = &r->test;
	bool wrong = pc == r->boundary[0] && fault_happens(&fault_lab_boundary);
	bool released = false;

	if (c->set(c, s) || wrong || !lab_hold(&r->held, pc))
		return false;
	if (c->held_at)
		c->held_at(r, pc);
	for (unsigned int k = s; k < e; k++) {
		int err = c->step(c, k);

		/* It waits for this task. */
		if (err == -EBUSY && !released) {
			release_held(r, s, e, pc);
			released = true;
			err = c->step(c, k);
		}
		if (err)
			mark_incomplete(c, "a step was refused", pc);
	}
	if (!released)
		release_held(r, s, e, pc);
	return true;
}

/* Two trials met the address, and the task cannot be held there. Had each a reason of its own to go
 * that way, another sweep of the state does not meet it twice. */
static bool is_met_again(struct lab_run *r, unsigned int s, unsigned long pc)
{
	return r->test.set(&r->test, s) || !sweep_boundaries(r) ||
	       pc - r->map.lo >= LAB_REGION - LAB_BYPASS_SIZE ||
	       r->map.times[pc - r->map.lo] > 1;
}

/* The form declares the boundaries, or a sweep has met them. */
static void hold_all(struct lab_run *r, unsigned int s, bool declared)
{
	struct lab_case *c = &r->test;

	for (unsigned int i = 0; i < r->nr_boundaries; i++) {
		bool all = true;

		for (unsigned int e = s + 1; e <= c->last; e++)
			all &= hold_one(r, s, e, r->boundary[i]);
		if (!all && !declared && !is_met_again(r, s, r->boundary[i]))
			continue;
		if (!all)
			mark_incomplete(c, "could not be held at",
					r->boundary[i]);
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
static bool check_form(struct lab_run *r, unsigned int state,
		       const struct lab_form *form)
{
	struct lab_case *c = &r->test;
	enum lab_end end;
	u32 damage;

	if (c->set(c, state))
		mark_incomplete(c, "the text could not be written", 0);
	memcpy(c->bytes[state != 0], (void *)c->victim->site, LAB_SITE_MAX);
	r->held.scheme = c->scheme;
	end = lab_once(&r->held, c->victim);
	damage = damage_of(c, &r->held, end, state ? AS_NEW : AS_OLD);
	if (damage && !(damage & c->breaks))
		c->wrong = form->name;
	else
		record_finding(c, &r->held, end, damage, state, 0);
	if (end != LAB_DONE || c->wrong)
		return false;
	if (!sweep_boundaries(r))
		mark_incomplete(c, "the sweep did not end in form", 0);
	if (!form->insn[0]) {
		list_met(r);
		return true;
	}
	list_declared(r, form);
	sweep_missing(r);
	check_unlisted(r);
	check_missing(r);
	return true;
}

/* Step by step, the other CPU running in between, which states it survives. */
static u32 walk_steps(struct lab_run *r)
{
	struct lab_case *c = &r->test;
	u32 good = 1;

	if (c->set(c, 0))
		return 0;
	for (unsigned int s = 0; s + 1 < c->last; s++) {
		if (c->step(c, s))
			mark_incomplete(c, "a step was refused", 0);
		if (run_between(r, s + 1))
			good |= 2u << s;
	}
	return good;
}

/* A state in between: the sweep finds the places where control stands in it. Those around the site
 * are known. */
static void enumerate_between(struct lab_run *r, unsigned int s)
{
	struct lab_case *c = &r->test;

	if (c->set(c, s) || !sweep_boundaries(r))
		return;
	list_declared(r, &(const struct lab_form){ NULL });
	sweep_missing(r);
	list_seen(r);
	hold_all(r, s, false);
}

void lab_enumerate(struct lab_run *r)
{
	struct lab_case *c = &r->test;
	u32 good;

	if (!check_form(r, c->last, c->after) || !check_form(r, 0, c->before))
		return;
	if (c->live && !r->second)
		mark_incomplete(c, "needs a second CPU", 0);
	hold_all(r, 0, c->before->insn[0]);
	good = walk_steps(r);
	for (unsigned int s = 1; s < c->last; s++)
		if (good & 1u << s)
			enumerate_between(r, s);
	c->set(c, 0);
}
