/* SPDX-License-Identifier: MIT */
/*
 * The hold sweep. A trial sets a one-shot timer a fixed time ahead, turns a loop
 * a counted number of times and runs the victim's site. Under -icount each
 * instruction takes the same time, so that one turn more moves the interrupt one
 * instruction towards the victim's beginning. A first sweep, which holds nothing,
 * shows at which addresses interrupts come, and after how many turns, then the
 * victim is held at one of them.
 *
 * The task that runs victims is held whenever it has nothing to do
 * (task_hold_self()), so that waiting for "nothing to do", "stands at the
 * boundary" and "dead" is one and the same.
 *
 *	lab			victim's task
 *	job set, released
 *				job: trials until one is held
 *	lab_hold() returns	HELD in the middle of the victim
 *	patches
 *	lab_finish(): released	the rest of the victim
 *				done, held by itself
 */
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/sched/balance.h>
#include <kernel/test/ktest.h>
#include <tracer/lab/lab_internal.h>
#include <kernel/sched/hold.h>

/*
 * Guest time until something is given up as hanging: for a job of many trials,
 * and for the rest of one. A job may go over a boundary for a few hundred times.
 */
#define JOB_NS (1500 * NSEC_PER_MSEC)
#define REST_NS (8 * NSEC_PER_MSEC)
#define CATCH_NS (100 * NSEC_PER_MSEC)

#define AHEAD_INSTRUCTIONS 1500 /* about: setting a timer costs some itself */
#define DELAY_MAX 60000
#define PROBES 5  /* trials that say whether a delay is long enough */
#define SWEEPS 12 /* a clock of coarse ticks leaves a few instructions' play */
#define DELAY_BYTES 16 /* the loop that makes a delay is shorter */
#define DELAY_SEEN 48  /* interrupts in it, one after the other, end a sweep */
#define DITHER 24      /* delays around the one that was right in the sweep */
#define ROUNDS 48      /* and how often they are gone through */

/* ---- in the victim's task ---- */

/*
 * Interrupts stay off from the clock's edge until the timer is set, so that the
 * same number of instructions passes from there to the site each time. Where a
 * tick is no whole number of instructions, which of them the edge meets depends on
 * when the trial began: anywhere in it, or one boundary could be missed each time. At random,
 * because the delay grows with the trials: a number that does, too, meets some places seldom.
 * Returns where the interrupt came, 0 if not before the end.
 */
static unsigned long try_hold(struct lab_task *l, unsigned int delay)
{
	unsigned long threes = delay & 1, twos = (delay - 3 * threes) / 2;
	struct task *me = current_task();
	irq_state_t state = arch_irq_save();
	static u32 seed = 1;
	u64 start, now;

	for (unsigned int n = ktest_random(&seed) % 101; n; n--)
		asm volatile("");
	lab_own_room();
	start = arch_clock();
	lab_calls[0] = lab_calls[1] = 0;
	l->fault_damage = 0;
	me->interrupted_pc = 0;
	do
		now = arch_clock();
	while (now == start);
	arch_timer_set(now + l->ahead);
	arch_irq_restore(state);
	l->damage = l->victim->run(twos, threes);
	l->damage |= l->fault_damage;
	return READ_ONCE(me->interrupted_pc);
}

/*
 * The timer's interrupt comes before the victim's end. In a few trials an interrupt of another kind
 * comes, or the other CPU runs while this one sets the timer, so that it is late.
 */
static bool comes_in_time(struct lab_task *l, unsigned int delay)
{
	unsigned int times = 0;

	for (int i = 0; i < PROBES; i++)
		times += try_hold(l, delay) != 0;
	return times > PROBES / 2;
}

/*
 * The fewest instructions of delay with which the interrupt comes before the victim's end. With no
 * delay at all it must come behind the victim: each trial takes twice as long until it does.
 */
static unsigned int find_first(struct lab_task *l)
{
	unsigned int lo = 2, hi = 128, mid;

	while (comes_in_time(l, lo) && l->ahead < ~0ull / 4)
		l->ahead *= 2;
	while (!comes_in_time(l, hi) && hi < DELAY_MAX / 2)
		hi *= 2;
	while (lo + 1 < hi) {
		mid = (lo + hi) / 2;
		if (comes_in_time(l, mid))
			hi = mid;
		else
			lo = mid;
	}
	return hi;
}

/* An address' place in them, or LAB_REGION. Those beside come last. */
static unsigned int map_place(const struct lab_map *m, unsigned long pc)
{
	if (m->beside && pc - m->beside < LAB_BYPASS_SIZE)
		return LAB_REGION - LAB_BYPASS_SIZE + (pc - m->beside);
	return pc >= m->lo && pc < m->hi ? pc - m->lo : LAB_REGION;
}

static void note_seen(struct lab_map *m, unsigned long pc, unsigned int delay)
{
	unsigned int at = map_place(m, pc);

	if (at == LAB_REGION)
		return;
	if (!m->delay[at])
		m->delay[at] = delay + 1;
	m->times[at] = min(m->times[at] + 1, 255);
}

/* The address is in the code before the victim's boundaries, and no farther from `other` than a
 * delay's loop. */
static bool in_loop(const struct lab_victim *v, unsigned long pc,
		    unsigned long other)
{
	return pc >= (unsigned long)v->run && pc < v->boundary[0] &&
	       max(pc, other) - min(pc, other) < DELAY_BYTES;
}

/* A longer delay brings the interrupt nearer to the victim's beginning. Where it comes in the
 * delay itself, again and again, no boundary is left. */
static void sweep_once(struct lab_task *l)
{
	unsigned long pc, loop = 0;
	unsigned int seen = 0;

	for (unsigned int d = l->first;
	     d < l->first + l->span && seen < DELAY_SEEN; d += 1 + (d == 2)) {
		pc = try_hold(l, d);
		note_seen(l->map, pc, d);
		if (!in_loop(l->victim, pc, loop)) {
			loop = pc;
			seen = 0;
		}
		seen++;
	}
}

static void sweep_job(struct lab_task *l)
{
	unsigned int first = find_first(l);

	l->first = first - min(first - 2, 12u);
	for (int i = 0; i < SWEEPS; i++)
		sweep_once(l);
}

/* Nearest first: +0, +1, -1, +2, -2, ... */
static void hold_job(struct lab_task *l)
{
	for (int i = 0; i < ROUNDS * DITHER && !READ_ONCE(l->stop); i++) {
		int off = i % DITHER, d = (off + 1) / 2;

		d = (int)l->delay + (off & 1 ? d : -d);
		try_hold(l, d < 4 ? 4 : d);
	}
	/* The sweep saw some other interrupt there: look everywhere. */
	for (unsigned int i = 0; i < SWEEPS * l->span; i++)
		if (!READ_ONCE(l->stop))
			try_hold(l, max(l->first, 4u) + i % l->span);
}

static void once_job(struct lab_task *l)
{
	lab_calls[0] = lab_calls[1] = 0;
	l->fault_damage = 0;
	l->damage = l->victim->run(0, 0);
	l->damage |= l->fault_damage;
}

/* The timer was taken from the kernel: an interrupt now gives it back. */
static void return_timer(void)
{
	irq_state_t state = arch_irq_save();

	arch_timer_set(arch_clock());
	arch_irq_restore(state);
}

static void lab_task_main(void *arg)
{
	struct lab_task *l = arg;

	for (;;) {
		task_hold_self();
		if (task_should_stop())
			return;
		l->job(l);
		memcpy(l->calls, lab_calls, sizeof(l->calls));
		return_timer();
		l->done = true;
	}
}

static bool fix_fault(struct trap_frame *f)
{
	struct lab_task *l =
		container_of(current_task()->fault, struct lab_task, fault);

	return l->scheme && l->scheme->fault &&
	       l->scheme->fault(f, l->victim->site, &l->fault_damage);
}

/* ---- in the lab's ---- */

static u64 ticks_ahead(void)
{
	u64 start = arch_clock();

	for (int i = 0; i < 10 * AHEAD_INSTRUCTIONS; i++)
		asm volatile("");
	return (arch_clock() - start) / 20 + 2;
}

/* One that died is replaced by a new one. */
static int get_ready(struct lab_task *l)
{
	if (l->task)
		return 0;
	l->fault = (struct task_fault){ .fix = fix_fault };
	l->task = task_create_expendable("victim", PRIO_NORMAL, 1u << l->cpu,
					 lab_task_main, l);
	if (!l->task)
		return -ENOMEM;
	l->task->fault = &l->fault;
	if (!task_wait_held(l->task, JOB_NS))
		panic("lab: CPU %u does not run the victim's task", l->cpu);
	return 0;
}

int lab_task_start(struct lab_task *l, unsigned int cpu)
{
	*l = (struct lab_task){ .cpu = cpu, .ahead = ticks_ahead() };
	return get_ready(l);
}

static void bury_task(struct lab_task *l)
{
	task_join(l->task);
	l->task = NULL;
}

void lab_task_stop(struct lab_task *l)
{
	if (!l->task)
		return;
	task_stop(l->task);
	task_release(l->task);
	bury_task(l);
}

/* Wherever it is, it is a task that takes interrupts, or nothing helps. */
static enum lab_end catch_lost(struct lab_task *l)
{
	task_hold(l->task, 0, ~0ul);
	if (task_wait_held(l->task, CATCH_NS)) {
		l->lost_pc = l->task->frame ? arch_frame_pc(l->task->frame) : 0;
		task_bury(l->task);
	} else if (l->task->state != TASK_DEAD) {
		panic("lab: a victim cannot be caught: interrupts are off");
	}
	bury_task(l);
	return LAB_LOST;
}

static enum lab_end wait_end(struct lab_task *l, u64 ns)
{
	if (task_wait_held(l->task, ns))
		return l->done ? LAB_DONE : LAB_HELD;
	if (l->task->state != TASK_DEAD)
		return catch_lost(l);
	memcpy(l->calls, lab_calls, sizeof(l->calls));
	bury_task(l);
	return LAB_DIED;
}

static enum lab_end start_job(struct lab_task *l,
			      void (*job)(struct lab_task *l), u64 ns)
{
	l->job = job;
	l->done = l->stop = false;
	l->damage = 0;
	l->fault.what = NULL;
	task_release(l->task);
	return wait_end(l, ns);
}

enum lab_end lab_once(struct lab_task *l, const struct lab_victim *v)
{
	if (get_ready(l))
		return LAB_LOST;
	l->victim = v;
	return start_job(l, once_job, REST_NS);
}

enum lab_end lab_sweep(struct lab_task *l, const struct lab_victim *v,
		       struct lab_map *map, unsigned int span)
{
	if (get_ready(l))
		return LAB_LOST;
	l->victim = v;
	l->map = map;
	l->span = span;
	return start_job(l, sweep_job, JOB_NS);
}

bool lab_hold(struct lab_task *l, unsigned long pc)
{
	unsigned int seen = l->map->delay[map_place(l->map, pc)];
	enum lab_end end;

	if (!seen || get_ready(l))
		return false;
	l->delay = seen - 1;
	task_hold(l->task, pc, pc + 1);
	end = start_job(l, hold_job, JOB_NS);
	if (end == LAB_HELD)
		return true;
	if (l->task)
		task_hold(l->task, 0, 0);
	return false;
}

void lab_kill(struct lab_task *l)
{
	task_bury(l->task);
	bury_task(l);
}

enum lab_end lab_finish(struct lab_task *l)
{
	l->stop = true;
	task_hold(l->task, 0, 0);
	task_release(l->task);
	return wait_end(l, REST_NS);
}
