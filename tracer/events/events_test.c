/*
 * Events against what the kernel counts by itself: allocations that a test makes, switches,
 * interrupts, timers, and the steps of a batch.
 */
#include <tracer/testing.h>

#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/time.h>
#include <tracer/events/events.h>
#include <tracer/sites/keys.h>

/* A field's value; the event must have it. */
static s64 value(const struct ring_entry *r, const char *field)
{
	const struct event_field *fields = event_by_id(r->event)->fields;
	const struct event_field *f = event_field(fields, field, strlen(field));

	return event_number(fields, f, r->record);
}

static bool is_event(const struct ring_entry *r, const char *name)
{
	return r->event && !strcmp(event_by_id(r->event)->name, name);
}

/* Call look() for each entry, in the order of time. All that was written must be there. */
static void each_entry(struct ktest_run *t,
		       void (*look)(struct ktest_run *t,
				    const struct ring_entry *r))
{
	struct trace_iter *it = trace_iter_open(ALL_CPUS, true);
	const struct ring_entry *r;
	struct ring_stats sum;
	u64 n = 0;

	KASSERT(t, it);
	while ((r = trace_iter_peek(it))) {
		look(t, r);
		trace_iter_next(it);
		n++;
	}
	trace_iter_close(it);
	KEXPECT(t, trace_test_books(&sum));
	KEXPECT_EQ(t, sum.overwritten, 0);
	KEXPECT_EQ(t, sum.held, n);
}

/* An empty buffer that holds all of the test. */
static void begin(const char *events)
{
	trace_test_reset();
	trace_test_size(2048);
	trace_test_put("set_event", events);
}

static void end(void)
{
	trace_test_put("set_event", "");
	trace_test_reset();
	trace_test_size(RING_DEFAULT_KB);
}

/* ---- Labels ------------------------------------------------------------------------ */

/* Each event's place has a label, but for the two on the patching path. */
KTEST(events_labels, "events.have_labels")
{
	struct event *e;

	for_each_event (e) {
		bool found = false;

		for (unsigned int i = 0; i < jump_count; i++)
			found |= jump_key(i) == e->key;
		KEXPECT_EQ(t, found,
			   strcmp(e->name, "patch_sync") &&
				   strcmp(e->name, "patch_trap"));
		KEXPECT(t, !e->key->on);
		KEXPECT(t, event_by_id(event_id(e)) == e);
	}
	KEXPECT(t, !event_by_id(EVENT_FIRST_ID - 1));
	KEXPECT(t, !event_by_id(event_id(__stop_events)));
}

/* What stands in braces in an event's text is one of its fields. */
KTEST(events_texts, "events.texts_name_fields")
{
	struct event *e;

	for_each_event (e) {
		for (const char *p = e->text; (p = strchr(p, '{')); p++) {
			size_t n = 1;

			while (!strchr("}:-", p[n]))
				n++;
			KEXPECT(t, event_field(e->fields, p + 1, n - 1));
		}
	}
}

/* ---- kmem -------------------------------------------------------------------------- */

#define BLOCKS 100u
#define BLOCK_SIZE(i) (700 + (i))

static struct {
	void *block[BLOCKS];
	unsigned int made, freed, others;
} kmem;

static void look_kmem(struct ktest_run *t, const struct ring_entry *r)
{
	unsigned int i;

	if (is_event(r, "kmalloc")) {
		i = kmem.made++;
		KASSERT(t, i < BLOCKS);
		KEXPECT_EQ(t, (unsigned long)value(r, "ptr"),
			   (unsigned long)kmem.block[i]);
		KEXPECT_EQ(t, value(r, "bytes_req"), BLOCK_SIZE(i));
		KEXPECT(t, value(r, "bytes_alloc") >= BLOCK_SIZE(i));
		KEXPECT_EQ(t, r->pid, current_task()->pid);
	} else if (is_event(r, "kfree")) {
		kmem.freed++;
	} else {
		kmem.others++;
	}
}

/* A filter lets this task's allocations of these sizes pass, and nothing else. */
KTEST(events_kmem, "events.kmem")
{
	char filter[80];

	memset(&kmem, 0, sizeof(kmem));
	begin("");
	snprintf(filter, sizeof(filter),
		 "common_pid == %d && bytes_req >= 700 && bytes_req < 800",
		 current_task()->pid);
	KEXPECT_EQ(t, trace_test_put("events/kmem/kmalloc/filter", filter), 0);
	KEXPECT_EQ(t, trace_test_put("set_event", "kmem:kmalloc kmem:kfree"),
		   0);
	for (unsigned int i = 0; i < BLOCKS; i++)
		kmem.block[i] = kmalloc(BLOCK_SIZE(i));
	for (unsigned int i = 0; i < BLOCKS; i++)
		kfree(kmem.block[i]);
	trace_test_put("tracing_on", "0");
	each_entry(t, look_kmem);
	KEXPECT_EQ(t, kmem.made, BLOCKS);
	KEXPECT(t, kmem.freed >= BLOCKS);
	KEXPECT_EQ(t, kmem.others, 0);
	KEXPECT_EQ(t, trace_test_put("events/kmem/kmalloc/filter", "0"), 0);
	end();
}

/* ---- sched -------------------------------------------------------------------------- */

static struct {
	s32 running[MAX_CPUS]; /* pid, or -1 */
	u32 switches[MAX_CPUS];
	u64 from[MAX_CPUS], to[MAX_CPUS]; /* arch_clock() */
} sched;

/* On each CPU, the task that a switch leaves is the one that the last switch began. */
static void look_switch(struct ktest_run *t, const struct ring_entry *r)
{
	if (!is_event(r, "sched_switch"))
		return;
	KEXPECT_EQ(t, value(r, "prev_pid"), r->pid);
	if (sched.running[r->cpu] >= 0)
		KEXPECT_EQ(t, value(r, "prev_pid"), sched.running[r->cpu]);
	sched.running[r->cpu] = value(r, "next_pid");
	if (r->clock > sched.from[r->cpu] && r->clock < sched.to[r->cpu])
		sched.switches[r->cpu]++;
}

static u64 counted[MAX_CPUS];

static void note_begin(void *arg)
{
	unsigned int cpu = cpu_index();

	(void)arg;
	counted[cpu] = cpus[cpu].rq.switches;
	sched.from[cpu] = arch_clock();
}

static void note_end(void *arg)
{
	unsigned int cpu = cpu_index();

	(void)arg;
	counted[cpu] = cpus[cpu].rq.switches - counted[cpu];
	sched.to[cpu] = arch_clock();
}

/* As many switches as each run queue counts, while tasks hand a CPU to each other. */
KTEST(events_switch, "events.sched_switch")
{
	struct trace_worker w[MAX_CPUS];
	unsigned int cpu;
	u64 all = 0;

	memset(&sched, 0, sizeof(sched));
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		sched.running[cpu] = -1;
	begin("sched:*");
	KASSERT(t, trace_workers_start(w, 0));
	cpu_call(~0u, note_begin, NULL);
	for (int i = 0; i < 30; i++)
		task_sleep(NSEC_PER_MSEC);
	trace_workers_join(w);
	/* And while CPUs are idle in between. */
	for (int i = 0; i < 30; i++)
		task_sleep(NSEC_PER_MSEC);
	cpu_call(~0u, note_end, NULL);
	trace_test_put("tracing_on", "0");
	each_entry(t, look_switch);
	for_each_online_cpu (cpu) {
		KEXPECT_EQ(t, sched.switches[cpu], counted[cpu]);
		all += counted[cpu];
	}
	KEXPECT(t, all > 50);
	end();
}

static struct {
	s32 pid;
	unsigned int forks, wakes, exits, slept, dead;
} life;

static void look_life(struct ktest_run *t, const struct ring_entry *r)
{
	if (is_event(r, "sched_process_fork") &&
	    value(r, "child_pid") == life.pid) {
		KEXPECT_EQ(t, value(r, "parent_pid"), current_task()->pid);
		KEXPECT_EQ(t, life.forks++ + life.wakes + life.exits, 0);
	}
	if (is_event(r, "sched_wakeup") && value(r, "pid") == life.pid) {
		KEXPECT(t, value(r, "target_cpu") < nr_cpus);
		KEXPECT_EQ(t, life.forks == 1 && !life.exits, 1);
		life.wakes++;
	}
	if (is_event(r, "sched_switch") && r->pid == life.pid) {
		long state = value(r, "prev_state");

		life.slept += state == 1;
		life.dead += state == 0x10;
		KEXPECT(t, !life.dead || life.exits);
	}
	if (is_event(r, "sched_process_exit") && r->pid == life.pid) {
		KEXPECT_EQ(t, life.forks == 1 && life.wakes, 1);
		life.exits++;
	}
}

static void sleep_twice(void *arg)
{
	(void)arg;
	task_sleep(NSEC_PER_MSEC);
	task_sleep(NSEC_PER_MSEC);
}

/* A task's life, in its order: made, woken as often as it slept, gone. */
KTEST(events_life, "events.life_of_a_task")
{
	struct task *child;

	memset(&life, 0, sizeof(life));
	begin("sched:*");
	child = task_create("child", PRIO_NORMAL, ~0u, sleep_twice, NULL);
	KASSERT(t, child);
	life.pid = child->pid;
	task_join(child);
	trace_test_put("tracing_on", "0");
	each_entry(t, look_life);
	KEXPECT_EQ(t, life.forks, 1);
	KEXPECT_EQ(t, life.wakes, 2);
	KEXPECT_EQ(t, life.exits, 1);
	KEXPECT_EQ(t, life.slept, 2);
	KEXPECT_EQ(t, life.dead, 1);
	end();
}

static struct {
	s32 pid;
	bool enough;
	unsigned int of_it, to_it, others;
} listed;

static void sleep_until_enough(void *arg)
{
	(void)arg;
	while (!READ_ONCE(listed.enough))
		task_sleep(NSEC_PER_MSEC);
}

static void look_listed(struct ktest_run *t, const struct ring_entry *r)
{
	(void)t;
	if (is_event(r, "sched_switch") && value(r, "next_pid") == listed.pid)
		listed.to_it++;
	else if (is_event(r, "sched_wakeup") && value(r, "pid") == listed.pid)
		listed.to_it++;
	else if (r->pid == listed.pid)
		listed.of_it++;
	else
		listed.others++;
}

/* The events of one task, and its own switches and wake-ups by others. */
KTEST(events_pids, "events.set_event_pid")
{
	struct task *child, *other;
	char pid[12];

	memset(&listed, 0, sizeof(listed));
	begin("");
	child = task_create("listed", PRIO_NORMAL, ~0u, sleep_until_enough,
			    NULL);
	KASSERT(t, child);
	listed.pid = child->pid;
	snprintf(pid, sizeof(pid), "%d", child->pid);
	KEXPECT_EQ(t, trace_test_put("set_event", "sched:* timer:timer_start"),
		   0);
	KEXPECT_EQ(t, trace_test_put("set_event_pid", pid), 0);
	trace_test_put("trace", "");
	other = task_create("other", PRIO_NORMAL, ~0u, sleep_twice, NULL);
	KASSERT(t, other);
	task_join(other);
	task_sleep(5 * NSEC_PER_MSEC);
	WRITE_ONCE(listed.enough, true);
	task_join(child);
	trace_test_put("tracing_on", "0");
	each_entry(t, look_listed);
	KEXPECT(t, listed.of_it > 0);
	KEXPECT(t, listed.to_it > 0);
	KEXPECT_EQ(t, listed.others, 0);
	KEXPECT_EQ(t, trace_test_put("set_event_pid", "x"), -EINVAL);
	end();
}

/* ---- Whose event it is --------------------------------------------------------- */

static struct {
	s32 pid;
	unsigned int events, strange;
} owner;

/* Allocations of that size are this task's. */
#define OWN_SIZE 1234

static void allocate_once(void *arg)
{
	(void)arg;
	kfree(kmalloc(OWN_SIZE));
}

static void look_owner(struct ktest_run *t, const struct ring_entry *r)
{
	(void)t;
	if (!is_event(r, "kmalloc") || value(r, "bytes_req") != OWN_SIZE)
		return;
	owner.events++;
	owner.strange += r->pid != owner.pid;
}

static void run_owner(void)
{
	struct task *child =
		task_create("owner", PRIO_NORMAL, ~0u, allocate_once, NULL);

	if (!child)
		return;
	owner.pid = child->pid;
	task_join(child);
}

static void run_owner_between(enum patch_step step, bool synced)
{
	if (step == PATCH_BREAK && synced)
		run_owner();
}

/* An event knows its task from the moment on at which its label may be taken. */
KTEST(events_owner, "events.first_event_knows_its_task")
{
	struct patch_stats p;

	patch_stats(&p);
	memset(&owner, 0, sizeof(owner));
	begin("");
	KEXPECT_EQ(t, trace_test_put("patch_strategy", "breakpoint"), 0);
	patch_step_hook = run_owner_between;
	KEXPECT_EQ(t, trace_test_put("events/kmem/kmalloc/enable", "1"), 0);
	patch_step_hook = NULL;
	KEXPECT_EQ(t, trace_test_put("patch_strategy", p.strategy), 0);
	trace_test_put("tracing_on", "0");
	each_entry(t, look_owner);
	KEXPECT_EQ(t, owner.events, 1);
	KEXPECT_EQ(t, owner.strange, 0);
	end();
}

/* A task whose calls are passed over has events all the same, and they are its own. */
KTEST(events_passed, "events.of_a_task_that_is_passed_over")
{
	char pid[12];

	memset(&owner, 0, sizeof(owner));
	begin("kmem:kmalloc");
	snprintf(pid, sizeof(pid), "%d", current_task()->pid);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_call"), 0);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_pid", pid), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", "function"), 0);
	run_owner();
	trace_test_put("tracing_on", "0");
	each_entry(t, look_owner);
	KEXPECT_EQ(t, owner.events, 1);
	KEXPECT_EQ(t, owner.strange, 0);
	end();
}

/* ---- irq and timer -------------------------------------------------------------------- */

static struct {
	unsigned int cpu;
	u64 from, to;
	u32 entries, exits, expired, over;
	const void *timer;
} irq;

static void look_irq(struct ktest_run *t, const struct ring_entry *r)
{
	if (r->cpu != irq.cpu || r->clock < irq.from || r->clock > irq.to)
		return;
	if (is_event(r, "irq_handler_entry") && value(r, "irq") == IRQ_TIMER) {
		KEXPECT_EQ(t, irq.entries++, irq.exits);
		KEXPECT(t, r->context & RING_CONTEXT_IRQS_OFF);
	}
	if (is_event(r, "irq_handler_exit") && value(r, "irq") == IRQ_TIMER)
		KEXPECT_EQ(t, ++irq.exits, irq.entries);
	if (is_event(r, "timer_expire_entry") &&
	    (unsigned long)value(r, "timer") == (unsigned long)irq.timer)
		irq.expired++;
	if (is_event(r, "timer_expire_exit") &&
	    (unsigned long)value(r, "timer") == (unsigned long)irq.timer)
		irq.over++;
}

static u32 fired;

static void fire(struct timer *timer)
{
	if (++fired < 20)
		timer_start(timer, NSEC_PER_MSEC / 2);
}

/* Timer interrupts as the CPU counts them, and each timer's expiry between two events. */
KTEST(events_irq, "events.irq_and_timer")
{
	struct timer timer;
	irq_state_t state;
	u64 count, end_ns;

	memset(&irq, 0, sizeof(irq));
	fired = 0;
	timer_setup(&timer, fire);
	begin("irq:* timer:*");
	preempt_disable();
	state = arch_irq_save();
	irq.cpu = cpu_index();
	irq.timer = &timer;
	count = cpus[irq.cpu].irq_counts[IRQ_TIMER];
	irq.from = arch_clock();
	arch_irq_restore(state);
	timer_start(&timer, NSEC_PER_MSEC / 2);
	end_ns = time_ns() + KWAIT_NS;
	while (READ_ONCE(fired) < 20 && time_ns() < end_ns)
		arch_cpu_relax();
	state = arch_irq_save();
	irq.to = arch_clock();
	count = cpus[irq.cpu].irq_counts[IRQ_TIMER] - count;
	arch_irq_restore(state);
	preempt_enable();
	timer_cancel(&timer);
	trace_test_put("tracing_on", "0");
	each_entry(t, look_irq);
	KEXPECT_EQ(t, irq.entries, count);
	KEXPECT_EQ(t, irq.exits, count);
	KEXPECT_EQ(t, fired, 20);
	KEXPECT_EQ(t, irq.expired, 20);
	KEXPECT_EQ(t, irq.over, 20);
	end();
}

/* ---- nopl ------------------------------------------------------------------------------ */

static struct {
	unsigned int batches, steps, syncs[MAX_CPUS], on;
} patch;

static void look_patch(struct ktest_run *t, const struct ring_entry *r)
{
	if (is_event(r, "patch_batch") && value(r, "on")) {
		patch.batches++;
		patch.on = value(r, "on");
	}
	if (patch.batches != 1)
		return;
	patch.steps += is_event(r, "patch_step");
	if (is_event(r, "patch_sync")) {
		/* A CPU synchronises after the step that it is for. */
		KEXPECT_EQ(t, ++patch.syncs[r->cpu], patch.steps);
		KEXPECT(t, value(r, "sites") > 0);
	}
}

/* A batch by breakpoint: its steps, and after each of them every CPU once. */
KTEST(events_patch, "events.patching_is_visible")
{
	const char *before;
	unsigned int cpu;

	memset(&patch, 0, sizeof(patch));
	before = patch_strategy_name();
	KEXPECT_EQ(t, trace_test_put("patch_strategy", "breakpoint"), 0);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_call"), 0);
	begin("nopl:*");
	KEXPECT_EQ(t, trace_test_put("set_ftrace_filter", "victim_call"), 0);
	mutex_lock(&trace_mutex);
	trace_test_ops(&trace_ops_off);
	{
		struct patch_batch b;
		int site = trace_test_site(victim_call);

		KEXPECT_EQ(t, patch_site(&b, site, true), 0);
		KEXPECT_EQ(t, patch_site(&b, site, false), 0);
	}
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	trace_test_put("tracing_on", "0");
	each_entry(t, look_patch);
	KEXPECT_EQ(t, patch.batches, 1);
	KEXPECT_EQ(t, patch.on, 1);
	for_each_online_cpu (cpu)
		KEXPECT_EQ(t, patch.syncs[cpu], patch.steps);
	end();
	KEXPECT_EQ(t, trace_test_put("patch_strategy", before), 0);
}
