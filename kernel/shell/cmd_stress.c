/* SPDX-License-Identifier: MIT */
/*
 * stress: keeps all CPUs busy in the background with tasks that preempt each other in
 * every way there is, for demonstrations and for tests. A set has one task of each
 * kind. The task with the lowest priority never sleeps, and the others run above it
 * for short times. A user may name the kinds that a set shall have. With `cpus` one
 * more task takes CPUs down and up at random.
 */
#include <kernel/errno.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/printk.h>
#include <kernel/shell/shell_internal.h>
#include <kernel/lib/bits.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/lock/wait.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>

#define STRESS_SETS_MAX 32

struct stress_set {
	struct mutex lock;
	u32 locked; /* under lock: must be the sum of its takers' loops */
	struct wait_queue turned;
	u32 turn; /* even: ping's, odd: pong's */
};

struct worker {
	const struct kind *kind;
	struct stress_set *set;
	struct task *task;
	u32 loops;
	u32 lost; /* children that did not end as they should */
};

struct kind {
	const char *name;
	int prio;
	/* One turn of the worker's loop. False: it was told to stop before the turn. */
	bool (*loop)(struct worker *w);
};

/* Functions of their own, so that a trace of the machine shows them. */
static noinline u32 stress_leaf(u32 x)
{
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	asm volatile("" : "+r"(x)); /* or all calls would be optimised away */
	return x;
}

static noinline u32 stress_work(u32 rounds)
{
	u32 x = rounds;

	while (rounds--)
		x = stress_leaf(x);
	return x;
}

static bool spin_loop(struct worker *w)
{
	(void)w;
	stress_work(1000);
	return true;
}

static bool yield_loop(struct worker *w)
{
	(void)w;
	stress_work(50);
	sched_yield();
	return true;
}

static bool mutex_loop(struct worker *w)
{
	u32 before;

	mutex_lock(&w->set->lock);
	before = w->set->locked;
	/* Another task comes between here if the mutex lets it. */
	stress_work(200);
	w->set->locked = before + 1;
	mutex_unlock(&w->set->lock);
	task_sleep(300 * NSEC_PER_USEC);
	return true;
}

static bool sleep_loop(struct worker *w)
{
	(void)w;
	stress_work(20);
	task_sleep(NSEC_PER_MSEC);
	return true;
}

static bool turn_loop(struct worker *w, u32 mine)
{
	struct stress_set *s = w->set;

	wait_event(&s->turned,
		   (READ_ONCE(s->turn) & 1) == mine || task_should_stop());
	if ((READ_ONCE(s->turn) & 1) != mine)
		return false;
	__atomic_fetch_add(&s->turn, 1, __ATOMIC_SEQ_CST);
	wake_all(&s->turned);
	return true;
}

static bool ping_loop(struct worker *w)
{
	/* Without a rest, two that wake each other would starve the others. */
	task_sleep(200 * NSEC_PER_USEC);
	return turn_loop(w, 0);
}

static bool pong_loop(struct worker *w)
{
	return turn_loop(w, 1);
}

static void child_main(void *arg)
{
	(void)arg;
	stress_work(20);
}

/* Where memory is out there is no child, and the turn counts all the same. */
static bool fork_loop(struct worker *w)
{
	struct task *child =
		task_create("child", PRIO_LOW + 1, ~0u, child_main, w);

	w->lost += child && task_join(child);
	task_sleep(NSEC_PER_MSEC);
	return true;
}

static const struct kind kinds[] = {
	{ "spin", PRIO_LOW, spin_loop },
	{ "yield", PRIO_LOW, yield_loop },
	{ "mutex-a", PRIO_LOW + 1, mutex_loop },
	{ "mutex-b", PRIO_LOW + 2, mutex_loop },
	{ "ping", PRIO_LOW + 3, ping_loop },
	{ "pong", PRIO_LOW + 3, pong_loop },
	{ "fork", PRIO_LOW + 3, fork_loop },
	{ "sleep", PRIO_HIGH, sleep_loop },
};
#define NR_KINDS ARRAY_SIZE(kinds)

static struct stress {
	unsigned int sets;
	u32 kinds; /* a bit for each that a set has, as in kinds[] */
	struct stress_set set[STRESS_SETS_MAX];
	struct worker worker[STRESS_SETS_MAX][NR_KINDS];
	struct task *cpus;	/* with `cpus`, else NULL */
	u32 came, went, failed; /* counted by the task `cpus` */
} * stress;			/* NULL: not running, the shell's task alone */

static void worker_main(void *arg)
{
	struct worker *w = arg;

	do {
		w->loops += w->kind->loop(w);
		/* Where QEMU has one thread for all CPUs: the next one's turn. */
		arch_cpu_relax();
	} while (!task_should_stop());
}

static void toggle_cpu(struct stress *s, unsigned int c)
{
	if (cpu_online(c))
		s->failed += cpu_down(c) || !++s->went;
	else
		s->failed += cpu_up(c) || !++s->came;
}

/* Takes CPUs down and up. The clock's low bits choose which. At the end all CPUs are
 * online. */
static void cpus_main(void *arg)
{
	struct stress *s = arg;

	while (!task_should_stop()) {
		toggle_cpu(s, 1 + arch_clock() / 64 % (nr_cpus - 1));
		task_sleep(arch_clock() % NSEC_PER_MSEC);
	}
	for (unsigned int c = 1; c < nr_cpus; c++)
		if (!cpu_online(c))
			toggle_cpu(s, c);
}

static bool start_cpus(struct stress *s)
{
	s->cpus = task_create("cpus", PRIO_HIGH, ~0u, cpus_main, s);
	return s->cpus;
}

static bool start_set(struct stress *s, unsigned int i)
{
	struct worker *w = s->worker[i];

	mutex_init(&s->set[i].lock, "stress");
	wait_init(&s->set[i].turned);
	s->sets = i + 1;
	for (unsigned int k = 0; k < NR_KINDS; k++, w++) {
		if (!(s->kinds & 1u << k))
			continue;
		w->kind = &kinds[k];
		w->set = &s->set[i];
		w->task = task_create(kinds[k].name, kinds[k].prio, ~0u,
				      worker_main, w);
		if (!w->task)
			return false;
	}
	return true;
}

/* Join all. Returns how many, with their children, did not end as they should. */
static unsigned int join_all(struct stress *s)
{
	struct worker *w;
	unsigned int lost = 0;

	if (s->cpus) {
		task_stop(s->cpus);
		lost += task_join(s->cpus) || s->failed;
	}
	for (unsigned int i = 0; i < s->sets * NR_KINDS; i++) {
		w = &s->worker[i / NR_KINDS][i % NR_KINDS];
		if (w->task)
			task_stop(w->task);
	}
	for (unsigned int i = 0; i < s->sets * NR_KINDS; i++) {
		w = &s->worker[i / NR_KINDS][i % NR_KINDS];
		lost += w->task && task_join(w->task);
		lost += w->lost;
	}
	return lost;
}

/* Wake-ups and critical sections of one set that went astray. */
static unsigned int lost_in_set(const struct stress *s, unsigned int i)
{
	u32 locked = 0, turns = 0;

	for (unsigned int k = 0; k < NR_KINDS; k++) {
		if (kinds[k].loop == mutex_loop)
			locked += s->worker[i][k].loops;
		if (kinds[k].loop == ping_loop || kinds[k].loop == pong_loop)
			turns += s->worker[i][k].loops;
	}
	return (locked != s->set[i].locked) + (turns != s->set[i].turn);
}

static void report_kind(struct sink *out, const struct stress *s,
			unsigned int k)
{
	sink_printf(out, "%-8s prio %2d:", kinds[k].name, kinds[k].prio);
	for (unsigned int i = 0; i < s->sets; i++)
		sink_printf(out, " %u", s->worker[i][k].loops);
	sink_printf(out, " loops\n");
}

static int stress_stop(struct sink *out)
{
	unsigned int tasks, lost;

	if (!stress)
		return shell_error(-EINVAL, "stress",
				   "is not running; stress "
				   "start [N] starts it");
	tasks = stress->sets * bit_count(stress->kinds) + !!stress->cpus;
	lost = join_all(stress);
	for (unsigned int i = 0; i < stress->sets; i++)
		lost += lost_in_set(stress, i);
	for (unsigned int k = 0; k < NR_KINDS; k++)
		if (stress->kinds & 1u << k)
			report_kind(out, stress, k);
	if (stress->cpus)
		sink_printf(out, "cpus: went %u times, came %u times\n",
			    stress->went, stress->came);
	kfree(stress);
	stress = NULL;
	if (lost)
		return shell_error(-EIO, "stress", "%u tasks joined, %u LOST",
				   tasks, lost);
	return sink_printf(out, "stress: %u tasks joined, none lost\n", tasks);
}

static int stress_start(struct sink *out, unsigned int sets, u32 chosen,
			bool cpus)
{
	unsigned int tasks = sets * bit_count(chosen) + cpus;
	struct stress *s;

	if (stress)
		return shell_error(-EBUSY, "stress",
				   "is running already; "
				   "stress stop ends it");
	s = kmalloc_zeroed(sizeof(*s));
	if (s)
		s->kinds = chosen;
	for (unsigned int i = 0; s && i < sets; i++) {
		if (start_set(s, i) && (i || !cpus || start_cpus(s)))
			continue;
		join_all(s);
		kfree(s);
		s = NULL;
	}
	if (!s)
		return shell_error(-ENOMEM, "stress",
				   "out of memory for %u "
				   "tasks; nothing was started",
				   tasks);
	stress = s;
	return sink_printf(out, "stress: %u tasks on %u CPU%s\n", tasks,
			   nr_cpus, nr_cpus == 1 ? "" : "s");
}

/* The kinds that the words name, all where there is no word. 0 and an error line for a word
 * that is no kind. */
static u32 kinds_named(int n, char **words)
{
	u32 chosen = 0;
	unsigned int k;

	for (int i = 0; i < n; i++) {
		for (k = 0; k < NR_KINDS && strcmp(words[i], kinds[k].name);
		     k++)
			;
		if (k == NR_KINDS) {
			shell_error(-EINVAL, "stress",
				    "no kind is called %s; there are spin, "
				    "yield, mutex-a, "
				    "mutex-b, ping, pong, fork, sleep, and "
				    "cpus at the end",
				    words[i]);
			return 0;
		}
		chosen |= 1u << k;
	}
	return n ? chosen : (1u << NR_KINDS) - 1;
}

static int cmd_stress(struct sink *out, int argc, char **argv)
{
	bool cpus = argc > 2 && !strcmp(argv[argc - 1], "cpus");
	unsigned long sets = nr_cpus;
	bool number;
	u32 chosen;

	if (cpus && nr_cpus == 1)
		return shell_error(-EINVAL, "stress",
				   "cpus: only CPU 0 is there, which stays");
	argc -= cpus;
	if (argc == 2 && !strcmp(argv[1], "stop"))
		return stress_stop(out);
	if (argc < 2 || strcmp(argv[1], "start"))
		return shell_error(
			-EINVAL, "stress",
			"accepts start [N] [KIND...] [cpus] and stop");
	number = argc > 2 && argv[2][0] <= '9'; /* kinds begin with letters */
	if (number && shell_number("stress", argv[2], STRESS_SETS_MAX, &sets))
		return -EINVAL;
	if (!sets)
		return shell_error(-EINVAL, "stress", "0: at least 1 set");
	chosen = kinds_named(argc - 2 - number, argv + 2 + number);
	return chosen ? stress_start(out, sets, chosen, cpus) : -EINVAL;
}
SHELL_CMD(stress, "stress", "start [N] [KIND...] [cpus] | stop",
	  "keep CPUs busy with preempting tasks, N of each KIND", cmd_stress);
