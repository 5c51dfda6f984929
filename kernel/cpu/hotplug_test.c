/*
 * Proves that CPUs go and come back with nothing lost: tasks, timers, calls,
 * rendezvous; and that what cannot be done is refused and changes nothing.
 */
#include <boot/boot_info.h>
#include <kernel/lib/bits.h>
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/symbols.h>
#include <kernel/test/ktest.h>
#include <kernel/patch_path.h>
#include <kernel/cpu/stop.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/lock/wait.h>

#define KNEED_TWO(t)                                                           \
	do {                                                                   \
		if (!(cpus_online & ~1u))                                      \
			KSKIP(t, "one CPU");                                   \
	} while (0)

/* The CPU that goes and comes in tests of one: the last. */
static unsigned int last_cpu(void)
{
	return bit_highest(cpus_online);
}

static void note_cpu(void *arg)
{
	__atomic_fetch_or((cpumask_t *)arg, 1u << cpu_index(),
			  __ATOMIC_RELAXED);
}

static cpumask_t who_answers(void)
{
	cpumask_t mask = 0;

	cpu_call(~0u, note_cpu, &mask);
	return mask;
}

KTEST(hotplug_each, "hotplug.down_up")
{
	cpumask_t all = cpus_online;

	KNEED_TWO(t);
	for (unsigned int round = 0; round < 3; round++)
		for (unsigned int c = 1; c < nr_cpus; c++) {
			KEXPECT_EQ(t, cpu_down(c), 0);
			KEXPECT_EQ(t, cpus_online, all & ~(1u << c));
			KEXPECT_EQ(t, who_answers(), all & ~(1u << c));
			KEXPECT(t, !task_create("none", PRIO_LOW, 1u << c,
						note_cpu, NULL));
			KEXPECT_EQ(t, cpu_up(c), 0);
			KEXPECT_EQ(t, cpus_online, all);
			KEXPECT_EQ(t, who_answers(), all);
		}
}

/* All but CPU 0 at once, then back in another order. */
KTEST(hotplug_all, "hotplug.alone")
{
	cpumask_t all = cpus_online;

	KNEED_TWO(t);
	for (unsigned int c = 1; c < nr_cpus; c++)
		KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, cpus_online, 1);
	KEXPECT_EQ(t, who_answers(), 1);
	task_sleep(NSEC_PER_MSEC);
	for (unsigned int c = nr_cpus - 1; c; c--)
		KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT_EQ(t, who_answers(), all);
}

KTEST(hotplug_refused, "hotplug.refused")
{
	cpumask_t all = cpus_online;
	unsigned int c = last_cpu();

	KEXPECT_EQ(t, cpu_down(0), -EPERM);
	KEXPECT_EQ(t, cpu_up(0), 0);
	KEXPECT_EQ(t, cpu_down(nr_cpus), -ENODEV);
	KEXPECT_EQ(t, cpu_up(nr_cpus), -ENODEV);
	KEXPECT_EQ(t, cpus_online, all);
	KNEED_TWO(t);
	KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, cpus_online, all & ~(1u << c));
	KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT_EQ(t, cpus_online, all);
}

/* ---- files ---- */

#define DIR "/sys/devices/system/cpu/"

static bool file_says(const char *name, const char *want)
{
	char path[64], text[32];
	struct ctl_handle *h;
	ssize_t n;

	snprintf(path, sizeof(path), DIR "%s", name);
	if (ctl_open(path, false, false, &h))
		return false;
	n = ctl_read(h, text, sizeof(text) - 1);
	ctl_abandon(h);
	text[max(n, (ssize_t)0)] = '\0';
	return !strcmp(text, want);
}

/* The error, with exactly one line that explains it. */
static int refused(unsigned int c, const char *text)
{
	char path[64], error[160] = "";
	int err;

	snprintf(path, sizeof(path), DIR "cpu%u/online", c);
	err = ctl_echo(path, text, false, error, sizeof(error));
	return *error && !strchr(error, '\n') ? err : 0;
}

KTEST(hotplug_files, "hotplug.files")
{
	static const char *const wrong[] = { "2", "on", "00", "-1", "1 0", "" };
	cpumask_t all = cpus_online;
	char range[16];

	if (nr_cpus > 1)
		snprintf(range, sizeof(range), "0-%u\n", nr_cpus - 1);
	else
		snprintf(range, sizeof(range), "0\n");
	KEXPECT(t, file_says("online", range));
	KEXPECT(t, file_says("present", range));
	KEXPECT(t, file_says("cpu0/online", "1\n"));
	for (unsigned int i = 0; i < ARRAY_SIZE(wrong); i++)
		KEXPECT_EQ(t, refused(nr_cpus - 1, wrong[i]), -EINVAL);
	KEXPECT_EQ(t, refused(0, "0"), -EPERM);
	if (nr_cpus < boot_info.nr_cpus)
		KEXPECT_EQ(t, refused(nr_cpus, "1"), -ENODEV);
	KEXPECT_EQ(t, cpus_online, all);
}

KTEST(hotplug_list, "hotplug.files.list")
{
	if (nr_cpus != 4)
		KSKIP(t, "four CPUs are needed");
	KEXPECT(t, !ctl_echo(DIR "cpu1/online", "0", false, NULL, 0));
	KEXPECT(t, file_says("cpu1/online", "0\n"));
	KEXPECT(t, file_says("online", "0,2-3\n"));
	cpu_down(3);
	KEXPECT(t, file_says("online", "0,2\n"));
	cpu_down(2);
	KEXPECT(t, file_says("online", "0\n"));
	KEXPECT(t, file_says("present", "0-3\n"));
	for (unsigned int c = 1; c < 4; c++)
		KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT(t, file_says("online", "0-3\n"));
}

/* ---- tasks ---- */

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

/* It makes progress, and (once it does) never on `not`. */
static bool runs_off(struct runner *r, unsigned int not )
{
	u32 before = READ_ONCE(r->rounds);

	return KWAIT(READ_ONCE(r->rounds) - before > 10) &&
	       READ_ONCE(r->seen) != not ;
}

KTEST(hotplug_bound, "hotplug.bound_task")
{
	static struct runner r;
	unsigned int c = last_cpu();

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

/* One for each CPU, anywhere: they share what is left, and spread again. */
KTEST(hotplug_spread, "hotplug.tasks_spread")
{
	static struct runner r[MAX_CPUS];
	unsigned int c = last_cpu();

	KNEED_TWO(t);
	for (unsigned int i = 0; i < nr_cpus; i++)
		KASSERT(t, start_runner(&r[i], ~0u));
	KEXPECT_EQ(t, cpu_down(c), 0);
	for (unsigned int i = 0; i < nr_cpus; i++)
		KEXPECT(t, runs_off(&r[i], c));
	KEXPECT_EQ(t, cpu_up(c), 0);
	/* On the CPU itself, which runs one of them, and not this task. */
	task_set_affinity(current_task(), ~(1u << c));
	KEXPECT(t, KWAIT(READ_ONCE(cpus[c].rq.running_prio) == PRIO_LOW));
	task_set_affinity(current_task(), ~0u);
	for (unsigned int i = 0; i < nr_cpus; i++)
		end_runner(&r[i]);
}

static void saw(void *arg)
{
	struct runner *r = arg;

	r->rounds = cpu_down(last_cpu());
	r->seen = cpu_index();
}

/* The branch that one sits on. */
KTEST(hotplug_self, "hotplug.by_its_own_task")
{
	unsigned int c = last_cpu();
	struct runner r;

	KNEED_TWO(t);
	task_join(task_create("saw", PRIO_NORMAL, 1u << c, saw, &r));
	KEXPECT_EQ(t, r.rounds, 0);
	KEXPECT(t, r.seen != c);
	KEXPECT(t, !cpu_online(c));
	KEXPECT_EQ(t, cpu_up(c), 0);
}

struct sleeper {
	struct task *task;
	u64 ns, slept;
	u32 woken_on;
};

static void sleep_there(void *arg)
{
	struct sleeper *s = arg;
	u64 start = time_ns();

	task_sleep(s->ns);
	s->slept = time_ns() - start;
	s->woken_on = cpu_index();
}

KTEST(hotplug_sleepers, "hotplug.sleeping_tasks")
{
	static struct sleeper s[5];
	unsigned int c = last_cpu();

	KNEED_TWO(t);
	for (unsigned int i = 0; i < ARRAY_SIZE(s); i++) {
		s[i].ns = (20 + 20 * i) * NSEC_PER_MSEC;
		s[i].task = task_create("sleeper", PRIO_NORMAL, 1u << c,
					sleep_there, &s[i]);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(s); i++)
		KEXPECT(t, KWAIT(READ_ONCE(s[i].task->timer.armed) ||
				 READ_ONCE(s[i].task->state) == TASK_DEAD));
	KEXPECT_EQ(t, cpu_down(c), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(s); i++) {
		task_join(s[i].task);
		KEXPECT(t, s[i].slept >= s[i].ns);
	}
	/* The last one's timer was not due while its CPU went. */
	KEXPECT(t, s[ARRAY_SIZE(s) - 1].woken_on != c);
	KEXPECT_EQ(t, cpu_up(c), 0);
}

struct bell {
	struct timer timer;
	u64 ns;
	u32 rung, rung_on;
};

static void strike(struct timer *timer)
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
	unsigned int c = last_cpu();

	KNEED_TWO(t);
	soon = (struct bell){ .ns = 50 * NSEC_PER_MSEC };
	late = (struct bell){ .ns = 100 * NSEC_PER_SEC };
	timer_setup(&soon.timer, strike);
	timer_setup(&late.timer, strike);
	cpu_call(1u << c, set_bell, &late);
	cpu_call(1u << c, set_bell, &soon);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT(t, list_empty(&cpus[c].timers.timers));
	KEXPECT(t, late.timer.armed && late.timer.cpu != c);
	KEXPECT(t, KWAIT(READ_ONCE(soon.rung)));
	timer_cancel(&late.timer);
	KEXPECT(t, !late.timer.armed);
	KEXPECT_EQ(t, cpu_up(c), 0);
	/* And its own work again. */
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

/* Blocked when its CPU goes, woken when it is away, and once it is back. */
KTEST(hotplug_blocked, "hotplug.blocked_tasks")
{
	unsigned int c = last_cpu();

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

/* ---- what happens when ---- */

struct seen_event {
	u32 cpu, event, on, online, irqs_off;
};
static struct seen_event seen_events[8];
static u32 nr_seen;

static notrace void see_event(unsigned int c, enum cpu_event event)
{
	struct seen_event *e = &seen_events[nr_seen++ % 8];

	e->cpu = c;
	e->event = event;
	e->on = arch_this_cpu()->head.index;
	e->online = READ_ONCE(cpus_online) >> c & 1;
	e->irqs_off = arch_irqs_off();
}
PATCH_INDIRECT(cpu_tell, see_event);

KTEST(hotplug_events, "hotplug.events")
{
	static const struct {
		enum cpu_event event;
		u32 online;
	} want[] = { { CPU_EVENT_LEFT, 0 },
		     { CPU_EVENT_JOINED, 1 },
		     { CPU_EVENT_SYNCED, 1 } };
	void (*before)(unsigned int, enum cpu_event) = cpu_event_hook;
	unsigned int c = last_cpu();

	KNEED_TWO(t);
	nr_seen = 0;
	PATCH_HOOK_SET(cpu_event_hook, cpu_tell, see_event);
	cpu_down(c);
	cpu_up(c);
	PATCH_HOOK_SET(cpu_event_hook, cpu_tell, before);
	KASSERT(t, nr_seen == ARRAY_SIZE(want));
	for (u32 i = 0; i < ARRAY_SIZE(want); i++) {
		KEXPECT_EQ(t, seen_events[i].cpu, c);
		KEXPECT_EQ(t, seen_events[i].on, c);
		KEXPECT_EQ(t, seen_events[i].event, want[i].event);
		KEXPECT_EQ(t, seen_events[i].online, want[i].online);
		KEXPECT(t, seen_events[i].irqs_off);
	}
}

/* ---- against calls and rendezvous that count on the set of CPUs ---- */

struct meeting {
	u32 members; /* in cpus_online, told by change() or by the first call */
	u32 came;
	u32 wrong, held;
};

static notrace void meet_change(void *arg)
{
	struct meeting *m = arg;
	cpumask_t online = READ_ONCE(cpus_online);

	m->members = 0;
	for (; online; online &= online - 1)
		m->members++;
}

static notrace void meet_sync(void *arg)
{
	__atomic_fetch_add(&((struct meeting *)arg)->came, 1, __ATOMIC_RELAXED);
}

/* Every CPU that is online in the rendezvous syncs in it, and no other CPU does. */
PATCH_INDIRECT(stop_lead, meet_change);
PATCH_INDIRECT(stop_lead, meet_sync);
PATCH_INDIRECT(stop_hold, meet_sync);

static void meet(void *arg)
{
	struct meeting *m = arg;
	struct stop_work w = { meet_change, meet_sync, m, 0 };

	while (!task_should_stop()) {
		m->came = 0;
		m->wrong += stop_cpus(&w) || m->came != m->members;
		WRITE_ONCE(m->held, m->held + 1);
		arch_cpu_relax();
	}
}

static void count_call(void *arg)
{
	struct meeting *m = arg;
	cpumask_t online = READ_ONCE(cpus_online);

	/* The same for all of one call. */
	if (!__atomic_fetch_add(&m->came, 1, __ATOMIC_RELAXED))
		m->members = online;
	else if (READ_ONCE(m->members) && m->members != online)
		m->wrong++;
}

static u32 count_bits(u32 bits)
{
	u32 n = 0;

	for (; bits; bits &= bits - 1)
		n++;
	return n;
}

static void call_round(void *arg)
{
	struct meeting *m = arg;

	while (!task_should_stop()) {
		m->came = m->members = 0;
		m->wrong += cpu_call(~0u, count_call, m) ||
			    m->came != count_bits(m->members);
		WRITE_ONCE(m->held, m->held + 1);
		arch_cpu_relax();
	}
}

static void breed(void *arg)
{
	struct meeting *m = arg;

	while (!task_should_stop()) {
		struct task *child = task_create("child", PRIO_LOW + 1, ~0u,
						 note_cpu, &m->members);

		m->wrong += !child || task_join(child);
		WRITE_ONCE(m->held, m->held + 1);
		arch_cpu_relax();
	}
}

/* Random CPUs down and up; all are up at the end. How many went and came. */
static u32 toggle_cpus(u32 seed, u32 rounds)
{
	u32 done = 0;

	while (rounds--) {
		unsigned int c = 1 + ktest_random(&seed) % (nr_cpus - 1);

		done += !(cpu_online(c) ? cpu_down(c) : cpu_up(c));
		if (ktest_random(&seed) % 4 == 0)
			task_sleep(ktest_random(&seed) % NSEC_PER_MSEC);
	}
	for (unsigned int c = 1; c < nr_cpus; c++)
		done += !cpu_up(c);
	return done;
}

#define TOGGLES 24

KTEST(hotplug_meetings, "hotplug.while_others_meet")
{
	static void (*const fn[])(void *) = { meet, call_round, breed };
	static struct meeting m[ARRAY_SIZE(fn)];
	struct task *task[ARRAY_SIZE(fn)];
	cpumask_t all = cpus_online;

	KNEED_TWO(t);
	memset(m, 0, sizeof(m));
	for (unsigned int i = 0; i < ARRAY_SIZE(fn); i++)
		task[i] = task_create("meet", PRIO_LOW, ~0u, fn[i], &m[i]);
	KEXPECT_EQ(t, toggle_cpus(1, TOGGLES), TOGGLES + nr_cpus - 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(fn); i++) {
		KEXPECT(t, KWAIT(READ_ONCE(m[i].held) > 3));
		task_stop(task[i]);
		task_join(task[i]);
		KEXPECT_EQ(t, m[i].wrong, 0);
	}
	KEXPECT_EQ(t, cpus_online, all);
	KEXPECT_EQ(t, who_answers(), all);
}

/* ---- under load ---- */

struct churn {
	struct task *task;
	u32 seed, rounds;
};

static void churn(void *arg)
{
	struct churn *c = arg;

	for (; !task_should_stop(); WRITE_ONCE(c->rounds, c->rounds + 1)) {
		switch (ktest_random(&c->seed) % 4) {
		case 0:
			sched_yield();
			break;
		case 1:
			task_sleep(ktest_random(&c->seed) % 50000);
			break;
		case 2:
			/* Refused when no such CPU is online just now. */
			task_set_affinity(current_task(),
					  ktest_random(&c->seed));
			break;
		case 3:
			for (u32 n = ktest_random(&c->seed) % 5000; n; n--)
				asm volatile("");
			arch_cpu_relax();
		}
	}
}

KTEST(hotplug_churn, "hotplug.under_load")
{
	static struct churn churns[16];
	u32 before[16];

	KNEED_TWO(t);
	for (unsigned int i = 0; i < ARRAY_SIZE(churns); i++) {
		churns[i] = (struct churn){ .seed = i * 7919 + 1 };
		churns[i].task = task_create("churn", PRIO_LOW + i % 4, ~0u,
					     churn, &churns[i]);
		KASSERT(t, churns[i].task);
	}
	KEXPECT_EQ(t, toggle_cpus(2, TOGGLES), TOGGLES + nr_cpus - 1);
	/* No task was forgotten anywhere: all of them still move on. */
	for (unsigned int i = 0; i < ARRAY_SIZE(churns); i++)
		before[i] = READ_ONCE(churns[i].rounds);
	for (unsigned int i = 0; i < ARRAY_SIZE(churns); i++) {
		KEXPECT(t, KWAIT(READ_ONCE(churns[i].rounds) != before[i]));
		task_stop(churns[i].task);
		KEXPECT_EQ(t, task_join(churns[i].task), 0);
	}
}

/* ---- a CPU that is late ---- */

#define ADDS 20000u

static u32 added;

static void add_often(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < ADDS; i++)
		__atomic_fetch_add(&added, 1, __ATOMIC_RELAXED);
}

/* The kernel's lock prefixes, where the machine has such: all of them are there. */
static bool atomics_are_smp(void)
{
	for (u32 i = 0; i < lock_count; i++)
		if (*((const u8 *)_text + lock_table[i]) != 0xf0)
			return false;
	return true;
}

/*
 * A CPU that was started and has not arrived when cpu_up() gives up is no CPU that
 * is away: atomics stay on, for it may arrive at any moment (H27). Nor may they be
 * off when it is let in at last.
 */
KTEST(hotplug_late, "hotplug.late_cpu")
{
	u64 usual = cpu_start_ns;
	unsigned int c;

	if (!(cpus_online & 2))
		KSKIP(t, "one CPU");
	for (c = 1; c < nr_cpus; c++)
		KEXPECT_EQ(t, cpu_down(c), 0);
	fault_cpu_join_late.cpu = 1;
	fault_plant(&fault_cpu_join_late, 1);
	cpu_start_ns = 20 * NSEC_PER_MSEC;
	KEXPECT_EQ(t, cpu_up(1), -ETIMEDOUT);
	/* The firmware has let CPU 1 go: it waits in the kernel. */
	KASSERT(t, KWAIT(READ_ONCE(fault_cpu_join_late.times)));
	cpu_start_others(); /* as at boot: says that CPU 1 did not come */
	KEXPECT(t, atomics_are_smp());
	cpu_start_ns = usual;
	/* Others go meanwhile. */
	for (c = 2; c < nr_cpus; c++)
		KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT(t, atomics_are_smp());
	fault_plant(&fault_cpu_join_late, 0);
	KEXPECT_EQ(t, cpu_up(1), 0);
	KEXPECT(t, atomics_are_smp());
	for (c = 2; c < nr_cpus; c++)
		KEXPECT_EQ(t, cpu_up(c), 0);
	added = 0;
	cpu_call(~0u, add_often, NULL);
	KEXPECT_EQ(t, added, ADDS * nr_cpus);
}
