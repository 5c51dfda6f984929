/* SPDX-License-Identifier: MIT */
/*
 * The port's own sites in the lab, switched by each strategy of the tracer that
 * this machine has, in both directions: one that is traced when it is called,
 * one whose return address is taken as well (H16), which finds its way back
 * even if its site has changed by then, and a jump label.
 */
#include <kernel/patch_path.h>
#include <kernel/test/ktest.h>
#include <kernel/lib/string.h>
#include <kernel/time.h>
#include <kernel/lock/mutex.h>
#include <tracer/lab/lab_internal.h>
#include <tracer/lab/patcher.h>
#include <tracer/patch/keys.h>
#include <tracer/patch/patch.h>
#include <tracer/ops/returns.h>
#include <tracer/ops/ops.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/sites/sites.h>
#include <tracer/core/tracer.h>

/* The key of lab_victim_jump, which stands in the port's lab.S. */
STATIC_KEY(lab_jump);

static const char *strategy_before; /* the lab's run: it is set again behind it */

/* ---- counting ---- */

static void count_if(unsigned long ip, const struct lab_victim *v, u32 *calls)
{
	if (ip - arch_site_length == v->site)
		count_up(calls);
}

static void count_own_call(unsigned long ip, unsigned long parent,
			   struct trace_ops *ops)
{
	(void)parent, (void)ops;
	count_if(ip, &lab_victim_own, &lab_calls[0]);
}
PATCH_INDIRECT(trace_entry_call, count_own_call);
struct trace_ops lab_count_ops = { .entry = trace_entry_call,
				   .func = count_own_call };
struct trace_ops lab_choose_ops = { .entry = trace_entry_choose,
				    .func = count_own_call };

static bool count_entry(struct task_return *r, unsigned int depth)
{
	(void)depth;
	count_if(r->ip, &lab_victim_return, &lab_calls[0]);
	/* As other takers do: by its time alone, function_graph would take it for its own. */
	r->clock = arch_clock();
	return true;
}
PATCH_INDIRECT(trace_take_return, count_entry);

static void count_return(struct task_return *r, unsigned int depth)
{
	(void)depth;
	if (fault_happens(&fault_lab_return) && trace_ops != &lab_return_ops)
		return;
	count_if(r->ip, &lab_victim_return, &lab_calls[1]);
}
PATCH_INDIRECT(trace_returned, count_return);
struct trace_ops lab_return_ops = { .entry = trace_entry_return,
				    .enter = count_entry,
				    .leave = count_return };

static bool enter_quietly(struct task_return *r, unsigned int depth)
{
	(void)depth;
	r->clock = arch_clock();
	return true;
}
PATCH_INDIRECT(trace_take_return, enter_quietly);

static void leave_quietly(struct task_return *r, unsigned int depth)
{
	(void)r, (void)depth;
}
PATCH_INDIRECT(trace_returned, leave_quietly);
struct trace_ops lab_graph_ops = { .entry = trace_entry_graph,
				   .enter = enter_quietly,
				   .leave = leave_quietly };

void lab_own_graph(void)
{
	const struct tracer *t = trace_find("function_graph");

	if (t)
		lab_graph_ops = *t->ops;
}

void lab_own_room(void)
{
	struct ring *r = &rings[cpu_index()];
	char *end = max(r->at->graph, r->at->calls);

	if (end > (char *)RING_PASS && r->at->cur + 4 * RING_EVENT_SIZE > end)
		ring_restart(r);
}

int lab_own_ops(struct trace_ops *ops)
{
	int err;

	mutex_lock(&trace_mutex);
	err = trace_ops_borrow(ops);
	mutex_unlock(&trace_mutex);
	return err;
}

int lab_own_switch(unsigned long site, const char *by, bool on)
{
	struct patch_batch b;
	const char *why;
	int err;

	mutex_lock(&trace_mutex);
	err = patch_strategy_set(by, &why);
	if (!err)
		err = site == lab_victim_jump.site ?
			      static_key_set(&b, &key_lab_jump, on) :
			      patch_site(&b, site_find(site), on);
	mutex_unlock(&trace_mutex);
	return err;
}

/* ---- strategies ---- */

static const struct patch_strategy *own_by; /* in the case under way */

static int own_on(unsigned long site)
{
	return lab_own_switch(site, own_by->name, true);
}

static int own_off(unsigned long site)
{
	return lab_own_switch(site, own_by->name, false);
}

/* They go through the same driver as code that is brought. */
static const struct lab_patcher own = { .prepare = own_off,
					.on = own_on,
					.off = own_off };

/* The same instructions, with its return noticed. */
static const struct lab_form *return_form(bool on)
{
	static struct lab_form forms[2];

	forms[on] = *lab_own_form(on);
	forms[on].calls[1] = on;
	return &forms[on];
}

/* Of two, the first is "off". */
static const struct own_kind {
	const char *name[2], *from, *because, *state[2];
	const struct lab_victim *victim;
	const struct lab_form *(*form)(bool on);
	struct trace_ops *ops; /* NULL: its site is not in the site table */
} kinds[] = {
	{ { "own", "own" },
	  "port",
	  "the port's own site",
	  { "off", "on" },
	  &lab_victim_own,
	  lab_own_form,
	  &lab_count_ops },
	{ { "own return", "own return" },
	  "H16",
	  "what was taken stays with the task",
	  { "off", "on" },
	  &lab_victim_return,
	  return_form,
	  &lab_return_ops },
	{ { "jump-off", "jump-on" },
	  "port",
	  "one instruction, as a whole",
	  { "nop", "jump" },
	  &lab_victim_jump,
	  lab_jump_form,
	  NULL },
};

static void make_own(struct lab_case *c, const struct patch_strategy *s,
		     const struct own_kind *k, bool on)
{
	own_by = s;
	lab_patcher_case(c, &own, !on);
	c->name = k->name[on];
	c->from = k->from;
	c->because = k->because;
	c->strategy = s->name;
	c->victim = k->victim;
	c->old = k->state[!on];
	c->new = k->state[on];
	c->before = k->form(!on);
	c->after = k->form(on);
	c->live = s != &patch_strategy_stop;
	c->waits = arch_live_insns > 1 && k->ops;
	c->own = k->ops;
	c->ops = k->ops;
	c->length = 0;
}

/* ---- one after the other ---- */

static bool own_sites_known(void)
{
	return site_find(lab_victim_own.site) >= 0 &&
	       site_find(lab_victim_return.site) >= 0;
}

/* With RECORD=runtime a site is known a second after its first call. */
static bool find_own(void)
{
	lab_victim_own.run(0, 0);
	lab_victim_return.run(0, 0);
	for (int i = 0; i < 30 && !own_sites_known(); i++)
		task_sleep(NSEC_PER_SEC / 10);
	return own_sites_known();
}

bool lab_own_begin(void)
{
	bool able = find_own();

	strategy_before = patch_strategy_name();
	mutex_lock(&trace_mutex);
	graph_session_begin();
	mutex_unlock(&trace_mutex);
	return able;
}

void lab_own_end(bool able)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++)
		if (able || !kinds[i].ops)
			lab_own_switch(kinds[i].victim->site,
				       PATCH_STRATEGY_DEFAULT->name, false);
	mutex_lock(&trace_mutex);
	trace_ops_give_back();
	graph_session_end();
	patch_strategy_set(strategy_before, &(const char *){ NULL });
	trace_record(trace_top.on, trace_top.cpumask);
	mutex_unlock(&trace_mutex);
}

/* Each kind, on and off by each strategy. */
#define OF_STRATEGY (2 * ARRAY_SIZE(kinds))

bool lab_case_own(struct lab_case *c, unsigned int *i)
{
	const struct patch_strategy *s;

	for_each_registered (s, patch_strategies) {
		if (patch_refused(s))
			continue;
		if (*i < OF_STRATEGY) {
			make_own(c, s, &kinds[*i / 2], *i % 2 == 0);
			return true;
		}
		*i -= OF_STRATEGY;
	}
	return false;
}
