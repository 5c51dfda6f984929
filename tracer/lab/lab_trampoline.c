/* SPDX-License-Identifier: MIT */
/*
 * The trampolines in the lab (H16), the way back included: a victim is held at each
 * boundary outside C, while the tracer is switched and the site with it. Then it goes on, or it is
 * killed where it stands, and another task finds all as if it had never been there.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/printk.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <tracer/lab/lab_internal.h>
#include <tracer/ops/ops.h>
#include <tracer/patch/patch.h>
#include <tracer/ring/ring.h>
#include <tracer/core/tracer.h>
#include <tracer/ring/ring_control.h>

extern const u16 trampoline_insns[]; /* tools/mksites. 0xffff ends */

static struct trace_ops ring_ops = { .entry = trace_entry_ring };

static const struct trampoline {
	struct trace_ops *ops;
	/* The states of ring.calls and ring.graph. */
	enum { CLOSED, OPEN, PASS, GRAPH } record;
	struct lab_form form;
	u32 in_c; /* each word of trace_in_c */
} off = { &trace_ops_off, CLOSED, { "off", { 0 }, { 0, 0 } }, 0 },
  ring = { &ring_ops, OPEN, { "ring", { 0 }, { 0, 0 } }, 0 },
  full = { &ring_ops, CLOSED, { "full", { 0 }, { 0, 0 } }, ~0u },
  pass = { &ring_ops, PASS, { "pass", { 0 }, { 0, 0 } }, 0 },
  call = { &lab_count_ops, CLOSED, { "call", { 0 }, { 1, 0 } }, 0 },
  here = { &lab_choose_ops, OPEN, { "here", { 0 }, { 0, 0 } }, 0 },
  in_c = { &lab_choose_ops, OPEN, { "in_c", { 0 }, { 1, 0 } }, ~0u },
  back = { &lab_return_ops, CLOSED, { "return", { 0 }, { 1, 1 } }, 0 },
  graph = { &lab_graph_ops, GRAPH, { "graph", { 0 }, { 0, 0 } }, 0 },
  limited = { &lab_graph_ops, CLOSED, { "limited", { 0 }, { 0, 0 } }, 0 };

/* From one to another while a victim is inside. */
static const struct change {
	const struct lab_victim *victim;
	const struct trampoline *from, *to;
} changes[] = {
	{ &lab_victim_own, &off, &ring },
	{ &lab_victim_own, &ring, &full },
	{ &lab_victim_own, &full, &pass },
	{ &lab_victim_own, &pass, &call },
	{ &lab_victim_own, &call, &here },
	/* trace_in_c stays as it is while the victim may look at it. */
	{ &lab_victim_own, &here, &off },
	{ &lab_victim_own, &off, &in_c },
	{ &lab_victim_own, &in_c, &full },
	{ &lab_victim_return, &off, &back },
	{ &lab_victim_return, &back, &off },
	{ &lab_victim_return, &off, &graph },
	{ &lab_victim_return, &graph, &limited },
	{ &lab_victim_return, &limited, &graph },
	{ &lab_victim_return, &graph, &back },
	{ &lab_victim_return, &back, &graph },
	{ &lab_victim_return, &graph, &off },
	{ &lab_victim_return, &ring, &back },
	{ &lab_victim_return, &back, &ring },
};

static void record_all(const struct trampoline *t)
{
	cpumask_t online = READ_ONCE(cpus_online);

	mutex_lock(&trace_mutex);
	for (unsigned int i = 0; i < ARRAY_SIZE(trace_in_c); i++)
		WRITE_ONCE(trace_in_c[i], t->in_c);
	ring_set_mode(t->record != PASS ? ring_mode | RING_CALLS :
					  ring_mode & ~RING_CALLS);
	ring_record(rings, t->record == CLOSED ? 0 : online, true, NULL);
	ring_let_graph(t->record == GRAPH);
	mutex_unlock(&trace_mutex);
}

static int entry_set(struct lab_case *c, unsigned int state)
{
	const struct change *ch = c->arg;
	const struct trampoline *t = state ? ch->to : ch->from;

	int err = lab_own_ops(t->ops);

	if (err)
		return err;
	record_all(t);
	return lab_own_switch(c->victim->site, PATCH_STRATEGY_DEFAULT->name,
			      true);
}

/* The datum first, then the site: a task inside has loaded the old datum. */
static int entry_step(struct lab_case *c, unsigned int from)
{
	entry_set(c, from + 1);
	return lab_own_switch(c->victim->site, PATCH_STRATEGY_DEFAULT->name,
			      false);
}

static bool boundary_is_masked(unsigned long pc)
{
	for (const unsigned long *m = trampoline_masked; *m; m += 2)
		if (pc >= m[0] && pc < m[1])
			return true;
	return false;
}

static void note_reached(struct lab_run *r, unsigned long pc)
{
	unsigned long at = pc - (unsigned long)trace_entry;

	if (at < LAB_REGION)
		r->reached[at] = true;
}

/* After all cases: count the instructions of the disassembly that no case has reached. */
static void check_reached(struct lab_run *r)
{
	struct lab_case *c = &r->test;

	for (const u16 *i = trampoline_insns; *i != 0xffff; i++) {
		unsigned long pc = (unsigned long)trace_entry + *i;

		if (boundary_is_masked(pc) || r->reached[*i])
			continue;
		c->boundaries++;
		if (!c->incomplete) {
			c->incomplete = "never interrupted at";
			c->incomplete_at = pc;
		}
	}
}

/* Together the cases reach every instruction: the first begins, the last looks. */
static void begin_change(struct lab_run *r)
{
	lab_own_graph();
	if (r->test.arg == &changes[0])
		memset(r->reached, 0, sizeof(r->reached));
}

static void end_change(struct lab_run *r)
{
	if (r->test.arg == &changes[ARRAY_SIZE(changes) - 1])
		check_reached(r);
}

bool lab_case_trampoline(struct lab_case *c, unsigned int *i)
{
	bool kills = *i >= ARRAY_SIZE(changes);
	const struct change *ch = &changes[*i % ARRAY_SIZE(changes)];

	if (*i >= 2 * ARRAY_SIZE(changes)) {
		*i -= 2 * ARRAY_SIZE(changes);
		return false;
	}
	*c = (struct lab_case){
		.name = kills ? "trampoline-killed" : "trampoline",
		.from = "H16",
		.because = kills ? "what a task leaves there is its own" :
			   ch->victim == &lab_victim_own ?
				   "the target is a datum that is loaded once" :
				   "what was taken stays with the task",
		.strategy = "datum",
		.old = ch->from->form.name,
		.new = ch->to->form.name,
		.victim = ch->victim,
		.before = &ch->from->form,
		.after = &ch->to->form,
		.last = 1,
		.own = true,
		.kills = kills,
		.begin = begin_change,
		.end = end_change,
		.held_at = note_reached,
		.set = entry_set,
		.step = entry_step,
		.arg = ch,
		.lo = (unsigned long)trace_entry,
		.hi = (unsigned long)trampoline_end,
		.span = 700,
	};
	BUG_ON(c->hi - c->lo > LAB_REGION);
	return true;
}
