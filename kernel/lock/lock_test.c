/* SPDX-License-Identifier: MIT */
/*
 * Proves that locks exclude, that a mutex sleeps and a spinlock does not, that
 * wait queues lose no wake-up, and that a lock held for too long is complained
 * about, once, by name.
 */
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/test/ktest.h>
#include <kernel/sched/hold.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/sched/balance.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/lock/wait.h>
#include <kernel/lock/mutex.h>
#include <kernel/sched/sched.h>
#include <kernel/test/again.h>

#define TASKS 6
#define ROUNDS 40

static struct spinlock spin = SPINLOCK_INIT("test");
/* The test makes tasks that wait for it. */
static struct mutex mutex = MUTEX_INIT_AROUND_TASKS(mutex);
static u32 counter;

/*
 * The addition is not atomic, and slow enough for another task to come in between, if
 * the lock let it.
 */
static void count_slowly(void)
{
	u32 seen = READ_ONCE(counter);

	for (int i = 0; i < 20; i++)
		arch_cpu_relax();
	WRITE_ONCE(counter, seen + 1);
}

static void count_under_spin(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		irq_state_t state = spin_lock(&spin);

		count_slowly();
		spin_unlock(&spin, state);
	}
}

static void count_under_mutex(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		mutex_lock(&mutex);
		count_slowly();
		if (i % 16 == 0)
			sched_yield();
		mutex_unlock(&mutex);
	}
}

static void run_counters(struct ktest_run *t, void (*fn)(void *arg))
{
	struct task *task[TASKS];

	counter = 0;
	for (int i = 0; i < TASKS; i++)
		task[i] =
			task_create("counter", PRIO_LOW + i % 2, ~0u, fn, NULL);
	for (int i = 0; i < TASKS; i++)
		task_join(task[i]);
	KEXPECT_EQ(t, counter, TASKS * ROUNDS);
}

KTEST(lock_spin, "lock.spin")
{
	irq_state_t state, inner;

	run_counters(t, count_under_spin);
	KEXPECT(t, !arch_irqs_off());
	state = spin_lock(&spin);
	KEXPECT(t, arch_irqs_off() && preempt_depth() == 1);
	KEXPECT_EQ(t, spin.holder, cpu_index() + 1);
	KEXPECT_EQ(t, spin_trylock(&spin, &inner), -EBUSY);
	spin_unlock(&spin, state);
	KEXPECT_EQ(t, spin.holder, 0);
	KEXPECT_EQ(t, spin_trylock(&spin, &state), 0);
	spin_unlock(&spin, state);
	KEXPECT(t, !arch_irqs_off() && preempt_depth() == 0);
}

/* The holder's pc is that of the function that took the lock, also while a tracer
 * has taken its return address (tests/test_graph.py runs this under one). */
KTEST(lock_holder, "lock.holder_is_named")
{
	irq_state_t state = spin_lock(&spin);
	unsigned long pc = spin.holder_pc;
	struct symbol s;

	spin_unlock(&spin, state);
	KASSERT(t, symbol_at(pc, &s));
	KEXPECT(t, !strcmp(s.name, "ktest_lock_holder"));
}

static void try_mutex(void *arg)
{
	*(bool *)arg = mutex_trylock(&mutex);
}

KTEST(lock_mutex, "lock.mutex")
{
	bool taken = true;
	struct task *other;

	run_counters(t, count_under_mutex);
	mutex_lock(&mutex);
	KEXPECT(t, mutex.owner == current_task());
	other = task_create("other", PRIO_NORMAL, ~0u, try_mutex, &taken);
	task_join(other);
	KEXPECT(t, !taken);
	mutex_unlock(&mutex);
	KEXPECT(t, mutex.owner == NULL);
}

#define HOG_NS (100 * NSEC_PER_USEC)
static u32 hog_locks;

/* It holds the mutex nearly always. */
static void hog_mutex(void *arg)
{
	u64 end;

	(void)arg;
	while (!task_should_stop()) {
		mutex_lock(&mutex);
		WRITE_ONCE(hog_locks, hog_locks + 1);
		end = time_ns() + HOG_NS;
		while (time_ns() < end)
			;
		mutex_unlock(&mutex);
	}
}

#define SHARED_ROUNDS 20
/* With one CPU the hog has the rest of its time slice first. */
#define SHARED_MOST (SHARED_ROUNDS * (TICK_NS / HOG_NS + 10))

/* How often the hog has it meanwhile is told under -icount alone: elsewhere the host may not
 * run the CPU that has been woken. */
KTEST(lock_mutex_shared, "lock.mutex_is_shared")
{
	struct task *hog;
	u32 before;

	hog_locks = 0;
	hog = task_create("hog", PRIO_NORMAL, ~0u, hog_mutex, NULL);
	KASSERT(t, hog);
	KEXPECT(t, KWAIT(READ_ONCE(hog_locks)));
	before = READ_ONCE(hog_locks);
	for (unsigned int i = 0; i < SHARED_ROUNDS; i++) {
		mutex_lock(&mutex);
		mutex_unlock(&mutex);
		task_sleep(50 * NSEC_PER_USEC);
	}
	if (boot_info.icount)
		KEXPECT(t, READ_ONCE(hog_locks) - before < SHARED_MOST);
	task_stop(hog);
	task_join(hog);
}

static unsigned int queue_length(struct wait_queue *w)
{
	irq_state_t state = spin_lock(&w->lock);
	unsigned int n = 0;

	for (struct list *l = w->tasks.next; l != &w->tasks; l = l->next)
		n++;
	spin_unlock(&w->lock, state);
	return n;
}

static u32 order;

static void add_to_order(void *arg)
{
	mutex_lock(&mutex);
	order = order * 10 + (unsigned long)arg;
	mutex_unlock(&mutex);
}

/* The first of those that wait has the lock already when mutex_unlock() returns. */
KTEST(lock_mutex_order, "lock.mutex_in_order")
{
	struct task *task[4];

	order = 0;
	mutex_lock(&mutex);
	for (unsigned long i = 0; i < ARRAY_SIZE(task); i++) {
		task[i] = task_create("waiter", PRIO_NORMAL - i % 2, ~0u,
				      add_to_order, (void *)(i + 1));
		KASSERT(t, task[i]);
		KEXPECT(t, KWAIT(queue_length(&mutex.waiters) == i + 1));
	}
	preempt_disable();
	mutex_unlock(&mutex);
	/* On another CPU it may be through by now. */
	KEXPECT(t, !mutex_trylock(&mutex) || READ_ONCE(order));
	if (mutex_is_held(&mutex))
		mutex_unlock(&mutex);
	preempt_enable();
	for (unsigned int i = 0; i < ARRAY_SIZE(task); i++)
		task_join(task[i]);
	KEXPECT_EQ(t, order, 1234);
	KEXPECT(t, !mutex.owner);
}

/* A task that is killed while it holds a mutex does not keep it. */
static void die_with_mutex(void *arg)
{
	mutex_lock(arg);
	task_kill_current(SIGNAL_KILL);
}

KTEST(lock_mutex_killed, "lock.mutex_of_the_killed")
{
	struct task *v = task_create_expendable("victim", PRIO_NORMAL, ~0u,
						die_with_mutex, &mutex);

	KEXPECT_EQ(t, task_join(v), -EFAULT);
	KASSERT(t, mutex.owner == NULL);
	KEXPECT(t, mutex.broken);
	mutex_lock(&mutex);
	KEXPECT(t, !mutex.broken);
	mutex_unlock(&mutex);
}

static void hold_while_waiting(void *arg)
{
	(void)arg;
	wait_prepare(&mutex.waiters);
	task_hold_self();
}

/* Nor does a task that was given it while it waited, and that never ran: it has changed nothing. */
KTEST(lock_mutex_given, "lock.mutex_given_to_the_killed")
{
	struct task *v = task_create_expendable("victim", PRIO_NORMAL, ~0u,
						hold_while_waiting, NULL);

	KASSERT(t, v);
	mutex_lock(&mutex);
	KEXPECT(t, task_wait_held(v, KWAIT_NS));
	mutex_unlock(&mutex);
	KEXPECT(t, mutex.owner == v);
	task_bury(v);
	KEXPECT(t, !mutex.owner && !mutex.broken);
	KEXPECT_EQ(t, task_join(v), -EFAULT);
}

/* ---- the complaint ---- */

static u32 holding;

/* Holds the lock until the complaint came, and then long enough for a second one. */
static void hold_spin(void *arg)
{
	irq_state_t state = spin_lock(&spin);
	u32 *before = arg;
	u64 end;

	WRITE_ONCE(holding, 1);
	while (READ_ONCE(spin.complaints) == *before)
		arch_cpu_relax();
	end = time_ns() + 3 * NSEC_PER_MSEC;
	while (time_ns() < end)
		for (int i = 0; i < 1000; i++)
			arch_cpu_relax();
	spin_unlock(&spin, state);
}

KTEST(lock_complaint, "lock.spin_diagnosis")
{
	u32 before = spin.complaints, ms = spin_complain_ms;
	struct task *holder;
	irq_state_t state;

	if (!(cpus_online & 2))
		KSKIP(t, "one CPU");
	holding = 0;
	task_set_affinity(current_task(), 1);
	holder = task_create("holder", PRIO_NORMAL, 2, hold_spin, &before);
	KASSERT(t, KWAIT(READ_ONCE(holding)));
	spin_complain_ms = 1;
	state = spin_lock(&spin);
	spin_unlock(&spin, state);
	spin_complain_ms = ms;
	KEXPECT_EQ(t, spin.complaints, before + 1);
	task_join(holder);
	task_set_affinity(current_task(), ~0u);
}

/* ---- wait queues ---- */

static struct wait_queue baton_wait = WAIT_QUEUE_INIT(baton_wait);
static u32 baton;

#define RUNNERS 5
#define BATON_END 200

static void pass_baton(void *arg)
{
	u32 me = (unsigned long)arg;

	for (;;) {
		wait_event(&baton_wait, READ_ONCE(baton) % RUNNERS == me ||
						READ_ONCE(baton) >= BATON_END);
		if (READ_ONCE(baton) >= BATON_END)
			break;
		WRITE_ONCE(baton, baton + 1);
		wake_all(&baton_wait);
	}
	wake_all(&baton_wait);
}

KTEST(lock_wait, "lock.wait_queue")
{
	struct task *task[RUNNERS];

	baton = 0;
	for (unsigned long i = 0; i < RUNNERS; i++)
		task[i] = task_create("runner", PRIO_LOW, ~0u, pass_baton,
				      (void *)i);
	KEXPECT(t, KWAIT(READ_ONCE(baton) >= BATON_END));
	for (int i = 0; i < RUNNERS; i++)
		task_join(task[i]);
	KEXPECT(t, list_empty(&baton_wait.tasks));
}

static u32 woken;

static void wait_for_one(void *arg)
{
	(void)arg;
	/* A task that is preempted before it blocks goes on at once: the scheduler
	 * does not know if it would block. It is still on the queue then. */
	do {
		wait_prepare(&baton_wait);
		task_block();
	} while (!list_empty(&current_task()->wait_link));
	wait_finish(&baton_wait);
	count_up(&woken);
}

KTEST(lock_wake_one, "lock.wake_one")
{
	struct task *task[3];

	woken = 0;
	for (int i = 0; i < 3; i++)
		task[i] = task_create("waiter", PRIO_HIGH, ~0u, wait_for_one,
				      NULL);
	for (int i = 0; i < 3; i++)
		KEXPECT(t, KWAIT(READ_ONCE(task[i]->state) == TASK_BLOCKED &&
				 !READ_ONCE(task[i]->on_cpu)));
	KEXPECT_EQ(t, queue_length(&baton_wait), 3);
	wake_one(&baton_wait);
	KEXPECT(t, KWAIT(READ_ONCE(woken) == 1));
	KEXPECT_EQ(t, queue_length(&baton_wait), 2);
	wake_all(&baton_wait);
	for (int i = 0; i < 3; i++)
		task_join(task[i]);
	KEXPECT_EQ(t, woken, 3);
}

/* The first waiter has been woken for another reason and has not looked yet. It may give up, so the
 * next one must be woken, too. */
KTEST(lock_wake_awake, "lock.wake_one.awake")
{
	struct task *task[2];

	woken = 0;
	task_set_affinity(current_task(), 1);
	for (int i = 0; i < 2; i++) {
		task[i] =
			task_create("waiter", PRIO_HIGH, 1, wait_for_one, NULL);
		KEXPECT(t, KWAIT(READ_ONCE(task[i]->state) == TASK_BLOCKED));
	}
	preempt_disable();
	KEXPECT(t, task_wake(task[0]));
	wake_one(&baton_wait);
	preempt_enable();
	KEXPECT(t, KWAIT(READ_ONCE(woken) == 2));
	wake_all(&baton_wait);
	for (int i = 0; i < 2; i++)
		task_join(task[i]);
	task_set_affinity(current_task(), ~0u);
}
