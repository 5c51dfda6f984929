/* SPDX-License-Identifier: MIT */
/* Tasks: made, ended, joined, their stacks. */
#include <kernel/event/event.h>
#include <kernel/event/latency.h>
#include <kernel/assert.h>
#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/sched/hold.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/sched/task_list.h>
#include <kernel/image/symbols.h>
#include <kernel/image/unwind.h>
#include <kernel/lock/wait.h>
#include <kernel/lock/mutex.h>
#include <kernel/sched/balance.h>
#include <kernel/sched/sched.h>
#include <kernel/test/fault.h>
#include <kernel/mm/page.h>
#include <kernel/mm/kmalloc.h>

bool (*task_on_site)(unsigned long pc);

/* The boot CPU's code before it has tasks. Nothing ever switches to this task. */
static struct task boot_task;

/* ---- stacks ---- */

/*
 * Where no hardware guards the page below a stack, its uppermost words hold a
 * pattern. The page belongs to the task, so an overflow of less than a page destroys
 * no other data before it is noticed.
 */
#define CANARY_WORDS 16
#define CANARY (~0ul / 255 * 0xc5)

static unsigned long *canary_of(const char *stack)
{
	return (unsigned long *)stack - CANARY_WORDS;
}

static bool stack_alloc(struct task *t)
{
	char *guard = page_alloc(TASK_STACK_ORDER);

	if (!guard)
		return false;
	t->stack = guard + PAGE_SIZE;
	t->guarded = !arch_guard_page(guard, true);
	for (int i = 0; !t->guarded && i < CANARY_WORDS; i++)
		canary_of(t->stack)[i] = CANARY;
	return true;
}

static void stack_free(struct task *t)
{
	char *guard = t->stack - PAGE_SIZE;

	if (t->guarded)
		arch_guard_page(guard, false);
	page_free(guard, TASK_STACK_ORDER);
}

static bool canary_alive(const struct task *t)
{
	const unsigned long *c = canary_of(t->stack);

	for (int i = 0; i < CANARY_WORDS; i++)
		if (c[i] != CANARY)
			return false;
	return true;
}

void task_check_stack(struct task *t)
{
	if (t->guarded || !t->stack || t->killed || canary_alive(t))
		return;
	if (!t->expendable)
		panic("stack overflow: the canary of task %s is damaged",
		      t->name);
	printk("stack overflow: the canary of task %s is damaged; killed\n",
	       t->name);
	task_kill_current(SIGNAL_FAULT);
}

/* ---- making ---- */

static void task_setup(struct task *t, const char *name, int prio)
{
	string_copy(t->name, name, sizeof(t->name));
	t->prio = prio;
	t->state = TASK_READY;
	list_init(&t->run_link);
	list_init(&t->wait_link);
	list_init(&t->all_link);
	list_init(&t->mutexes);
	wait_init(&t->exit_wait);
}

static void sleep_over(struct timer *timer)
{
	task_wake(container_of(timer, struct task, timer));
}

static struct task *task_new(const char *name, int prio, void (*fn)(void *arg),
			     void *arg)
{
	struct task *t = kmalloc_zeroed(sizeof(*t));

	if (!t || !stack_alloc(t)) {
		kfree(t);
		printk("task %s: out of memory\n", name);
		return NULL;
	}
	task_setup(t, name, prio);
	timer_setup(&t->timer, sleep_over);
	t->fn = fn;
	t->arg = arg;
	arch_task_init(t, t->stack + TASK_STACK_SIZE);
	return t;
}

void task_init_boot(void)
{
	struct cpu *cpu = &cpus[0];

	task_setup(&boot_task, "boot", PRIO_IDLE);
	boot_task.on_cpu = true;
	cpu->idle = &boot_task;
	arch_set_current(&boot_task);
}

/* Let t carry no more for the tracer than a fresh task: no taken return, no depth, no mark. */
static void task_clear_traces(struct task *t)
{
	char *from = (char *)&t->nr_returns;

	memset(from, 0, t->name - from);
}

static void idle_main(void *arg)
{
	(void)arg;
	sched_idle();
}

int task_init_idle(unsigned int cpu)
{
	struct task *t = cpus[cpu].idle;
	char name[TASK_NAME_LEN];

	if (t && t != &boot_task) {
		/* The functions that parked it never return. */
		task_clear_traces(t);
		arch_task_init(t, t->stack + TASK_STACK_SIZE);
		return 0;
	}
	snprintf(name, sizeof(name), "idle/%u", cpu);
	t = task_new(name, PRIO_IDLE, idle_main, NULL);
	if (!t)
		return -ENOMEM;
	t->cpu = cpu;
	t->affinity = 1u << cpu;
	cpus[cpu].idle = t;
	task_list_add(t, true);
	return 0;
}

void (*task_fork_hook)(struct task *parent, struct task *child);

/* A task that is not yet started. NULL: none of its CPUs is online, or there is no memory. */
static struct task *prepare_task(const char *name, int prio, cpumask_t affinity,
				 void (*fn)(void *arg), void *arg)
{
	struct task *t;

	mutex_assert_around_tasks();
	if (prio <= PRIO_IDLE || prio > PRIO_MAX)
		panic("task %s: priority %d is not 1..%d", name, prio,
		      PRIO_MAX);
	if (!(affinity & READ_ONCE(cpus_online))) {
		printk("task %s: none of CPUs %x is online\n", name, affinity);
		return NULL;
	}
	t = task_new(name, prio, fn, arg);
	if (!t)
		return NULL;
	t->affinity = affinity;
	t->cpu = cpu_index();
	return t;
}

/* Start it. Every task but the idle ones begins here, under the name that filters of Linux
 * know. t may be NULL, and is returned. */
static noinline struct task *kernel_clone(struct task *t, bool expendable,
					  struct task_fault *fault)
{
	if (!t)
		return NULL;
	t->expendable = expendable;
	t->fault = fault;
	task_list_add(t, false);
	trace_sched_process_fork(current_task(), t);
	if (task_fork_hook)
		task_fork_hook(current_task(), t);
	sched_place(t);
	return t;
}

struct task *task_create(const char *name, int prio, cpumask_t affinity,
			 void (*fn)(void *arg), void *arg)
{
	return kernel_clone(prepare_task(name, prio, affinity, fn, arg), false,
			    NULL);
}

struct task *task_create_expendable(const char *name, int prio,
				    cpumask_t affinity, void (*fn)(void *arg),
				    void *arg)
{
	return kernel_clone(prepare_task(name, prio, affinity, fn, arg), true,
			    NULL);
}

struct task *task_create_watched(const char *name, void (*fn)(void *arg),
				 struct task_fault *fault)
{
	return kernel_clone(prepare_task(name, PRIO_NORMAL, 1u << cpu_index(),
					 fn, NULL),
			    true, fault);
}

/* As schedule() leaves off: interrupts off, preempt depth 1, the lock held. */
void task_start(void)
{
	struct task *t;

	sched_finish_switch(arch_this_cpu()->rq.prev);
	preempt_count_down(&arch_this_cpu()->head, true);
	irq_enable();
	t = current_task();
	t->fn(t->arg);
	task_exit(0);
}

/* ---- ending ---- */

static void task_free(struct task *t)
{
	task_list_remove(t);
	stack_free(t);
	kfree(t);
}

/* A task that is killed in the middle of a wait, a sleep or a critical section
 * leaves nothing behind that others would wait for. */
static void forget_waits(struct task *t)
{
	wait_forget(t); /* first: no mutex is given to t from here on */
	mutex_unlock_all(t);
	timer_cancel(&t->timer);
}

static void note_killed(struct task *t, enum task_signal signal)
{
	t->killed = true;
	trace_signal_generate(signal, t);
}

/* End the running task at once, at any point, no lock held. signal: the one that kills it, or 0. */
static noreturn void task_die(int code, enum task_signal signal)
{
	struct cpu *cpu;
	struct task *t;

	irq_disable();
	cpu = arch_this_cpu();
	t = cpu->head.current;
	/* From schedule() the depth is 1 already, from elsewhere 0. */
	cpu->head.preempt_count =
		(cpu->head.preempt_count & PREEMPT_RESCHED) | 1;
	t->exit_code = code;
	if (signal)
		note_killed(t, signal);
	trace_sched_process_exit(t);
	forget_waits(t);
	sched_set_state(t, TASK_DEAD);
	wake_all(&t->exit_wait);
	if (t->hold_hi)
		task_hold_look();
	schedule();
	panic("task %s runs after its end", t->name);
}

void task_kill_current(enum task_signal signal)
{
	task_die(-EFAULT, signal);
}

FAULT(task_bury_late,
      "a buried task is dead, and its joiners wait to be woken");

/* The task is off its CPU and on no queue, so nothing can run it again. */
void task_bury(struct task *t)
{
	irq_state_t state = irq_save();

	if (!t->expendable)
		panic("task_bury: task %s is not expendable", t->name);
	note_killed(t, SIGNAL_KILL);
	t->exit_code = -EFAULT;
	forget_waits(t);
	/* As if this CPU used its stack: task_join() frees the task only afterwards. */
	t->on_cpu = true;
	sched_set_state(t, TASK_DEAD);
	while (fault_happens(&fault_task_bury_late))
		arch_cpu_relax();
	wake_all(&t->exit_wait);
	__atomic_store_n(&t->on_cpu, false, __ATOMIC_RELEASE);
	irq_restore(state);
}

void task_exit(int code)
{
	if (preempt_depth() || in_interrupt())
		panic("task_exit: %s holds a lock or is in an interrupt",
		      current_task()->name);
	task_die(code, 0);
}

int task_join(struct task *t)
{
	int code;

	assert_task_context();
	wait_event(&t->exit_wait, READ_ONCE(t->state) == TASK_DEAD);
	/* Acquire: pairs with the release in sched_finish_switch(). It is
	 * about to leave its stack: it has interrupts off. */
	while (__atomic_load_n(&t->on_cpu, __ATOMIC_ACQUIRE))
		arch_cpu_relax();
	code = t->exit_code;
	task_free(t);
	return code;
}

/* ---- detached tasks: freed by one that may sleep ---- */

static struct wait_queue reaper_wait = WAIT_QUEUE_INIT(reaper_wait);
static struct spinlock reaper_lock = SPINLOCK_INIT("reaper");
static struct list reaper_list = LIST_INIT(reaper_list); /* by wait_link */

void task_reap(struct task *t)
{
	irq_state_t state = spin_lock(&reaper_lock);

	list_add_before(&reaper_list, &t->wait_link);
	spin_unlock(&reaper_lock, state);
	wake_one(&reaper_wait);
}

static struct task *reaper_take(void)
{
	irq_state_t state = spin_lock(&reaper_lock);
	struct task *t = NULL;

	if (!list_empty(&reaper_list)) {
		t = list_entry(reaper_list.next, struct task, wait_link);
		list_del(&t->wait_link);
	}
	spin_unlock(&reaper_lock, state);
	return t;
}

static void reaper_main(void *arg)
{
	struct task *t;

	(void)arg;
	for (;;) {
		wait_event(&reaper_wait, (t = reaper_take()));
		task_free(t);
	}
}

void task_start_reaper(void)
{
	if (!task_create("reaper", PRIO_HIGH, ~0u, reaper_main, NULL))
		panic("no memory for the first tasks");
}

void task_detach(struct task *t)
{
	irq_state_t state;
	struct run_queue *rq = sched_lock_task(t, &state);
	bool gone = t->state == TASK_DEAD && !t->on_cpu;

	t->detached = true;
	spin_unlock(&rq->lock, state);
	if (gone)
		task_free(t);
}

/* ---- asking and sleeping ---- */

void task_stop(struct task *t)
{
	WRITE_ONCE(t->should_stop, true);
	task_hold(t, 0, 0);
	task_release(t);
	task_wake(t);
}

bool task_should_stop(void)
{
	return READ_ONCE(current_task()->should_stop);
}

int task_set_affinity(struct task *t, cpumask_t mask)
{
	if (!(mask & READ_ONCE(cpus_online)))
		return -EINVAL;
	sched_set_affinity(t, mask);
	return 0;
}

/* With interrupts off the timer cannot wake us before we sleep. */
void task_sleep(u64 ns)
{
	struct task *t = current_task();
	irq_state_t state;

	assert_task_context();
	state = irq_save();

	sched_set_state(t, TASK_BLOCKED);
	/* After the state: task_stop() sets the flag before it wakes. */
	if (task_should_stop()) {
		sched_set_state(t, TASK_READY);
	} else {
		timer_start(&t->timer, ns);
		task_block();
	}
	irq_restore(state);
	timer_cancel(&t->timer);
}

/* ---- looking at tasks ---- */

bool task_inspect(struct task *t, void (*fn)(struct task *t, void *arg),
		  void *arg)
{
	irq_state_t state;
	struct run_queue *rq = sched_lock_task(t, &state);
	bool rests = !t->on_cpu;

	if (rests)
		fn(t, arg);
	spin_unlock(&rq->lock, state);
	return rests;
}

/* The innermost function that is neither schedule() nor called by it. */
static void find_pc(struct task *t, void *arg)
{
	unsigned long *pc = arg;
	struct symbol s;
	struct unwind u;

	unwind_start(&u, t->preempted ? t->frame : NULL, t);
	while (unwind_next(&u)) {
		*pc = u.regs.pc;
		if (t->preempted || !symbol_at(*pc - 1, &s) ||
		    s.start != (unsigned long)schedule)
			return;
	}
}

unsigned long task_pc(const struct task *t)
{
	unsigned long pc = 0;

	task_inspect((struct task *)t, find_pc, &pc);
	return pc;
}
