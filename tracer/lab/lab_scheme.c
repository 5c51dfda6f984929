/* SPDX-License-Identifier: MIT */
/*
 * From a scheme to its states. The stores make steps. The text after each step is
 * known beforehand. So the lab can bring about any state at once while no task is
 * inside, and step by step, as the scheme does it, while a task is.
 */
#include <kernel/panic.h>
#include <kernel/patch_path.h>
#include <kernel/cpu/stop.h>
#include <kernel/lib/string.h>
#include <tracer/lab/lab_internal.h>
#include <tracer/lab/lab_scheme.h>
#include <tracer/patch/patch.h>

#define STEPS_MAX (LAB_STORES + 1)

/* The scheme whose case is under way: one at a time. */
static struct {
	const struct lab_scheme *scheme;
	unsigned long site;
	unsigned int count; /* steps */
	u8 image[STEPS_MAX + 1][LAB_SITE_MAX];
	struct {
		unsigned int count;
		struct lab_store store[LAB_STORES];
	} step[STEPS_MAX];
	/* The stores that are being written now: */
	const u8 *bytes;
	const struct lab_store *store;
	unsigned int nr_stores;
} under_way;

/* ---- making the steps ---- */

static void form_bytes(unsigned int form, u8 *bytes)
{
	memset(bytes, 0, LAB_SITE_MAX);
	under_way.scheme->encode(under_way.site, form, bytes);
}

static void begin_step(void)
{
	memcpy(under_way.image[under_way.count + 1],
	       under_way.image[under_way.count], LAB_SITE_MAX);
	under_way.step[under_way.count].count = 0;
}

static void end_step(void)
{
	if (under_way.step[under_way.count].count)
		under_way.count++;
}

static void add_store(struct lab_store st)
{
	unsigned int *n = &under_way.step[under_way.count].count;
	u8 bytes[LAB_SITE_MAX];

	form_bytes(st.form, bytes);
	memcpy(under_way.image[under_way.count + 1] + st.offset,
	       bytes + st.offset, st.length);
	under_way.step[under_way.count].store[(*n)++] = st;
}

static void add_break(u8 offset)
{
	begin_step();
	lab_break_bytes(under_way.image[under_way.count + 1] + offset);
	under_way.step[under_way.count].store[0] =
		(struct lab_store){ offset, arch_break_length, 0 };
	under_way.step[under_way.count].count = 1;
	end_step();
}

/* One step for all stores, or one for each. */
static void add_stores(const struct lab_store *st, unsigned int n, bool each)
{
	begin_step();
	for (unsigned int i = 0; i < n; i++) {
		add_store(st[i]);
		if (each && i + 1 < n) {
			end_step();
			begin_step();
		}
	}
	end_step();
}

static unsigned int count_stores(const struct lab_scheme *s)
{
	unsigned int n = 0;

	while (n < LAB_STORES && s->store[n].length)
		n++;
	return n;
}

/* How many steps make_steps() makes. */
static unsigned int count_steps(const struct lab_scheme *s)
{
	unsigned int stores = count_stores(s);

	return s->way == LAB_STOP ? 1 :
	       s->way == LAB_LIVE ? stores :
	       stores > 1	  ? 3 :
				    2;
}

static void make_steps(const struct lab_scheme *s)
{
	const struct lab_store *st = s->store;
	unsigned int n = count_stores(s);

	under_way.scheme = s;
	under_way.site = s->victim->site;
	under_way.count = 0;
	form_bytes(s->old, under_way.image[0]);
	if (s->way < LAB_BREAK) {
		add_stores(st, n, s->way == LAB_LIVE);
		return;
	}
	add_break(st[0].offset);
	add_stores(st + 1, n - 1, false);
	add_stores(st, 1, false);
}

/* ---- writing ---- */

/* All stores of under_way.store, through the alias. */
static notrace void lab_change(void *arg)
{
	long delta = arch_text_open();
	u8 bytes[LAB_SITE_MAX] __attribute__((aligned(8)));

	(void)arg;
	for (unsigned int i = 0; i < under_way.nr_stores; i++) {
		const struct lab_store *st = &under_way.store[i];

		for (unsigned int k = 0; k < st->length; k++)
			bytes[k] = under_way.bytes[st->offset + k];
		lab_store_one(under_way.site + st->offset + delta, bytes,
			      st->length);
	}
	arch_text_close();
}

PATCH_INDIRECT(stop_lead, lab_change);
PATCH_INDIRECT(stop_lead, lab_sync_on_cpu);
PATCH_INDIRECT(stop_hold, lab_sync_on_cpu);

static int write_stopped(const u8 *bytes, const struct lab_store *st,
			 unsigned int n)
{
	struct stop_work work = { .change = lab_change,
				  .sync = lab_sync_on_cpu,
				  .arg = (void *)under_way.site };

	under_way.bytes = bytes;
	under_way.store = st;
	under_way.nr_stores = n;
	return stop_cpus(&work);
}

static int write_live(const u8 *bytes, const struct lab_store *st,
		      unsigned int n)
{
	under_way.bytes = bytes;
	under_way.store = st;
	under_way.nr_stores = n;
	lab_change(NULL);
	return lab_sync_all(under_way.site);
}

void lab_put_back(unsigned long site, const u8 *bytes, unsigned int length)
{
	struct lab_store whole = { 0, length, 0 };

	under_way.site = site;
	write_stopped(bytes, &whole, 1);
}

static int write_state(struct lab_case *c, unsigned int state)
{
	struct lab_store whole = { 0, c->scheme->length, 0 };

	if (c->scheme->way >= LAB_BYPASS)
		lab_bypass_copy(c->scheme, under_way.image[0]);
	return write_stopped(under_way.image[state], &whole, 1);
}

static int take_step(struct lab_case *c, unsigned int from)
{
	const u8 *bytes = under_way.image[from + 1];
	const struct lab_store *st = under_way.step[from].store;
	unsigned int n = under_way.step[from].count;
	int err = c->scheme->way == LAB_STOP ? write_stopped(bytes, st, n) :
					       write_live(bytes, st, n);

	if (err || c->scheme->way < LAB_BYPASS)
		return err;
	if (from == 0)
		return lab_bypass_wait();
	return from + 1 == c->last ? lab_bypass_free() : 0;
}

/* ---- the breakpoint ---- */

bool lab_trap(struct trap_frame *f)
{
	const struct lab_scheme *s = under_way.scheme;

	if (s && s->way >= LAB_BYPASS && lab_bypass_trap(f))
		return true;
	if (!s || s->way < LAB_BREAK ||
	    arch_frame_pc(f) != under_way.site + s->store[0].offset)
		return false;
	s->resume(f, under_way.site, s->way == LAB_BREAK ? s->new : s->old);
	return true;
}
PATCH_INDIRECT(patch_trap, lab_trap);
PATCH_INDIRECT_OPEN(lab_trap); /* a port may have no scheme with a breakpoint */

/* ---- the case ---- */

static const char *const way_names[] = {
	[LAB_STOP] = "stop",	    [LAB_LIVE] = "live",
	[LAB_BREAK] = "breakpoint", [LAB_BYPASS] = "bypass",
	[LAB_NO_WAIT] = "no wait",  [LAB_IN_PLACE] = "in place",
};

/* The stores must lead to the new form, and the forms must fill the site. */
static const char *what_is_wrong(const struct lab_scheme *s)
{
	u8 bytes[LAB_SITE_MAX];

	form_bytes(s->new, bytes);
	if (memcmp(bytes, under_way.image[under_way.count], s->length))
		return "its stores do not make the new form";
	for (int f = 0; f < LAB_FORMS && s->form[f].name; f++) {
		unsigned int sum = 0;

		for (int i = 0; i < LAB_INSNS; i++)
			sum += s->form[f].insn[i] < 0 ? -s->form[f].insn[i] :
							s->form[f].insn[i];
		if (sum != s->length)
			return "a form does not fill the site";
	}
	return NULL;
}

static void begin_scheme(struct lab_run *r)
{
	struct lab_case *c = &r->test;

	make_steps(c->scheme);
	BUG_ON(under_way.count != c->last);
	c->wrong = what_is_wrong(c->scheme);
	PATCH_HOOK_SET(patch_trap_hook, patch_trap, lab_trap);
}

static void end_scheme(struct lab_run *r)
{
	(void)r;
	PATCH_HOOK_SET(patch_trap_hook, patch_trap, NULL);
}

void lab_scheme_case(struct lab_case *c, const struct lab_scheme *s)
{
	*c = (struct lab_case){
		.name = s->name,
		.from = s->from,
		.because = s->because,
		.strategy = way_names[s->way],
		.old = s->form[s->old].name,
		.new = s->form[s->new].name,
		.victim = s->victim,
		.scheme = s,
		.before = &s->form[s->old],
		.after = &s->form[s->new],
		.window = s->has_window ? &s->form[s->window] : NULL,
		.breaks = s->breaks,
		.last = count_steps(s),
		.live = s->way != LAB_STOP,
		.begin = begin_scheme,
		.end = end_scheme,
		.set = write_state,
		.step = take_step,
		.lo = s->victim->boundary[0],
		.hi = s->victim->boundary[3] + 1,
		.beside = s->way >= LAB_BYPASS ? lab_bypass_at() : 0,
		.span = s->way >= LAB_BREAK || s->fault ? 700 : 256,
	};
}

/* GCC lays a file's objects out from the last to the first. */
bool lab_case_scheme(struct lab_case *c, unsigned int *i)
{
	unsigned int count = __stop_lab_schemes - __start_lab_schemes;

	if (*i >= count) {
		*i -= count;
		return false;
	}
	lab_scheme_case(c, &__start_lab_schemes[count - 1 - *i]);
	return true;
}
