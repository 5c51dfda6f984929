/* SPDX-License-Identifier: MIT */
/*
 * Proves that no task and no timer is lost with its CPU: tasks that run, sleep or
 * are blocked there move to another CPU and come back, and timers fire elsewhere.
 */
#include <kernel/cpu/hotplug.h>
#include <kernel/lib/list.h>
#include <kernel/lock/wait.h>
#include <kernel/sched/task.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

struct runner {
	struct task *task;
	u32 rounds;
	u32 seen; /* the CPU it last ran on */
};

static void run_on(void *arg)
{
	struct runner *r = arg;

	while (!task_should_stop()) {
		WRITE_ONCE(r->seen, cpu_index());
		WRITE_ONCE(r->rounds, r->rounds + 1);
		arch_cpu_relax();
	}
}

static bool start_runner(struct runner *r, cpumask_t mask)
{
	*r = (struct runner){ .seen = MAX_CPUS };
	r->task = task_create("runner", PRIO_LOW, mask, run_on, r);
	return r->task;
}

static void end_runner(struct runner *r)
{
	task_stop(r->task);
	task_join(r->task);
}

/* The runner makes progress, and from then on never on CPU `not`. */
static bool runs_off(struct runner *r, unsigned int not )
{
	u32 before = READ_ONCE(r->rounds);

	return KWAIT(READ_ONCE(r->rounds) - before > 10) &&
	       READ_ONCE(r->seen) != not ;
}

KTEST(hotplug_bound, "hotplug.bound_task")
{
	static struct runner r;
	unsigned int c = ktest_last_cpu();

	KNEED_TWO(t);
	KASSERT(t, start_runner(&r, 1u << c));
	KEXPECT(t, KWAIT(READ_ONCE(r.seen) == c));
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT(t, runs_off(&r, c));
	KEXPECT_EQ(t, r.task->affinity, 1u << c);
	KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT(t, KWAIT(READ_ONCE(r.seen) == c));
	end_runner(&r);
}

/*
 * There is one task for each CPU. They share the CPUs that are left, and spread again.
 */
KTEST(hotplug_spread, "hotplug.tasks_spread")
{
	static struct runner r[MAX_CPUS];
	unsigned int c = ktest_last_cpu();

	KNEED_TWO(t);
	for (unsigned int i = 0; i < nr_cpus; i++)
		KASSERT(t, start_runner(&r[i], ~0u));
	KEXPECT_EQ(t, cpu_down(c), 0);
	for (unsigned int i = 0; i < nr_cpus; i++)
		KEXPECT(t, runs_off(&r[i], c));
	KEXPECT_EQ(t, cpu_up(c), 0);
	/* This task keeps off the CPU, which has to run one of them. */
	task_set_affinity(current_task(), ~(1u << c));
	KEXPECT(t, KWAIT(READ_ONCE(cpus[c].rq.running_prio) == PRIO_LOW));
	task_set_affinity(current_task(), ~0u);
	for (unsigned int i = 0; i < nr_cpus; i++)
		end_runner(&r[i]);
}

static void take_own_cpu_down(void *arg)
{
	struct runner *r = arg;

	r->rounds = cpu_down(ktest_last_cpu());
	r->seen = cpu_index();
}

/* A task takes the CPU down that it runs on. */
KTEST(hotplug_self, "hotplug.by_its_own_task")
{
	unsigned int c = ktest_last_cpu();
	struct runner r;

	KNEED_TWO(t);
	task_join(task_create("saw", PRIO_NORMAL, 1u << c, take_own_cpu_down,
			      &r));
	KEXPECT_EQ(t, r.rounds, 0);
	KEXPECT(t, r.seen != c);
	KEXPECT(t, !cpu_online(c));
	KEXPECT_EQ(t, cpu_up(c), 0);
}

struct sleeper {
	struct task *task;
	u64 ns, start, slept;
	u32 woken_on;
};

static void sleep_there(void *arg)
{
	struct sleeper *s = arg;

	s->start = time_ns();
	task_sleep(s->ns);
	s->slept = time_ns() - s->start;
	s->woken_on = cpu_index();
}

/* The last sleeper sleeps for this long. Was its timer not yet due when its CPU had gone? */
static bool sleep_while_going(struct ktest_run *t, unsigned int c, u64 longest)
{
	static struct sleeper s[5];
	const struct sleeper *last = &s[ARRAY_SIZE(s) - 1];
	bool early;
	u64 gone;

	for (unsigned int i = 0; i < ARRAY_SIZE(s); i++) {
		s[i].ns = longest * (i + 1) / ARRAY_SIZE(s);
		s[i].task = task_create("sleeper", PRIO_NORMAL, 1u << c,
					sleep_there, &s[i]);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(s); i++)
		KEXPECT(t, KWAIT(READ_ONCE(s[i].task->timer.armed) ||
				 READ_ONCE(s[i].task->state) == TASK_DEAD));
	KEXPECT_EQ(t, cpu_down(c), 0);
	gone = time_ns();
	for (unsigned int i = 0; i < ARRAY_SIZE(s); i++) {
		task_join(s[i].task);
		KEXPECT(t, s[i].slept >= s[i].ns);
	}
	early = gone - last->start < last->ns;
	KEXPECT(t, !early || last->woken_on != c);
	KEXPECT_EQ(t, cpu_up(c), 0);
	return early;
}

/* On a slow host a CPU may take longer to go than the tasks sleep: then they sleep longer. */
KTEST(hotplug_sleepers, "hotplug.sleeping_tasks")
{
	u64 ns = 100 * NSEC_PER_MSEC;

	KNEED_TWO(t);
	while (!sleep_while_going(t, ktest_last_cpu(), ns))
		ns *= 2;
}

struct bell {
	struct timer timer;
	u64 ns;
	u32 rung, rung_on;
};

static void strike_bell(struct timer *timer)
{
	struct bell *b = container_of(timer, struct bell, timer);

	b->rung_on = cpu_index();
	WRITE_ONCE(b->rung, b->rung + 1);
}

static void set_bell(void *arg)
{
	struct bell *b = arg;

	timer_start(&b->timer, b->ns);
}

KTEST(hotplug_timers, "hotplug.timers")
{
	static struct bell soon, late;
	unsigned int c = ktest_last_cpu();

	KNEED_TWO(t);
	soon = (struct bell){ .ns = 50 * NSEC_PER_MSEC };
	late = (struct bell){ .ns = 100 * NSEC_PER_SEC };
	timer_setup(&soon.timer, strike_bell);
	timer_setup(&late.timer, strike_bell);
	cpu_call(1u << c, set_bell, &late);
	cpu_call(1u << c, set_bell, &soon);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT(t, list_empty(&cpus[c].timers.timers));
	KEXPECT(t, late.timer.armed && late.timer.cpu != c);
	KEXPECT(t, KWAIT(READ_ONCE(soon.rung)));
	timer_cancel(&late.timer);
	KEXPECT(t, !late.timer.armed);
	KEXPECT_EQ(t, cpu_up(c), 0);
	/* The CPU that is back runs its own timers again. */
	soon.ns = NSEC_PER_MSEC;
	cpu_call(1u << c, set_bell, &soon);
	KEXPECT(t, KWAIT(READ_ONCE(soon.rung) == 2));
	KEXPECT_EQ(t, soon.rung_on, c);
	KEXPECT_EQ(t, late.rung, 0);
}

static struct wait_queue gate = WAIT_QUEUE_INIT(gate);
static bool gate_open;

static void pass_gate(void *arg)
{
	u32 *passed = arg;

	wait_event(&gate, READ_ONCE(gate_open));
	*passed = 1 + cpu_index();
}

/*
 * A task is blocked when its CPU goes. It is woken while the CPU is away, and again
 * when the CPU is back.
 */
KTEST(hotplug_blocked, "hotplug.blocked_tasks")
{
	unsigned int c = ktest_last_cpu();

	KNEED_TWO(t);
	for (int back = 0; back < 2; back++) {
		struct task *task;
		u32 passed = 0;

		gate_open = false;
		task = task_create("gate", PRIO_NORMAL, 1u << c, pass_gate,
				   &passed);
		KEXPECT(t, KWAIT(READ_ONCE(task->state) == TASK_BLOCKED));
		KEXPECT_EQ(t, cpu_down(c), 0);
		if (back)
			KEXPECT_EQ(t, cpu_up(c), 0);
		WRITE_ONCE(gate_open, true);
		wake_all(&gate);
		task_join(task);
		KEXPECT(t, passed && (passed == 1 + c) == back);
		KEXPECT_EQ(t, cpu_up(c), 0);
	}
}
