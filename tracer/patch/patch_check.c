/* SPDX-License-Identifier: MIT */
/* The rules of the order log: patch_check.h lists them, with the reasons. */
#include "patch_check.h"

const char *const patch_log_words[LOG_WHATS] = {
	[LOG_NONE] = "none",   [LOG_ONLINE] = "online", [LOG_BATCH] = "batch",
	[LOG_STEP] = "step",   [LOG_STORE] = "store",	[LOG_SYNC] = "sync",
	[LOG_DONE] = "done",   [LOG_HELD] = "held",	[LOG_FREE] = "free",
	[LOG_WAIT] = "wait",   [LOG_WAITED] = "waited", [LOG_JOINED] = "joined",
	[LOG_LEFT] = "left",   [LOG_RUN] = "run",	[LOG_BYPASS] = "bypass",
	[LOG_CLEAR] = "clear",
};

const char *const patch_store_words[STORES] = {
	[STORE_BREAK] = "break", [STORE_TAIL] = "tail",
	[STORE_FIRST] = "first", [STORE_WORD] = "word",
	[STORE_WHOLE] = "whole", [STORE_AGAIN] = "again",
	[STORE_BACK] = "back",
};

const char *const patch_rule_words[RULES] = {
	[RULE_KEPT] = "kept",
	[RULE_DONE] = "a batch was declared done before a CPU had synchronised",
	[RULE_STORE] = "a site was written again before a CPU had synchronised",
	[RULE_RUN] = "a site ran before its CPU had synchronised",
	[RULE_JOINED] = "a site ran on a CPU that had come online and not "
			"synchronised",
	[RULE_HELD] = "an instruction was written in pieces while a CPU was "
		      "not held",
	[RULE_FREE] = "a CPU was let go before it had synchronised",
	[RULE_WAIT] = "a CPU waited for another inside a rendezvous",
	[RULE_INSIDE] = "an instruction was written before the tasks inside it "
			"had been waited for",
	[RULE_FORM] = "no such entry can be here",
};

static struct patch_check_site *check_site_of(struct patch_check *c,
					      uint32_t offset)
{
	uint32_t i = offset * 2654435761u;

	for (;; i++) {
		struct patch_check_site *s = &c->sites[i & (c->slots - 1)];

		if (!s->offset)
			s->offset = offset + 1;
		if (s->offset == offset + 1)
			return s;
	}
}

static void break_rule(struct patch_check *c, enum patch_rule rule,
		       unsigned int cpu)
{
	c->broken |= 1u << rule;
	if (c->rule)
		return;
	c->rule = rule;
	c->at = c->n;
	c->cpu = cpu;
}

/* Is the store at entry `store` unsynchronised on cpu, which was there then? */
static bool store_is_missed(const struct patch_check *c, unsigned int cpu,
			    uint32_t store)
{
	return store && (c->online >> cpu & 1) && c->joined[cpu] < store &&
	       c->synced[cpu] < store;
}

/* The first CPU that missed it breaks a rule. */
static void all_have(struct patch_check *c, uint32_t store,
		     enum patch_rule rule)
{
	unsigned int cpu;

	for (cpu = 0; cpu < PATCH_CHECK_CPUS; cpu++)
		if (store_is_missed(c, cpu, store)) {
			break_rule(c, rule, cpu);
			return;
		}
}

/* Of a mask that is not 0. No instruction for it everywhere. */
static unsigned int lowest_cpu(uint32_t mask)
{
	unsigned int i = 0;

	while (!(mask >> i & 1))
		i++;
	return i;
}

static void check_store(struct patch_check *c, const struct patch_log_entry *e)
{
	struct patch_check_site *s = check_site_of(c, e->a);
	uint32_t kind = STORE_KIND(e->b), running = c->online & ~c->held;

	if (kind >= STORES || !c->in_batch)
		break_rule(c, RULE_FORM, e->cpu);
	if (kind == STORE_AGAIN)
		return;
	all_have(c, s->last, RULE_STORE);
	if (c->waits && kind != STORE_BREAK && kind != STORE_BACK)
		break_rule(c, RULE_INSIDE, e->cpu);
	if (kind == STORE_WHOLE && running)
		break_rule(c, RULE_HELD, lowest_cpu(running));
	s->before = s->last;
	s->last = c->last_store = c->n;
	s->kind = kind;
}

static void check_site_run(struct patch_check *c,
			   const struct patch_log_entry *e)
{
	struct patch_check_site *s = check_site_of(c, e->a);
	uint32_t synced = c->synced[e->cpu], joined = c->joined[e->cpu];
	/* The last store may be seen in pieces, or it may be seen without the
	 * one before it: either must have been synchronised. */
	uint32_t must = s->kind == STORE_WHOLE ? s->last : s->before;

	c->runs++;
	if (s->last > synced && s->last < joined)
		break_rule(c, RULE_JOINED, e->cpu);
	else if (must > synced)
		break_rule(c, RULE_RUN, e->cpu);
}

static void check_batch(struct patch_check *c, bool begin)
{
	if (c->in_batch == begin)
		break_rule(c, RULE_FORM, 0);
	if (!begin)
		all_have(c, c->last_store, RULE_DONE);
	c->in_batch = begin;
	c->waits = false;
	c->last_store = 0;
	c->batches += begin;
}

static void check_wait(struct patch_check *c, unsigned int cpu, bool begin)
{
	if (!c->in_batch || c->waits == begin)
		break_rule(c, RULE_FORM, cpu);
	if (!begin)
		all_have(c, c->last_store, RULE_INSIDE);
	c->waits = begin;
}

static void check_hold(struct patch_check *c, unsigned int cpu, bool begin)
{
	uint32_t bit = 1u << cpu;

	if (!(c->held & bit) != begin)
		break_rule(c, RULE_FORM, cpu);
	if (!begin && store_is_missed(c, cpu, c->last_store))
		break_rule(c, RULE_FREE, cpu);
	c->held = begin ? c->held | bit : c->held & ~bit;
}

static void check_online(struct patch_check *c, unsigned int cpu, bool joins)
{
	uint32_t bit = 1u << cpu;

	if (!(c->online & bit) != joins)
		break_rule(c, RULE_FORM, cpu);
	c->online = joins ? c->online | bit : c->online & ~bit;
	if (joins)
		c->joined[cpu] = c->n;
}

static void check_entry(struct patch_check *c, const struct patch_log_entry *e)
{
	unsigned int cpu = e->cpu;

	switch (e->what) {
	case LOG_ONLINE:
		c->online = e->a;
		break;
	case LOG_BATCH:
	case LOG_DONE:
		check_batch(c, e->what == LOG_BATCH);
		break;
	case LOG_STORE:
		check_store(c, e);
		break;
	case LOG_SYNC:
		c->syncs++;
		c->synced[cpu] = c->n;
		break;
	case LOG_RUN:
		check_site_run(c, e);
		break;
	case LOG_HELD:
	case LOG_FREE:
		check_hold(c, cpu, e->what == LOG_HELD);
		break;
	case LOG_WAIT:
		if (c->held >> cpu & 1)
			break_rule(c, RULE_WAIT, cpu);
		break;
	case LOG_JOINED:
	case LOG_LEFT:
		check_online(c, cpu, e->what == LOG_JOINED);
		break;
	case LOG_BYPASS:
	case LOG_CLEAR:
		check_wait(c, cpu, e->what == LOG_BYPASS);
		break;
	case LOG_STEP:
	case LOG_WAITED:
		break;
	default:
		break_rule(c, RULE_FORM, cpu);
	}
}

void patch_check_entry(struct patch_check *c, const struct patch_log_entry *e)
{
	bool arrives = e->what == LOG_ONLINE || e->what == LOG_JOINED;

	c->n++;
	if (e->cpu < PATCH_CHECK_CPUS && (arrives || (c->online >> e->cpu & 1)))
		check_entry(c, e);
	else
		break_rule(c, RULE_FORM, e->cpu);
}
