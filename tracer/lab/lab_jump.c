/* SPDX-License-Identifier: MIT */
/*
 * Jump labels in the lab: a task is held at each instruction of one, while each strategy
 * of the tracer switches the label on and off under it.
 */
#include <kernel/lock/mutex.h>
#include <tracer/lab/lab_internal.h>
#include <tracer/patch/keys.h>
#include <tracer/core/tracer.h>

/* The key of lab_victim_jump, which stands in the port's lab.S. */
STATIC_KEY(lab_jump);

static int jump_switch(const char *by, bool on)
{
	struct patch_batch b;
	const char *why;
	int err;

	mutex_lock(&trace_mutex);
	err = patch_strategy_set(by, &why);
	if (!err)
		err = static_key_set(&b, &key_lab_jump, on);
	mutex_unlock(&trace_mutex);
	return err;
}

static bool jump_turns_on(const struct lab_case *c)
{
	return !c->before->calls[0];
}

static int jump_set(struct lab_case *c, unsigned int state)
{
	return jump_switch("stop", jump_turns_on(c) == (state == 1));
}

static int jump_step(struct lab_case *c, unsigned int from)
{
	(void)from;
	return jump_switch(c->strategy, jump_turns_on(c));
}

/* The label is off when no case runs, and the strategy is what it was. */
static const char *strategy_before;

static void jump_begin(struct lab_case *c)
{
	(void)c;
	strategy_before = patch_strategy_name();
}

static void jump_end(struct lab_case *c)
{
	(void)c;
	jump_switch(strategy_before, false);
}

static void make_jump(struct lab_case *c, const struct patch_strategy *s,
		      bool on)
{
	const struct lab_victim *v = &lab_victim_jump;

	*c = (struct lab_case){
		.name = on ? "jump-on" : "jump-off",
		.from = "port",
		.because = "one instruction, as a whole",
		.strategy = s->name,
		.old = on ? "nop" : "jump",
		.new = on ? "jump" : "nop",
		.victim = v,
		.before = lab_jump_form(!on),
		.after = lab_jump_form(on),
		.last = 1,
		.live = s != &patch_strategy_stop,
		.step_is_batch = true,
		.begin = jump_begin,
		.end = jump_end,
		.set = jump_set,
		.step = jump_step,
		.lo = v->boundary[0],
		.hi = v->boundary[3] + 1,
		.span = 700,
	};
}

bool lab_case_jump(struct lab_case *c, unsigned int *i)
{
	const struct patch_strategy *s;

	for_each_registered (s, patch_strategies) {
		if (patch_refused(s))
			continue;
		if (*i < 2) {
			make_jump(c, s, *i == 0);
			return true;
		}
		*i -= 2;
	}
	return false;
}
