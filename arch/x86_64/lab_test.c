/* SPDX-License-Identifier: MIT */
/* Proves facts that the lab cannot enumerate: two CPUs at the same moment, an NMI before a wait. */
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/string.h>
#include <kernel/sched/balance.h>
#include <kernel/sched/hold.h>
#include <kernel/sched/task.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>
#include <tracer/lab/lab_internal.h>
#include <kernel/test/again.h>

/* ---- counts that are lost ---- */

/*
 * The same two schemes on lab_adds and on CPUs that run at the same time, so
 * that counts are lost where LAB_ATOMIC says that they may be. In each round:
 *
 *	the test, CPU 0		the adder, on another CPU
 *	writes form "up"	adds
 *				HELD at the site's last instruction
 *	writes form "smp"
 *	releases it, adds	adds, each time from where it was held on
 *
 * Each time, because one increment without a lock may be lucky, and where the
 * host runs the two CPUs in turns, the turn must end within an increment.
 */
#define ADDS 64u      /* in one go */
#define ROUND 100000u /* in a round, by each CPU and at least */
#define KICK_NS (50 * NSEC_PER_USEC)

extern const struct lab_victim lab_adds;
u32 lab_sum; /* lab_adds adds to it */

struct adder {
	unsigned int cpu;
	struct task *task;
	unsigned long from; /* the site, then where it was held */
	bool stop;
	u32 made; /* increments, by its own count */
};

static void add_until_stopped(void *arg)
{
	struct adder *a = arg;

	while (!READ_ONCE(a->stop)) {
		unsigned long from = READ_ONCE(a->from);

		((typeof(lab_adds.run))from)(ADDS, from - lab_adds.site);
		WRITE_ONCE(a->made, a->made + ADDS);
	}
}

/* Interrupt it until that is there: it may be anywhere in its loop. */
static bool hold_adder(struct adder *a, unsigned long pc)
{
	bool held = false;

	task_hold(a->task, pc, pc + 1);
	for (u64 ns = 0; !held && ns < KWAIT_NS; ns += KICK_NS) {
		cpu_kick(a->cpu);
		held = task_wait_held(a->task, KICK_NS);
	}
	task_hold(a->task, 0, 0);
	if (held)
		a->from = arch_frame_pc(a->task->frame);
	return held;
}

/* Both add, to the adder's end, and return how many counts are lost. */
static u32 add_both(struct adder *a)
{
	u32 made = 0, before = a->made;

	task_release(a->task);
	do {
		lab_adds.run(ADDS, 0);
		made += ADDS;
	} while (made < ROUND || READ_ONCE(a->made) - before < ROUND);
	WRITE_ONCE(a->stop, true);
	task_join(a->task);
	return made + a->made - READ_ONCE(lab_sum);
}

static u32 add_round(struct ktest_run *t, struct lab_case *c)
{
	struct adder a = { .cpu = nr_cpus, .from = lab_adds.site };
	u32 last = c->before->insn[1] ? c->before->insn[0] : 0;

	while (!cpu_online(--a.cpu))
		;
	lab_sum = 0;
	KEXPECT_EQ(t, c->set(c, 0), 0);
	a.task = task_create("adder", PRIO_NORMAL, 1u << a.cpu,
			     add_until_stopped, &a);
	KEXPECT(t, a.task && hold_adder(&a, lab_adds.site + last));
	KEXPECT_EQ(t, c->step(c, 0), 0);
	return a.task ? add_both(&a) : 0;
}

/* Rounds until counts are lost: how many, but not more than `most` rounds. */
static u32 lose_counts(struct ktest_run *t, const char *name, unsigned int most)
{
	const struct lab_scheme *scheme = __start_lab_schemes;
	static struct lab_scheme s;
	static struct lab_run r;
	cpumask_t before = current_task()->affinity;
	u32 lost = 0;

	while (strcmp(scheme->name, name) ||
	       strcmp(scheme->form[scheme->new].name, "smp"))
		scheme++;
	s = *scheme;
	s.victim = &lab_adds;
	lab_scheme_case(&r.test, &s);
	r.test.begin(&r);
	task_set_affinity(current_task(), 1);
	for (unsigned int i = 0; i < most && !lost && !t->failures; i++)
		lost = add_round(t, &r.test);
	task_set_affinity(current_task(), before);
	r.test.end(&r);
	return lost;
}

#define NEED_CPUS_AT_ONCE(t)                                                   \
	do {                                                                   \
		if (boot_info.icount)                                          \
			KSKIP(t, "under -icount CPUs take turns");             \
		KNEED_TWO(t);                                                  \
	} while (0)

static void add_bare(void *arg)
{
	(void)arg;
	for (u32 i = 0; i < 20 * ROUND; i++)
		asm volatile("incl %0" : "+m"(lab_sum));
}

/* Do two CPUs lose counts where neither has a lock? Bochs runs each instruction whole. */
static bool bare_counts_are_lost(struct ktest_run *t)
{
	cpumask_t before = current_task()->affinity;
	unsigned int cpu = nr_cpus;
	struct task *other;

	while (!cpu_online(--cpu))
		;
	lab_sum = 0;
	task_set_affinity(current_task(), 1);
	other = task_create("adder", PRIO_NORMAL, 1u << cpu, add_bare, NULL);
	add_bare(NULL);
	if (other)
		task_join(other);
	task_set_affinity(current_task(), before);
	KEXPECT(t, other);
	return lab_sum != 40 * ROUND;
}

KTEST(lab_lock90, "lab.lock_90_loses_counts")
{
	u32 lost;

	NEED_CPUS_AT_ONCE(t);
	lost = lose_counts(t, "lock-90", 400);
	if (!lost && !bare_counts_are_lost(t))
		KSKIP(t, "the machine runs each instruction whole");
	KEXPECT(t, lost > 0);
}

KTEST(lab_lock3e, "lab.lock_3e_loses_none")
{
	NEED_CPUS_AT_ONCE(t);
	KEXPECT_EQ(t, lose_counts(t, "lock-3e", 10), 0);
}

/*
 * With one CPU online a byte stands in place of each lock prefix. It must be a prefix
 * that means nothing there (SDM 2A, 2.1.1: 26, 2e, 36, 3e), so that the instruction
 * stays one: a task may have been preempted before it.
 */
KTEST(lab_prefix, "arch.smp_atomics.prefix")
{
	unsigned int wrong = 0, c;

	for (c = 1; c < nr_cpus; c++)
		KEXPECT_EQ(t, cpu_down(c), 0);
	for (unsigned int i = 0; i < lock_count; i++) {
		u8 byte = (u8)_text[lock_table[i]];

		wrong += (byte & 0xe7) != 0x26;
	}
	for (c = 1; c < nr_cpus; c++)
		KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT_EQ(t, wrong, 0);
}

void lab_wait_behind_nmi(void); /* lab.S */

/* An interrupt of the vector is pending: how long does the CPU wait for one, in ns? */
static u64 wait_behind_nmi(u32 vector)
{
	u64 start, took;

	preempt_disable();
	arch_irq_disable();
	start = arch_clock();
	lapic_command(cpus[cpu_index()].hwid, ICR_FIXED | vector);
	lab_wait_behind_nmi();
	took = arch_clock() - start;
	arch_irq_enable();
	preempt_enable();
	return clock_delta_to_ns(took);
}

/* Else the CPU sleeps until its next tick. Without -icount the host decides how long all takes. */
KTEST(lab_wait, "arch.cpu_idle.behind_nmi")
{
	u64 longest = 0;

	for (unsigned int i = 0; i < 20; i++)
		longest = max(longest,
			      wait_behind_nmi(i % 2 ? VECTOR_NAP : VECTOR_IPI));
	KEXPECT(t, !boot_info.icount || longest < TICK_NS / 2);
}
