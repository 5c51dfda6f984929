/* SPDX-License-Identifier: MIT */
/*
 * Patch code as cases of the lab: that of others (patcher.h), and the tracer's strategies
 * (lab_own.c). It runs in a task of its own, which is held behind each store. A state of the text
 * is the number of stores that have been made.
 */
#include <kernel/cpu/stop.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/sched/hold.h>
#include <kernel/sched/balance.h>
#include <tracer/lab/lab_internal.h>
#include <tracer/lab/patcher.h>
#include <tracer/patch/patch.h>

#define STATES_MAX 24u
#define WAIT_NS (5 * NSEC_PER_MSEC)
#define RETURN_NS                                                              \
	NSEC_PER_SEC /* guest time that the code has from one store to the next */

static const char *const form_names[] = { "off", "on", "on2" };

/* A transition, how the code makes it, and the form that it begins in. */
static const struct patcher_move {
	u8 old, new;
} moves[] = {
	{ PATCHER_OFF, PATCHER_ON },
	{ PATCHER_ON, PATCHER_OFF },
	{ PATCHER_ON, PATCHER_ON2 },
};

/* The code that is under way: one at a time. */
static struct {
	const struct lab_patcher *patcher;
	unsigned long site;
	unsigned int length;
	u8 before[LAB_SITE_MAX]; /* the bytes that the lab found */
	struct task *task;
	struct task_fault fault;
	const char *verb;
	int (*run)(unsigned long site);
	u8 form; /* that the site is in, or on its way to */
	unsigned int stops, holds;
	bool ended, synced, stored;
	bool released;	    /* it is on its way to the next store */
	const void *caller; /* of the last store */
	int err;
	char wrong[120]; /* why it cannot be judged */
} under;

#define patcher_is_wrong(...)                                                  \
	do {                                                                   \
		if (!under.wrong[0])                                           \
			snprintf(under.wrong, sizeof(under.wrong),             \
				 __VA_ARGS__);                                 \
	} while (0)

/* ---- called by the code ---- */

/* The lab acts while the code stands here. */
static void stand_here(void)
{
	if (under.holds || !under.stored)
		return;
	if (arch_irqs_off()) {
		patcher_is_wrong("%s() stores with interrupts off, outside "
				 "patcher_hold_all(), in %pS",
				 under.verb, under.caller);
		return;
	}
	under.stored = false;
	under.stops++;
	task_hold_self();
}

/* Of the tracer's strategies a step is one store. */
static void store_is_made(enum patch_step step, bool synced)
{
	(void)step;
	if (current_task() != under.task)
		return; /* another batch */
	under.synced = synced;
	under.stored |= !synced;
	stand_here();
}

/*
 * A victim that jumps wildly may come into the code. It dies there, because its calls say nothing
 * of the code. Inline, the trap would make a part of each caller a function of its own.
 */
static noinline void refuse_victim(void)
{
	if (current_task() != under.task)
		__builtin_trap();
}

/* caller: of the function that the code has called. */
static bool lies_outside(unsigned long at, size_t length, const void *caller)
{
	refuse_victim();
	under.caller = caller;
	if (at >= under.site && at + length <= under.site + under.length)
		return false;
	patcher_is_wrong("%s() stores outside its site, %ld bytes from its "
			 "start, in %pS",
			 under.verb, (long)(at - under.site), caller);
	return true;
}

static void store_piece(unsigned long at, const u8 *bytes, size_t length)
{
	lab_store_text(at, bytes, length);
	store_is_made(PATCH_WORD, false);
}

int patcher_write_once(unsigned long at, const void *bytes, size_t length)
{
	if (lies_outside(at, length, __builtin_return_address(0)))
		return -EFAULT;
	store_piece(at, bytes, length);
	return 0;
}

int patcher_write(unsigned long at, const void *bytes, size_t length)
{
	bool whole = length && length <= sizeof(long) &&
		     !(length & (length - 1)) && at % length == 0;
	size_t piece = whole ? length : 1;

	if (lies_outside(at, length, __builtin_return_address(0)))
		return -EFAULT;
	for (size_t i = 0; i < length; i += piece)
		store_piece(at + i, (const u8 *)bytes + i, piece);
	return 0;
}

void patcher_sync(void)
{
	lab_sync_site(under.site);
}

void patcher_sync_all(void)
{
	refuse_victim();
	under.synced = true;
	if (!under.holds)
		lab_sync_all(under.site);
}

int patcher_hold_all(int (*fn)(void *arg), void *arg)
{
	irq_state_t state = arch_irq_save();
	int err;

	refuse_victim();
	under.holds++;
	err = fn(arg);
	under.holds--;
	if (!arch_irqs_off())
		patcher_is_wrong("%s() switches interrupts on while all CPUs "
				 "are held, in %pS",
				 under.verb, (void *)fn);
	arch_irq_restore(state);
	if (!under.holds && under.synced)
		patcher_sync_all();
	stand_here();
	return err;
}

/* ---- the code's task ---- */

static int run_held(void *arg)
{
	(void)arg;
	return under.run(under.site);
}

static void patcher_main(void *arg)
{
	(void)arg;
	for (;;) {
		task_hold_self();
		if (task_should_stop())
			return;
		under.err = under.patcher->all_held ?
				    patcher_hold_all(run_held, NULL) :
				    under.run(under.site);
		under.ended = true;
	}
}

static void task_is_gone(void)
{
	task_join(under.task);
	under.task = NULL;
	under.ended = true;
}

static void catch_code(void)
{
	task_hold(under.task, 0, ~0ul);
	if (task_wait_held(under.task, RETURN_NS) && under.task->frame) {
		patcher_is_wrong("%s() does not return: it stands at %pS",
				 under.verb,
				 (void *)arch_frame_pc(under.task->frame));
		task_bury(under.task);
	}
	task_is_gone();
}

/* It has come to its next store, or to its end. */
static bool code_has_come(u64 ns)
{
	if (!under.released)
		task_release(under.task);
	under.released = !task_wait_held(under.task, ns);
	return !under.released;
}

/* On to its next store, or to its end. */
static void let_code_go(void)
{
	if (under.ended || code_has_come(RETURN_NS))
		return;
	under.released = false;
	if (under.task->state != TASK_DEAD) {
		catch_code();
		return;
	}
	patcher_is_wrong("%s() dies: %s at %pS", under.verb, under.fault.what,
			 (void *)under.fault.pc);
	task_is_gone();
}

static void let_code_end(void)
{
	while (!under.ended)
		let_code_go();
	if (under.err)
		patcher_is_wrong("%s() returns %d", under.verb, under.err);
}

static void begin_move(u8 to)
{
	const struct lab_patcher *p = under.patcher;

	under.verb = to == PATCHER_ON2 ? "retarget" : form_names[to];
	under.run = to == PATCHER_ON2 ? p->retarget : to ? p->on : p->off;
	under.form = to;
	under.stops = 0;
	under.err = 0;
	under.stored = false;
	under.ended = !under.task;
}

static void make_move(u8 to)
{
	begin_move(to);
	let_code_end();
}

/* Let what is under way end, and bring the site into a form. */
static void bring_into(u8 form)
{
	let_code_end();
	if (under.form == form)
		return;
	if (under.form && form)
		make_move(PATCHER_OFF);
	make_move(form == PATCHER_ON2 ? PATCHER_ON : form);
	if (form == PATCHER_ON2)
		make_move(PATCHER_ON2);
}

/* ---- the case ---- */

static const struct patcher_move *move_of(const struct lab_case *c)
{
	return &moves[c->move];
}

static int go_to(struct lab_case *c, unsigned int state)
{
	while (!under.ended && (under.stops < state || state == c->last)) {
		/* It waits for the task that is held inside the site. */
		if (c->waits && !under.released && !code_has_come(WAIT_NS) &&
		    under.task->state != TASK_DEAD)
			return -EBUSY;
		else if (!c->waits || under.released)
			let_code_go();
	}
	return under.wrong[0] || under.err ? -EIO : 0;
}

static int patcher_set(struct lab_case *c, unsigned int state)
{
	bring_into(move_of(c)->old);
	if (state) {
		begin_move(move_of(c)->new);
		return go_to(c, state);
	}
	return under.wrong[0] ? -EIO : 0;
}

static int patcher_step(struct lab_case *c, unsigned int from)
{
	/* Not once more, if it waited for the held task. */
	if (!from && under.form != move_of(c)->new)
		begin_move(move_of(c)->new);
	return go_to(c, from + 1);
}

/* One run that shows how many stores there are, and whether it may be judged. */
static void learn_stores(struct lab_case *c)
{
	bring_into(move_of(c)->old);
	begin_move(move_of(c)->new);
	while (!under.ended && under.stops <= STATES_MAX)
		let_code_go();
	if (!under.ended)
		patcher_is_wrong("%s() makes more than %u stores", under.verb,
				 STATES_MAX);
	else if (!under.err && !under.stops && c->length)
		patcher_is_wrong("%s() stores nothing", under.verb);
	else if (!under.err && under.stops && !under.synced)
		patcher_is_wrong("%s() synchronises no CPU behind its last "
				 "store, in %pS",
				 under.verb, under.caller);
	let_code_end();
	c->last = max(under.stops, 1u);
}

static unsigned int patcher_length(const struct lab_patcher *p)
{
	return p->victim ? p->length : arch_site_length;
}

static const char *what_is_missing(const struct lab_patcher *p)
{
	return !p->prepare ? "has no prepare()" :
	       !p->on	   ? "has no on()" :
	       !p->off	   ? "has no off()" :
	       patcher_length(p) - 1 >= LAB_SITE_MAX ?
			 "has a site of no bytes, or of more than 24" :
			 NULL;
}

static void begin_patcher(struct lab_run *r)
{
	struct lab_case *c = &r->test;
	const struct lab_patcher *p = c->arg;

	c->lo = c->victim->boundary[0];
	c->hi = c->victim->boundary[3] + 1;
	memset(&under, 0, sizeof(under));
	c->incomplete = what_is_missing(p);
	if (c->incomplete)
		return;
	under.patcher = p;
	under.site = c->victim->site;
	under.length = c->length;
	memcpy(under.before, (void *)under.site, under.length);
	under.task = task_create_expendable("patcher", PRIO_NORMAL, 1,
					    patcher_main, NULL);
	if (!under.task || !task_wait_held(under.task, RETURN_NS)) {
		c->incomplete = "out of memory";
		return;
	}
	under.task->fault = &under.fault;
	patch_step_hook = store_is_made;
	PATCH_HOOK_SET(patch_trap_hook, patch_trap, patcher_trap);
	under.verb = "prepare";
	under.run = p->prepare;
	let_code_end();
	learn_stores(c);
	if (under.wrong[0])
		c->incomplete = under.wrong;
}

static void end_patcher(struct lab_run *r)
{
	struct lab_case *c = &r->test;

	if (under.wrong[0])
		c->incomplete = under.wrong;
	if (under.task) {
		let_code_end();
		if (under.task) {
			task_stop(under.task);
			task_release(under.task);
			task_is_gone();
		}
	}
	patch_step_hook = NULL;
	PATCH_HOOK_SET(patch_trap_hook, patch_trap, NULL);
	if (under.length)
		lab_put_back(under.site, under.before, under.length);
}

bool patcher_trap(struct trap_frame *f)
{
	return under.patcher && under.patcher->trap && under.patcher->trap(f);
}
PATCH_INDIRECT(patch_trap, patcher_trap);
PATCH_INDIRECT_OPEN(patcher_trap);

static const struct lab_form *patcher_form(const struct lab_patcher *p, u8 form)
{
	static struct lab_form forms[PATCHER_FORMS];
	struct lab_form *f = &forms[form];

	f->name = form_names[form];
	memcpy(f->calls, p->calls[form], sizeof(f->calls));
	if (form && !f->calls[0] && !f->calls[1])
		f->calls[form - 1] = 1;
	return f;
}

void lab_patcher_case(struct lab_case *c, const struct lab_patcher *p, u8 move)
{
	const struct patcher_move *m = &moves[move];

	*c = (struct lab_case){
		.name = p->name,
		.from = p->from ? p->from : "-",
		.because = p->breaks[move] ? "claimed" : "not claimed",
		.strategy = p->all_held ? "all held" : "live",
		.old = form_names[m->old],
		.new = form_names[m->new],
		.victim = p->victim ? p->victim : &lab_victim_own,
		.before = patcher_form(p, m->old),
		.after = patcher_form(p, m->new),
		.breaks = p->breaks[move],
		.last = 1,
		.live = !p->all_held,
		.own = !p->victim,
		.ops = p->victim ? NULL : &lab_count_ops,
		.begin = begin_patcher,
		.end = end_patcher,
		.set = patcher_set,
		.step = patcher_step,
		.arg = p,
		.move = move,
		.length = patcher_length(p),
		.span = 2000,
	};
}

bool lab_case_patcher(struct lab_case *c, unsigned int *i)
{
	const struct lab_patcher *p;

	for_each_registered (p, lab_patchers) {
		unsigned int n = ARRAY_SIZE(moves) - !p->retarget;

		if (*i < n) {
			lab_patcher_case(c, p, *i);
			return true;
		}
		*i -= n;
	}
	return false;
}
