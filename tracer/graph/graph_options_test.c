/* SPDX-License-Identifier: MIT */
/*
 * Proves of the options that choose the calls and times which function_graph and the profiler
 * record, each against the test's own counts and times, that a call which returns on another CPU is
 * told from the next one, and that a CPU stops to record calls and returns at the same time.
 */
#include <tracer/testing.h>
#include <tracer/ops/returns.h>

#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/bits.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

#define SLEEP_NS (3 * NSEC_PER_MSEC)
#define LEVELS (TASK_RETURNS + 12)
#define TEXT 32768

static int begin_graph_options(const char *filter)
{
	int err;

	trace_test_reset();
	err = trace_test_put("set_ftrace_filter", filter);
	return err ? err : trace_test_put("current_tracer", "function_graph");
}

static u64 slept; /* clock ticks, as the sleeper itself sees it */

static notrace void sleep_on(unsigned long x)
{
	u64 began = arch_clock();

	(void)x;
	task_sleep(SLEEP_NS);
	slept = arch_clock() - began;
}

/* The time of one call of victim_callback(fn), as function_graph has it. 0: it has none. *real is
 * the time that the caller measures. */
static u64 time_of_call(void (*fn)(unsigned long x), u64 *real)
{
	struct trace_iter *it;
	const struct ring_entry *e;
	u64 ticks = 0;

	trace_test_put("trace", "");
	*real = arch_clock();
	victim_callback(fn, 1);
	*real = arch_clock() - *real;
	it = trace_iter_open(rings, cpus_present(), true);
	while (it && (e = trace_iter_peek(it))) {
		if (e->graph == RING_GRAPH_RETURN)
			ticks = e->ticks;
		trace_iter_next(it);
	}
	trace_iter_close(it);
	return ticks;
}

static notrace void clear_and_sleep(unsigned long x)
{
	trace_test_put("trace", "");
	sleep_on(x);
}

KTEST(graph_sleep_time, "graph.sleep_time")
{
	u64 real, ticks;

	KEXPECT_EQ(t, begin_graph_options("victim_callback"), 0);
	ticks = time_of_call(sleep_on, &real);
	KEXPECT(t, ticks >= ns_to_clock_delta(SLEEP_NS) && ticks <= real);
	KEXPECT_EQ(t, trace_test_put("options/sleep-time", "0"), 0);
	ticks = time_of_call(sleep_on, &real);
	KEXPECT(t, ticks && ticks <= real);
	/* Elsewhere the host may keep the CPU from falling asleep in time, or take so long that
	 * another task comes in between. */
	if (boot_info.icount)
		KEXPECT(t, real - ticks <= slept &&
				   clock_delta_to_ns(real - ticks) >=
					   SLEEP_NS - 200 * NSEC_PER_USEC);
	/* A call that the buffer does not know any more does not seem to begin later. */
	victim_callback(clear_and_sleep, 1);
	KEXPECT_EQ(t, trace_test_written(), 0);
	KEXPECT_EQ(t, trace_test_put("options/sleep-time", "1"), 0);
	ticks = time_of_call(sleep_on, &real);
	KEXPECT(t, ticks >= ns_to_clock_delta(SLEEP_NS) && ticks <= real);
	trace_test_reset();
}

/* ---- Option sleep-time 0, while tracing is off for a time ---- */

static struct mutex gates[2] = {
	MUTEX_INIT_AROUND_TASKS(gates[0]),
	MUTEX_INIT_AROUND_TASKS(gates[1]),
};
static bool gates_closed;
static u64 awake; /* clock ticks between the gates */

static bool waits_at(struct mutex *gate)
{
	irq_state_t state = spin_lock(&gate->waiters.lock);
	bool waits = !list_empty(&gate->waiters.tasks);

	spin_unlock(&gate->waiters.lock, state);
	return waits;
}

/* The caller sleeps at the first gate when tracing ends, and at the second when it goes on. */
static void keep_gates(void *arg)
{
	(void)arg;
	mutex_lock(&gates[0]);
	mutex_lock(&gates[1]);
	WRITE_ONCE(gates_closed, true);
	for (unsigned int i = 0; i < 2; i++) {
		if (KWAIT(waits_at(&gates[i])))
			trace_test_put("tracing_on", i ? "1" : "0");
		mutex_unlock(&gates[i]);
	}
}

/* The time that the caller is awake between the gates is its own: no task takes its CPU away, since
 * then it would not run, and that counts as sleep. */
static notrace void pass_gates(unsigned long x)
{
	u64 began;

	(void)x;
	mutex_lock(&gates[0]);
	preempt_disable();
	began = arch_clock();
	while (arch_clock() - began < ns_to_clock_delta(SLEEP_NS))
		;
	awake = arch_clock() - began;
	preempt_enable();
	mutex_lock(&gates[1]);
	mutex_unlock(&gates[1]);
	mutex_unlock(&gates[0]);
}

KTEST(graph_sleep_stopped, "graph.sleep_time_while_off")
{
	struct task *keeper;
	u64 real, ticks;

	gates_closed = false;
	KEXPECT_EQ(t, begin_graph_options("victim_callback"), 0);
	KEXPECT_EQ(t, trace_test_put("options/sleep-time", "0"), 0);
	keeper = task_create("keeper", PRIO_NORMAL, ~0u, keep_gates, NULL);
	KASSERT(t, keeper);
	KASSERT(t, KWAIT(READ_ONCE(gates_closed)));
	ticks = time_of_call(pass_gates, &real);
	KEXPECT(t, ticks >= awake && ticks <= real);
	task_join(keeper);
	KEXPECT_EQ(t, trace_test_put("options/sleep-time", "1"), 0);
	trace_test_reset();
}

/* How many calls of the function are in the buffer, while the caller has slept. */
static unsigned int count_calls_of(const char *name)
{
	struct trace_iter *it;
	const struct ring_entry *e;
	unsigned int n = 0;
	struct symbol s;

	trace_test_put("trace", "");
	victim_callback(sleep_on, 1);
	it = trace_iter_open(rings, cpus_present(), true);
	while (it && (e = trace_iter_peek(it))) {
		if (e->graph == RING_GRAPH_ENTRY && symbol_at(e->ip, &s) &&
		    !strcmp(s.name, name))
			n++;
		trace_iter_next(it);
	}
	trace_iter_close(it);
	return n;
}

/* A sleeper is woken by an interrupt. */
KTEST(graph_irqs, "graph.funcgraph_irqs")
{
	KEXPECT_EQ(t, begin_graph_options("irq_event victim_callback"), 0);
	KEXPECT(t, count_calls_of("irq_event") > 0);
	KEXPECT_EQ(t, trace_test_put("options/funcgraph-irqs", "0"), 0);
	KEXPECT_EQ(t, count_calls_of("irq_event"), 0);
	KEXPECT_EQ(t, count_calls_of("victim_callback"), 1);
	KEXPECT_EQ(t, trace_test_put("options/funcgraph-irqs", "1"), 0);
	KEXPECT(t, count_calls_of("irq_event") > 0);
	trace_test_reset();
}

static notrace void nest_calls(unsigned long levels)
{
	if (levels)
		victim_callback(nest_calls, levels - 1);
}

KTEST(graph_overrun, "graph.funcgraph_overrun")
{
	char *text = kmalloc(TEXT), want[40];
	u32 room = TASK_RETURNS - current_task()->nr_returns, before;
	unsigned int lines = 0;

	KASSERT(t, text);
	KEXPECT_EQ(t, begin_graph_options("victim_callback"), 0);
	before = current_task()->returns_missed;
	nest_calls(LEVELS);
	KEXPECT_EQ(t, current_task()->returns_missed - before, LEVELS - room);
	trace_test_put("tracing_on", "0");
	KEXPECT(t, trace_test_read("trace", text, TEXT, 4096) > 0);
	KEXPECT(t, !strstr(text, "Overruns"));
	trace_test_put("options/funcgraph-overrun", "1");
	KEXPECT(t, trace_test_read("trace", text, TEXT, 4096) > 0);
	snprintf(want, sizeof(want), "}\n (Overruns: %u)\n",
		 before + LEVELS - room);
	for (char *at = text; (at = strstr(at, want)); at++)
		lines++;
	/* The innermost that was recorded has its call and its return in one line. */
	KEXPECT_EQ(t, lines, room - 1);
	kfree(text);
	trace_test_reset();
}

/* ---- Other CPUs ------------------------------------------------------------------- */

static notrace void move_to(unsigned long cpu)
{
	task_set_affinity(current_task(), 1u << cpu);
}

/* Of each kind, the lines of a call graph that the buffer makes. */
static void count_graph_lines(unsigned int *kinds)
{
	struct trace_iter *it = trace_iter_open(rings, cpus_present(), true);
	const struct ring_entry *e;

	while (it && (e = trace_iter_peek_line(it))) {
		kinds[e->graph]++;
		trace_iter_next(it);
	}
	trace_iter_close(it);
}

/*
 * A return says to the tick when its call began, whether trampolines or C code wrote the two: so
 * readers tell its call from others. In the one place C writes the call because of a limit. In the
 * other C writes the return, because the call takes long.
 */
KTEST(graph_exact, "graph.returns_name_their_call")
{
	static const char *const depths[] = { "5", "0" };
	const struct ring_entry *e;
	struct trace_iter *it;
	unsigned int pairs;
	u64 began;

	KEXPECT_EQ(t, begin_graph_options("victim_callback"), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(depths); i++) {
		KEXPECT_EQ(t, trace_test_put("max_graph_depth", depths[i]), 0);
		trace_test_put("trace", "");
		for (unsigned int n = 0; n < 8; n++)
			victim_callback(sleep_on, 1);
		it = trace_iter_open(rings, cpus_present(), true);
		for (began = pairs = 0; it && (e = trace_iter_peek(it));
		     trace_iter_next(it)) {
			if (e->graph == RING_GRAPH_ENTRY)
				began = e->clock;
			else
				pairs += e->clock - e->ticks == began;
		}
		trace_iter_close(it);
		KEXPECT_EQ(t, pairs, 8);
	}
	trace_test_reset();
}

/* A call in which a task slept, and came back to its CPU, is one line. Neither an option that
 * leaves the sleep out of its time nor a limit, by which C code records it, changes that. */
KTEST(graph_slept_leaf, "graph.leaf_that_slept")
{
	static const char *const settings[][2] = {
		{ "options/sleep-time", "1" },
		{ "options/sleep-time", "0" },
		{ "max_graph_depth", "5" },
	};
	unsigned int kinds[RING_GRAPH_LEAF + 1];

	move_to(0);
	KEXPECT_EQ(t, begin_graph_options("victim_callback"), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(settings); i++) {
		KEXPECT_EQ(t, trace_test_put(settings[i][0], settings[i][1]),
			   0);
		trace_test_put("trace", "");
		memset(kinds, 0, sizeof(kinds));
		victim_callback(sleep_on, 1);
		count_graph_lines(kinds);
		KEXPECT_EQ(t, kinds[RING_GRAPH_LEAF], 1);
		KEXPECT_EQ(t, kinds[RING_GRAPH_ENTRY], 0);
	}
	task_set_affinity(current_task(), ~0u);
	trace_test_reset();
}

/*
 * A call that returns on another CPU, and then one that comes back: in the first CPU's ring the
 * return of the second stands right behind the first. They are no leaf.
 */
static void return_elsewhere(struct ktest_run *t, unsigned int other)
{
	unsigned int kinds[RING_GRAPH_LEAF + 1] = { 0 };

	victim_callback(move_to, other);
	victim_callback(move_to, 0);
	count_graph_lines(kinds);
	KEXPECT_EQ(t, kinds[RING_GRAPH_ENTRY], 2);
	KEXPECT_EQ(t, kinds[RING_GRAPH_RETURN], 2);
	KEXPECT_EQ(t, kinds[RING_GRAPH_LEAF], 0);
}

KTEST(graph_elsewhere, "graph.returns_elsewhere")
{
	cpumask_t others = READ_ONCE(cpus_online) & ~1u;
	char pid[12];

	if (!others)
		KSKIP(t, "one CPU");
	move_to(0);
	KEXPECT_EQ(t, begin_graph_options("victim_callback"), 0);
	return_elsewhere(t, bit_lowest(others));
	/* Nor where no other task is recorded in between. */
	snprintf(pid, sizeof(pid), "%d", current_task()->pid);
	KEXPECT_EQ(t, trace_test_put("set_ftrace_pid", pid), 0);
	trace_test_put("trace", "");
	return_elsewhere(t, bit_lowest(others));
	task_set_affinity(current_task(), ~0u);
	trace_test_reset();
}

/* ---- tracing_on ----------------------------------------------------------------- */

#define STOP_NS (20 * NSEC_PER_MSEC)

static u32 stopping; /* atomic: steps of the two CPUs */

/* Until the other CPU is about to stop function_graph, and then as long as that may take. */
static notrace void call_while_stopped(unsigned long x)
{
	u64 start;

	__atomic_store_n(&stopping, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&stopping, __ATOMIC_ACQUIRE) != 2)
		arch_cpu_relax();
	start = arch_clock();
	while (READ_ONCE(trace_ops) != &trace_ops_off &&
	       clock_delta_to_ns(arch_clock() - start) < STOP_NS)
		arch_cpu_relax();
	victim_call(x);
}

static notrace void call_stopped(void *arg)
{
	irq_state_t state = arch_irq_save();

	victim_callback(call_while_stopped, (unsigned long)arg);
	arch_irq_restore(state);
}

/*
 * The other CPU takes no interrupt meanwhile. If it left calls out as soon as trace_ops changes,
 * but recorded returns, a return would be there without the calls inside.
 */
KTEST(graph_stops, "graph.stops_calls_and_returns_at_once")
{
	unsigned int here = cpu_index();
	struct ring_stats s;
	struct task *other;

	if (bit_count(READ_ONCE(cpus_online)) < 2)
		KSKIP(t, "one CPU");
	task_set_affinity(current_task(), 1u << here);
	KEXPECT_EQ(t, begin_graph_options("victim_callback victim_call"), 0);
	stopping = 0;
	other = task_create("stopped", PRIO_NORMAL,
			    READ_ONCE(cpus_online) & ~(1u << here),
			    call_stopped, NULL);
	KASSERT(t, other);
	while (__atomic_load_n(&stopping, __ATOMIC_ACQUIRE) != 1)
		sched_yield();
	__atomic_store_n(&stopping, 2, __ATOMIC_RELEASE);
	KEXPECT_EQ(t, trace_test_put("tracing_on", "0"), 0);
	task_join(other);
	KEXPECT(t, trace_test_books(&s));
	/* Nothing from the stop on, or the stop came last. */
	KEXPECT(t, s.written == 1 || s.written == 4);
	task_set_affinity(current_task(), ~0u);
	trace_test_reset();
}
