/* SPDX-License-Identifier: MIT */
/*
 * Proves of the trace buffer: that its books add up, against counts kept
 * elsewhere, with readers and writers at work at once, in the smallest ring too,
 * that recursion is dropped and counted, that time, task and interrupt of an
 * event are right.
 */
#include <tracer/testing.h>
#include <tracer/ring/ring_control.h>
#include <tracer/ring/ring_more.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/test/again.h>

#define TINY "8"

static void call_victim_n(unsigned int n)
{
	while (n--)
		victim_call(n);
}

KTEST(ring_books, "ring.books_add_up")
{
	unsigned long kb = ring_kb(rings, 0);
	struct ring_stats s;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	call_victim_n(1000);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.held, 1000);
	KEXPECT_EQ(t, trace_test_walk(false), 1000);
	KEXPECT_EQ(t, trace_test_walk(true), 1000);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.read, 1000);
	KEXPECT_EQ(t, trace_test_walk(false), 0);
	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", TINY), 0);
	trace_test_put("trace", "");
	call_victim_n(10000);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, 10000);
	KEXPECT(t, s.overwritten > 0 && s.held <= nr_cpus * 2 * RING_SLOTS);
	KEXPECT_EQ(t, trace_test_walk(true), s.held);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.held, 0);
	trace_test_reset();
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, 0);
	trace_test_size(kb);
}

/* ---- Readers that make what they read ---------------------------------------- */

struct seeker {
	struct task *task;
	bool opened, looks;
	u32 found, ends;
};

static void seek_entry(void *arg)
{
	struct trace_iter *it = trace_iter_open(rings, 1, false);
	struct seeker *s = arg;

	WRITE_ONCE(s->opened, true);
	while (!READ_ONCE(s->looks))
		task_sleep(NSEC_PER_MSEC);
	s->found += it && trace_iter_peek(it);
	count_up(&s->ends);
	trace_iter_close(it);
}

/* Of two readers on the ring's own CPU each waits for the other's mutex, and each of their switches
 * leaves a mark in the ring. Each comes to its end all the same. */
KTEST(ring_marks_alone, "ring.reading_ends")
{
	struct seeker s[2] = { 0 };

	KEXPECT_EQ(t, trace_test_victim(), 0);
	for (unsigned int i = 0; i < 2; i++) {
		s[i].task =
			task_create("seeker", PRIO_LOW, 1, seek_entry, &s[i]);
		KASSERT(t, s[i].task);
		KEXPECT(t, KWAIT(READ_ONCE(s[i].opened)));
	}
	mutex_lock(&ring_readers);
	for (unsigned int i = 0; i < 2; i++) {
		WRITE_ONCE(s[i].looks, true);
		KEXPECT(t, KWAIT(!list_empty(&s[i].task->wait_link)));
	}
	mutex_unlock(&ring_readers);
	KEXPECT(t, KWAIT(READ_ONCE(s[0].ends) && READ_ONCE(s[1].ends)));
	trace_test_reset(); /* no marks, so that they end in any case */
	for (unsigned int i = 0; i < 2; i++)
		task_join(s[i].task);
	KEXPECT_EQ(t, s[0].found + s[1].found, 0);
}

/* ---- Readers while all CPUs write ------------------------------------------- */

struct reader {
	struct task *task;
	bool consume;
	u64 read, disorder, strangers;
};

static void look_at_entry(struct reader *r, const struct ring_entry *e,
			  u64 *last)
{
	int site = site_find(e->ip - trace_test_site_length);

	r->strangers += site < 0 || strcmp(site_function(site), "victim_call");
	r->disorder += e->clock < last[e->cpu];
	last[e->cpu] = e->clock;
}

static void read_ring_on(void *arg)
{
	struct trace_iter *it = trace_iter_open(rings, cpus_present(), false);
	const struct ring_entry *e;
	struct reader *r = arg;
	u64 last[MAX_CPUS] = { 0 };

	while (it && !task_should_stop()) {
		e = trace_iter_peek(it);
		if (!e) {
			arch_cpu_relax();
			sched_yield();
			continue;
		}
		look_at_entry(r, e, last);
		if (r->consume)
			r->read += trace_iter_consume(it);
		else
			trace_iter_next(it);
	}
	trace_iter_close(it);
}

static void with_readers(struct ktest_run *t, const char *kb)
{
	struct reader readers[3] = { { .consume = true }, { .consume = true } };
	struct trace_worker *w = trace_workers;
	struct ring_stats s;
	unsigned long calls;
	unsigned int i;

	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", kb), 0);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	for (i = 0; i < ARRAY_SIZE(readers); i++)
		readers[i].task =
			task_create("reader", PRIO_LOW, cpus_present(),
				    read_ring_on, &readers[i]);
	KEXPECT(t, trace_workers_start(w, 5000));
	calls = trace_workers_join(w);
	for (i = 0; i < ARRAY_SIZE(readers); i++) {
		task_stop(readers[i].task);
		task_join(readers[i].task);
		KEXPECT_EQ(t, readers[i].strangers, 0);
		KEXPECT_EQ(t, readers[i].disorder, 0);
	}
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, calls);
	KEXPECT_EQ(t, s.read, readers[0].read + readers[1].read);
	KEXPECT_EQ(t, trace_test_walk(false), s.held);
}

KTEST(ring_readers, "ring.readers_and_writers")
{
	unsigned long kb = ring_kb(rings, 0);

	with_readers(t, TINY);
	with_readers(t, "64");
	trace_test_reset();
	trace_test_size(kb);
}

/* ---- Recursion -------------------------------------------------------------------- */

KTEST(ring_recursion, "ring.recursion_is_counted")
{
	struct ring_stats s;
	irq_state_t state;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	KASSERT(t, ring_enter(&state));
	call_victim_n(5); /* the tracer "calls" a traced function */
	ring_leave(state);
	call_victim_n(7);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.dropped, 5);
	KEXPECT_EQ(t, s.held, 7);
	trace_test_reset();
}

static u32 callback_runs; /* atomic */

static void call_victim_inside(unsigned long ip, unsigned long parent,
			       struct trace_ops *ops)
{
	irq_state_t state;

	(void)ip, (void)parent, (void)ops;
	if (!ring_enter(&state))
		return;
	count_up(&callback_runs);
	victim_call(1);
	ring_leave(state);
}

KTEST(ring_callback, "ring.callback_recursion")
{
	static struct trace_ops ops = { .entry = trace_entry_call,
					.func = call_victim_inside };
	int site = trace_test_site(victim_call);
	struct patch_batch b;
	struct ring_stats s;

	KASSERT(t, site >= 0);
	trace_test_reset();
	mutex_lock(&trace_mutex);
	callback_runs = 0;
	trace_test_ops(&ops);
	KEXPECT_EQ(t, patch_site(&b, site, true), 0);
	call_victim_n(9);
	KEXPECT_EQ(t, patch_site(&b, site, false), 0);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, callback_runs, 9);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.dropped, 9);
	trace_test_reset();
}

/* ---- Contents of events --------------------------------------------------------- */

/* The clock's difference from the page's base does not fit into 32 bits. */
KTEST(ring_time, "ring.time_beyond_32_bits")
{
	struct ring *r;
	const struct ring_entry *e;
	struct trace_iter *it;
	irq_state_t state;
	u64 start, end;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	start = arch_clock();
	victim_call(1);
	state = arch_irq_save();
	/* As if the page had been begun so long ago. */
	arch_this_cpu()->head.ring.base -= 3ull << 32;
	r = &rings[cpu_index()];
	r->pages[r->head % r->nr]->base -= 3ull << 32;
	victim_call(2);
	victim_call(3);
	arch_irq_restore(state);
	end = arch_clock();
	it = trace_iter_open(rings, cpus_present(), true);
	KASSERT(t, it);
	for (unsigned int i = 0; i < 3; i++) {
		e = trace_iter_peek(it);
		KASSERT(t, e);
		/* The first event is as old as its page: before the clock began. */
		KEXPECT(t, i ? e->clock >= start && e->clock <= end :
			       (s64)(e->clock - start) < 0);
		trace_iter_next(it);
	}
	trace_iter_close(it);
	trace_test_reset();
}

struct caller {
	struct task *task;
	unsigned int calls;
};

static void call_victim_and_yield(void *arg)
{
	struct caller *c = arg;

	for (unsigned int i = 0; i < c->calls; i++) {
		victim_call(i);
		sched_yield();
	}
}

/* Two tasks take turns on one CPU: each event has the pid of its caller. */
static void expect_turns(struct ktest_run *t)
{
	struct caller c[2] = { { .calls = 500 }, { .calls = 700 } };
	unsigned int seen[3] = { 0 };
	const struct ring_entry *e;
	struct trace_iter *it;
	int pid[2];

	for (int i = 0; i < 2; i++) {
		c[i].task = task_create("caller", PRIO_NORMAL, 1,
					call_victim_and_yield, &c[i]);
		KASSERT(t, c[i].task);
		pid[i] = c[i].task->pid;
	}
	task_join(c[0].task);
	task_join(c[1].task);
	it = trace_iter_open(rings, cpus_present(), true);
	KASSERT(t, it);
	while ((e = trace_iter_peek(it))) {
		seen[e->pid == pid[0] ? 0 : e->pid == pid[1] ? 1 : 2]++;
		trace_iter_next(it);
	}
	trace_iter_close(it);
	KEXPECT_EQ(t, seen[0], 500);
	KEXPECT_EQ(t, seen[1], 700);
	KEXPECT_EQ(t, seen[2], 0);
}

KTEST(ring_pid, "ring.task_of_an_event")
{
	KEXPECT_EQ(t, trace_test_victim(), 0);
	expect_turns(t);
	trace_test_reset();
	/* As while 0 is being written to tracing_on: the trampoline records on until this CPU
	 * hears of it. */
	KEXPECT_EQ(t, trace_test_victim(), 0);
	WRITE_ONCE(trace_top.on, false);
	expect_turns(t);
	WRITE_ONCE(trace_top.on, true);
	trace_test_reset();
}

/* While 0 is being written to tracing_on, a page's end is no end: the CPU has not heard of it. */
KTEST(ring_off, "ring.events_until_the_cpu_hears")
{
	KNEED_CLIENT(t, "events");
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("events/kmem/kmalloc/enable", "1"), 0);
	trace_test_put("trace", "");
	WRITE_ONCE(trace_top.on, false);
	for (unsigned int i = 0; i < 2 * RING_SLOTS; i++)
		kfree(kmalloc(16));
	WRITE_ONCE(trace_top.on, true);
	KEXPECT(t, trace_test_written() >= 2 * RING_SLOTS);
	trace_test_reset();
}

static bool timer_came;

static void in_timer(struct timer *timer)
{
	(void)timer;
	victim_call(0);
	WRITE_ONCE(timer_came, true);
}

/* An interrupt between two calls: its call says so, the task's do not. */
KTEST(ring_interrupt, "ring.nesting_from_interrupts")
{
	u64 end = time_ns() + KWAIT_NS;
	const struct ring_entry *e;
	struct trace_iter *it;
	struct timer timer;
	unsigned int irq = 0, task = 0;

	timer_came = false;
	timer_setup(&timer, in_timer);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	timer_start(&timer, NSEC_PER_MSEC);
	/* On a busy host the timer may come before the first call. */
	do
		victim_call(1);
	while (!READ_ONCE(timer_came) && time_ns() < end);
	timer_cancel(&timer);
	it = trace_iter_open(rings, cpus_present(), true);
	KASSERT(t, it);
	while ((e = trace_iter_peek(it))) {
		bool off = e->context & RING_CONTEXT_IRQS_OFF;

		irq += (e->context & PREEMPT_IRQ_MASK) && off;
		task += !(e->context & PREEMPT_IRQ_MASK) && !off;
		trace_iter_next(it);
	}
	trace_iter_close(it);
	KEXPECT(t, irq > 0);
	KEXPECT(t, task > 0);
	trace_test_reset();
}

/* Markers of all lengths, across page borders, come back as they were. */
KTEST(ring_marks, "ring.markers")
{
	char text[RING_MARK_MAX + 2];
	const struct ring_entry *e;
	struct trace_iter *it;
	struct ring_stats s;
	unsigned int i, n = 0;

	trace_test_reset();
	for (i = 1; i <= RING_MARK_MAX; i += 31) {
		memset(text, 'a' + i % 26, i);
		text[i] = '\0';
		KEXPECT_EQ(t, ring_mark(rings, text, i), 0);
	}
	it = trace_iter_open(rings, cpus_present(), true);
	KASSERT(t, it);
	for (i = 1; (e = trace_iter_peek(it)); i += 31, n++) {
		KEXPECT_EQ(t, e->len, i);
		KEXPECT(t, e->text && e->text[0] == (char)('a' + i % 26) &&
				   e->text[e->len - 1] == e->text[0]);
		KEXPECT_EQ(t, e->pid, current_task()->pid);
		trace_iter_next(it);
	}
	trace_iter_close(it);
	KEXPECT_EQ(t, n, (RING_MARK_MAX + 30) / 31);
	memset(text, 'x', RING_MARK_MAX + 1);
	text[RING_MARK_MAX + 1] = '\0';
	trace_test_put("trace", "");
	KEXPECT_EQ(t, trace_test_put("trace_marker", text), 0);
	KEXPECT_EQ(t, trace_test_put("trace_marker", "\n"), 0);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, 3); /* two parts, and an empty one */
	KEXPECT_EQ(t, trace_test_walk(true), 3);
	trace_test_put("tracing_on", "0");
	KEXPECT_EQ(t, trace_test_put("trace_marker", "late"), -EBADF);
	trace_test_reset();
}

/* A CPU outside tracing_cpumask records nothing. tracing_on = 0: none does. */
KTEST(ring_mask, "ring.cpumask_and_tracing_on")
{
	struct trace_worker *w = trace_workers;
	struct ring_stats s;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	trace_test_put("tracing_cpumask", "1");
	KASSERT(t, trace_workers_start(w, 100));
	trace_workers_join(w);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, 100);
	trace_test_put("tracing_on", "0");
	KASSERT(t, trace_workers_start(w, 100));
	trace_workers_join(w);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, 100);
	KEXPECT_EQ(t, trace_test_put("tracing_cpumask", "100000000"),
		   -EOVERFLOW);
	KEXPECT_EQ(t, trace_test_put("tracing_cpumask", "x"), -EINVAL);
	trace_test_reset();
}
