/* SPDX-License-Identifier: MIT */
/*
 * The tasks of a case, and what happens to them, to a CPU, to the buffer or to the memory while one
 * client follows another. The callers run the victims all the time. A guest stands inside a victim
 * while the clients change.
 */
#include <tracer/user/seams_moments_test.h>

#include <tracer/testing.h>
#include <tracer/user/seams_test.h>

#include <kernel/cpu/hotplug.h>
#include <kernel/ctl/ctl.h>
#include <kernel/sched/balance.h>
#include <kernel/sched/hold.h>
#include <kernel/time.h>
#include <tracer/ops/ops.h>

#define CALLERS 4u
#define FEW_CALLS 3
#define TRIES 60

static struct caller {
	struct task *task;
	u32 calls, wrong;
	bool held;
} callers[CALLERS];
static bool in_haste; /* callers do not sleep in between */
static struct task *guest;

/* ---- Callers ---- */

static void call_victims(void *arg)
{
	struct caller *c = arg;
	u32 seed = 3 + (c - callers);

	while (!task_should_stop()) {
		/* So that interrupts come at another instruction each time. */
		for (u32 n = ktest_random(&seed) % 64; n; n--)
			asm volatile("");
		c->wrong += victim_outer(5) != 9;
		count_up(&c->calls);
		if (!READ_ONCE(in_haste))
			task_sleep(100 * NSEC_PER_USEC);
	}
}

bool seam_tasks_start(void)
{
	in_haste = false;
	guest = NULL;
	for (unsigned int i = 0; i < CALLERS; i++) {
		struct caller *c = &callers[i];

		*c = (struct caller){ 0 };
		c->task = task_create_expendable(
			"seam", PRIO_LOW, 1u << (i % 2 ? ktest_last_cpu() : 0),
			call_victims, c);
		if (!c->task)
			return false;
	}
	return true;
}

void seam_tasks_stop(void)
{
	for (unsigned int i = 0; i < CALLERS; i++) {
		struct caller *c = &callers[i];

		if (!c->task)
			continue;
		task_stop(c->task);
		task_join(c->task);
		c->task = NULL;
		if (c->wrong)
			seam_wrong("%u calls of a victim had a wrong result",
				   c->wrong);
	}
}

int seam_tasks_pid(void)
{
	return callers[1].task->pid;
}

void seam_tasks_work(void)
{
	u32 before[CALLERS];

	for (unsigned int i = 0; i < CALLERS; i++)
		before[i] = READ_ONCE(callers[i].calls);
	for (unsigned int i = 0; i < CALLERS; i++)
		if (callers[i].task && !callers[i].held &&
		    !KWAIT(READ_ONCE(callers[i].calls) - before[i] > FEW_CALLS))
			seam_wrong("a task does not go on");
}

static void end_nothing(void *arg)
{
	(void)arg;
}

/* Interrupt the callers until they stand in the trampolines, each at some instruction. */
static void hold_callers(void)
{
	static u32 seed = 7;
	unsigned int left = CALLERS;

	/* The client that is on sees no calls. */
	if (READ_ONCE(trace_ops) == &trace_ops_off)
		return;
	for (unsigned int i = 0; i < CALLERS; i++)
		task_hold(callers[i].task, (unsigned long)trace_entry,
			  (unsigned long)trampoline_end);
	WRITE_ONCE(in_haste, true);
	for (unsigned int n = 0; n < TRIES && left; n++) {
		task_sleep(ktest_random(&seed) % (20 * NSEC_PER_USEC));
		cpu_call(~0u, end_nothing, NULL);
		for (unsigned int i = 0; i < CALLERS; i++) {
			struct caller *c = &callers[i];

			if (c->held || READ_ONCE(c->task->state) != TASK_HELD)
				continue;
			c->held = task_wait_held(c->task, NSEC_PER_SEC);
			left--;
		}
	}
	for (unsigned int i = 0; i < CALLERS; i++)
		task_hold(callers[i].task, 0, 0);
	/* A caller may have come there just before. */
	for (unsigned int i = 0; i < CALLERS; i++)
		if (!callers[i].held &&
		    READ_ONCE(callers[i].task->state) == TASK_HELD)
			callers[i].held =
				task_wait_held(callers[i].task, NSEC_PER_SEC);
	WRITE_ONCE(in_haste, false);
}

static void release_callers(void)
{
	for (unsigned int i = 0; i < CALLERS; i++)
		if (callers[i].task && callers[i].held) {
			callers[i].held = false;
			task_release(callers[i].task);
		}
}

static void migrate_callers(void)
{
	for (unsigned int i = 0; i < CALLERS; i++)
		task_set_affinity(callers[i].task,
				  1u << (i % 2 ? 0 : ktest_last_cpu()));
	release_callers();
}

/* Some are killed where they stand, the others go on. */
static void bury_callers(void)
{
	for (unsigned int i = 0; i < CALLERS; i += 2)
		if (callers[i].held) {
			task_bury(callers[i].task);
			task_join(callers[i].task);
			callers[i].task = NULL;
			callers[i].held = false;
		}
	release_callers();
}

/* ---- A guest inside a victim ---- */

static void stay_here(unsigned long x)
{
	task_hold_self();
	if (x)
		task_exit(0);
}

static void visit_victim(void *arg)
{
	victim_callback(stay_here, (unsigned long)arg);
	victim_outer(1);
}

static void invite_guest(bool exits)
{
	guest = task_create_expendable("guest", PRIO_NORMAL,
				       1u << ktest_last_cpu(), visit_victim,
				       (void *)(unsigned long)exits);
	if (!guest || !task_wait_held(guest, 10 * NSEC_PER_SEC))
		seam_wrong("the guest does not come");
}

static void invite_sleeper(void)
{
	invite_guest(false);
}

static void invite_leaver(void)
{
	invite_guest(true);
}

static void dismiss_guest(void)
{
	if (!guest)
		return;
	task_release(guest);
	task_join(guest);
	guest = NULL;
}

static void bury_guest(void)
{
	if (guest)
		task_bury(guest);
	dismiss_guest();
}

/* ---- CPUs ---- */

static void expect_cpu(int err, int right)
{
	if (err != right)
		seam_wrong("the CPU's change gives %d, and not %d", err, right);
}

static void take_cpu(void)
{
	expect_cpu(cpu_down(ktest_last_cpu()), 0);
}

static void give_cpu(void)
{
	for (unsigned int c = 1; c < nr_cpus; c++)
		expect_cpu(cpu_up(c), 0);
}

static void cycle_cpu(void)
{
	take_cpu();
	give_cpu();
}

static struct fault *late;

static void be_late(struct fault *f, int (*change)(unsigned int cpu))
{
	unsigned int cpu = nr_cpus - 1;
	u64 usual = cpu_start_ns;

	late = f;
	late->cpu = cpu;
	fault_plant(late, 1);
	cpu_start_ns = NSEC_PER_MSEC;
	expect_cpu(change(cpu), -ETIMEDOUT);
	cpu_start_ns = usual;
}

static void arrive_late(void)
{
	take_cpu();
	be_late(&fault_cpu_join_late, cpu_up);
}

static void park_late(void)
{
	be_late(&fault_cpu_park_late, cpu_down);
}

static void end_late(void)
{
	fault_plant(late, 0);
	late->cpu = 0;
	give_cpu();
}

/* ---- The buffer ---- */

static void clear_buffer(void)
{
	trace_test_put("trace", "");
}

static void shrink_buffer(void)
{
	trace_test_put("buffer_size_kb", "16");
}

static void grow_buffer(void)
{
	trace_test_put("buffer_size_kb", "256");
}

static void swap_buffer(void)
{
	trace_test_put("snapshot", "1");
}

static void forget_snapshot(void)
{
	trace_test_put("snapshot", "0");
}

static void change_clock(void)
{
	trace_test_put("trace_clock", "counter");
}

static void usual_clock(void)
{
	trace_test_put("trace_clock", "local");
}

/* ---- An instance that goes while it is read ---- */

#define GONE TRACING "instances/gone"

static struct ctl_handle *reader;

static void read_instance(void)
{
	char text[64];

	if (ctl_mkdir(GONE, trace_test_error, sizeof(trace_test_error)) ||
	    trace_test_put("instances/gone/current_tracer", "function") ||
	    trace_test_put("instances/gone/events/enable", "1") ||
	    ctl_open(GONE "/trace", false, false, &reader)) {
		seam_wrong("no instance to read: %s", trace_test_error);
		return;
	}
	ctl_read(reader, text, sizeof(text));
}

static void remove_read_instance(void)
{
	char error[160];
	int err = ctl_rmdir(GONE, error, sizeof(error));

	if (reader)
		ctl_abandon(reader);
	reader = NULL;
	if (err)
		err = ctl_rmdir(GONE, error, sizeof(error));
	if (err)
		seam_wrong("the instance stays: %s", error);
}

/* ---- Memory ---- */

static void take_memory(void)
{
	trace_test_memory_take(0);
}

static void give_memory(void)
{
	trace_test_memory_give();
}

static const struct seam_moment moments[] = {
	{ "quiet", .apart = true },
	{ .name = "beside" },
	{ "held", .meet = hold_callers, .part = release_callers },
	{ "held-apart", .meet = hold_callers, .part = release_callers,
	  .apart = true },
	{ "migrates", .meet = hold_callers, .part = migrate_callers },
	{ "buried", .meet = hold_callers, .part = bury_callers },
	{ "sleeps", .meet = invite_sleeper, .part = dismiss_guest },
	{ "sleeps-apart", .meet = invite_sleeper, .part = dismiss_guest,
	  .apart = true },
	{ "exits", .meet = invite_leaver, .part = dismiss_guest },
	{ "killed", .meet = invite_sleeper, .part = bury_guest },
	{ "stays", .meet = invite_sleeper, .after = dismiss_guest },
	{ "cpu-away", .meet = take_cpu, .part = give_cpu },
	{ "cpu-apart", .meet = take_cpu, .part = give_cpu, .apart = true },
	{ "cpu-leaves", .part = take_cpu, .after = give_cpu },
	{ "cpu-returns", .meet = cycle_cpu },
	{ "cpu-late", .meet = arrive_late, .part = end_late },
	{ "park-late", .meet = park_late, .part = end_late },
	{ "cleared", .meet = clear_buffer, .part = clear_buffer,
	  .empties = true },
	{ "resized", .meet = shrink_buffer, .part = grow_buffer,
	  .empties = true },
	{ "swapped", .meet = swap_buffer, .part = swap_buffer,
	  .after = forget_snapshot, .empties = true },
	{ "clock", .meet = change_clock, .part = usual_clock, .empties = true },
	{ "instance-gone", .meet = read_instance,
	  .part = remove_read_instance },
	{ "memory", .meet = take_memory, .part = give_memory, .poor = true },
};

const struct seam_moment *seam_moment(unsigned int i)
{
	return i < ARRAY_SIZE(moments) ? &moments[i] : NULL;
}
