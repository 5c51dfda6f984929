/*
 * The port's own site in the lab: switched by each strategy of the tracer that
 * this machine has, in both directions; and the trampolines behind it, held at
 * each boundary outside C while the tracer is switched and the site with it.
 */
#include <kernel/cpu.h>
#include <kernel/errno.h>
#include <kernel/ktest.h>
#include <kernel/symbols.h>
#include <kernel/time.h>
#include <tracer/lab_internal.h>
#include <tracer/patch.h>
#include <tracer/ring.h>
#include <tracer/tracer.h>

extern const u16 trampoline_insns[]; /* tools/mksites; 0xffff ends */

static const struct patch_strategy *strategy; /* under test */
static const char *strategy_before;
static struct trace_ops *ops_before;
static int own_site = -1;

/* ---- counting ---- */

static void count_call(unsigned long ip, unsigned long parent,
		       struct trace_ops *ops)
{
	(void)parent, (void)ops;
	if (arch_site_from_return(ip) == lab_victim_own.site)
		__atomic_fetch_add(&lab_calls[0], 1, __ATOMIC_RELAXED);
}
static struct trace_ops count_ops = { .entry = trace_entry_call,
				      .func = count_call };
static struct trace_ops ring_ops = { .entry = trace_entry_ring };

int lab_own_switch(const char *by, bool on)
{
	struct patch_batch b;
	const char *why;
	int err;

	mutex_lock(&trace_mutex);
	err = patch_strategy_set(by, &why);
	if (!err)
		err = patch_site(&b, own_site, on);
	mutex_unlock(&trace_mutex);
	return err;
}

/* ---- strategies ---- */

static struct lab_case *hook_case;

/* PATCH_WORD and the last sync leave nothing in between. */
static void run_now(enum patch_step step, bool synced)
{
	(void)synced;
	if (hook_case)
		lab_run_between(hook_case, 1 + step);
}

static bool turns_on(const struct lab_case *c)
{
	return !c->before->calls[0];
}

static int own_set(struct lab_case *c, unsigned int state)
{
	return lab_own_switch("stop", turns_on(c) == (state == 1));
}

static int own_step(struct lab_case *c, unsigned int from)
{
	int err;

	(void)from;
	hook_case = c;
	patch_step_hook = run_now;
	err = lab_own_switch(strategy->name, turns_on(c));
	patch_step_hook = NULL;
	hook_case = NULL;
	return err;
}

static void make_own(struct lab_case *c, const struct patch_strategy *s,
		     bool on)
{
	const struct lab_victim *v = &lab_victim_own;

	strategy = s;
	trace_ops = &count_ops;
	*c = (struct lab_case){
		.name = "own",
		.from = "port",
		.because = "the port's own site",
		.strategy = s->name,
		.old = on ? "off" : "on",
		.new = on ? "on" : "off",
		.victim = v,
		.before = lab_own_form(!on),
		.after = lab_own_form(on),
		.last = 1,
		.live = s != &patch_strategy_stop,
		.set = own_set,
		.step = own_step,
		.lo = v->boundary[0],
		.hi = v->boundary[3] + 1,
		.span = 700,
	};
}

/* ---- trampolines (H16) ---- */

static const struct trampoline {
	const char *name;
	struct trace_ops *ops;
	bool record; /* is there room in the ring? */
	struct lab_form form;
} trampolines[] = {
	{ "off", &trace_ops_off, false, { "off", { 0 }, { 0, 0 } } },
	{ "ring", &ring_ops, true, { "ring", { 0 }, { 0, 0 } } },
	{ "full", &ring_ops, false, { "full", { 0 }, { 0, 0 } } },
	{ "call", &count_ops, false, { "call", { 0 }, { 1, 0 } } },
};
#define NR_TRAMPOLINES ARRAY_SIZE(trampolines)

/* Boundaries of the trampolines that some case has held somebody at. */
static bool reached[LAB_REGION];

static void record_all(bool on)
{
	mutex_lock(&trace_mutex);
	ring_record(on ? READ_ONCE(cpus_online) : 0, true);
	mutex_unlock(&trace_mutex);
}

static int entry_set(struct lab_case *c, unsigned int state)
{
	const struct trampoline *t = c->arg;

	t = state ? trampolines + (t - trampolines + 1) % NR_TRAMPOLINES : t;
	WRITE_ONCE(trace_ops, t->ops);
	record_all(t->record);
	return lab_own_switch("stop", true);
}

/* The datum first, then the site: whoever is inside has loaded the old one. */
static int entry_step(struct lab_case *c, unsigned int from)
{
	entry_set(c, from + 1);
	return lab_own_switch("stop", false);
}

static void make_entry(struct lab_case *c, const struct trampoline *t)
{
	const struct trampoline *next =
		trampolines + (t - trampolines + 1) % NR_TRAMPOLINES;

	*c = (struct lab_case){
		.name = "trampoline",
		.from = "H16",
		.because = "the target is a datum that is loaded once",
		.strategy = "datum",
		.old = t->name,
		.new = next->name,
		.victim = &lab_victim_own,
		.before = &t->form,
		.after = &next->form,
		.last = 1,
		.set = entry_set,
		.step = entry_step,
		.arg = (void *)t,
		.lo = (unsigned long)trace_entry,
		.hi = (unsigned long)trampoline_end,
		.span = 700,
	};
}

static bool masked(unsigned long pc)
{
	for (const unsigned long *m = trampoline_masked; *m; m += 2)
		if (pc >= m[0] && pc < m[1])
			return true;
	return false;
}

void lab_own_held(unsigned long pc)
{
	unsigned long at = pc - (unsigned long)trace_entry;

	if (at < LAB_REGION)
		reached[at] = true;
}

/* After all of them: what the disassembly has, but none of the cases reached. */
static void check_reached(struct lab_case *c)
{
	for (const u16 *i = trampoline_insns; *i != 0xffff; i++) {
		unsigned long pc = (unsigned long)trace_entry + *i;

		c->boundaries += !masked(pc) && !reached[*i];
		if (!masked(pc) && !reached[*i] && !c->incomplete) {
			c->incomplete = "never interrupted at";
			c->incomplete_at = pc;
		}
	}
}

void lab_own_done(struct lab_case *c)
{
	if (c->arg == &trampolines[NR_TRAMPOLINES - 1])
		check_reached(c);
}

/* ---- one after the other ---- */

/* With RECORD=runtime a site is known a second after its first call. */
static bool find_own(void)
{
	lab_victim_own.run(0, 0);
	for (int i = 0; i < 30 && own_site < 0; i++) {
		own_site = site_find(lab_victim_own.site);
		if (own_site < 0)
			task_sleep(NSEC_PER_SEC / 10);
	}
	return own_site >= 0;
}

bool lab_own_begin(void)
{
	if (!find_own())
		return false;
	strategy_before = patch_strategy_name();
	ops_before = trace_ops;
	for (unsigned int i = 0; i < LAB_REGION; i++)
		reached[i] = false;
	return true;
}

void lab_own_end(void)
{
	lab_own_switch("stop", false);
	WRITE_ONCE(trace_ops, ops_before);
	mutex_lock(&trace_mutex);
	patch_strategy_set(strategy_before, &(const char *){ NULL });
	trace_record(trace_state.on, trace_state.cpumask);
	mutex_unlock(&trace_mutex);
}

bool lab_case_own(struct lab_case *c, unsigned int i)
{
	const struct patch_strategy *s;

	for_each_registered (s, patch_strategies) {
		if (patch_refused(s))
			continue;
		if (i < 2) {
			make_own(c, s, i == 0);
			return true;
		}
		i -= 2;
	}
	trace_ops = &count_ops;
	if (i < 2)
		lab_case_vector(c, own_site < 0 ? 0 : own_site, i == 1);
	else if (i - 2 < NR_TRAMPOLINES)
		make_entry(c, &trampolines[i - 2]);
	return i - 2 < NR_TRAMPOLINES || i < 2;
}
