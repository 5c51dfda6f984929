/* SPDX-License-Identifier: MIT */
/*
 * Jump labels while every CPU runs them: each call takes one of the two ways as a whole,
 * by every strategy, and all take the new one when the batch is done.
 */
#include <tracer/testing.h>

#include <boot/boot_info.h>
#include <kernel/lock/mutex.h>
#include <tracer/patch/keys.h>
#include <kernel/test/again.h>

static u32 wrong; /* atomic: results that neither way gives */

static int set_key(bool on)
{
	struct patch_batch b;
	int err;

	mutex_lock(&trace_mutex);
	err = static_key_set(&b, &key_victim, on);
	mutex_unlock(&trace_mutex);
	return err;
}

/* How many labels a key has. */
static unsigned int labels_of(const struct static_key *key)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < jump_count; i++)
		n += jump_key(i) == key;
	return n;
}

KTEST(keys_known, "keys.labels_are_known")
{
	unsigned int i;

	/* GCC may make fewer labels of victim_labels(), as its loop stands. */
	KEXPECT(t, labels_of(&key_victim) >= 3);
	for (i = 0; i < jump_count; i++) {
		struct live l = jump_live(i);
		const struct static_key *key = jump_key(i);

		KEXPECT(t,
			key >= __start_static_keys && key < __stop_static_keys);
		KEXPECT_EQ(t, jump_find(l.at), i);
		KEXPECT_EQ(t, jump_find(l.at + 1), -1);
		KEXPECT(t, !i || jump_table[i] > jump_table[i - 1]);
	}
}

/* Every label is off, in memory too, while no key is on. */
KTEST(keys_off, "keys.off_after_boot")
{
	trace_test_reset();
	KEXPECT_EQ(t, victim_label(1), 2);
	for (unsigned int i = 0; i < jump_count; i++) {
		struct live l = jump_live(i);

		KEXPECT(t, !jump_key(i)->on);
		KEXPECT_EQ(t, arch_live_read(l), arch_live_bytes(l, false));
	}
}

static void call_while_switched(void *arg)
{
	if (victim_label(1) != 3 || victim_labels(1) != 9)
		count_up(arg);
}

static void call_off(void *arg)
{
	if (victim_label(1) != 2 || victim_labels(1) != 5)
		count_up(arg);
}

static bool stop_calling;

static void call_always(void *arg)
{
	u32 *calls = arg;

	while (!READ_ONCE(stop_calling)) {
		unsigned long one = victim_label(7), many = victim_labels(7);

		if (one < 8 || one > 9 || many < 11 || many > 15)
			count_up(&wrong);
		WRITE_ONCE(*calls, *calls + 1);
		/* The host may have fewer CPUs. Under -icount interrupts must come anywhere. */
		if (*calls % 64 == 0 && !boot_info.icount)
			arch_cpu_relax();
	}
}

/* On and off, while a task on each CPU runs the labels. */
PATCH_TEST(keys_switch, "keys.switched_under_load")
{
	static u32 calls[MAX_CPUS], before[MAX_CPUS];
	struct task *tasks[MAX_CPUS] = { NULL };
	unsigned int cpu;

	wrong = 0;
	stop_calling = false;
	for_each_online_cpu (cpu) {
		calls[cpu] = 0;
		/* This task, which switches them, does not wait for their turns to end. */
		tasks[cpu] = task_create("labels", PRIO_LOW, 1u << cpu,
					 call_always, &calls[cpu]);
		KASSERT(t, tasks[cpu]);
	}
	for (int i = 0; i < 20; i++) {
		bool on = i % 2 == 0;

		KEXPECT_EQ(t, set_key(on), 0);
		cpu_call(~0u, on ? call_while_switched : call_off, &wrong);
		/* For all together: one after the other would take the square of them. */
		for_each_online_cpu (cpu)
			before[cpu] = READ_ONCE(calls[cpu]);
		for_each_online_cpu (cpu)
			KEXPECT(t, KWAIT(READ_ONCE(calls[cpu]) != before[cpu]));
	}
	WRITE_ONCE(stop_calling, true);
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (tasks[cpu])
			task_join(tasks[cpu]);
	KEXPECT_EQ(t, wrong, 0);
}

/* ---- Refused -------------------------------------------------------------------- */

STATIC_KEY(lone_label);

/* Nothing calls it, so any bytes may stand at its label. */
static __attribute__((used)) noinline bool lone_label_is_on(void)
{
	return static_branch(&key_lone_label);
}

/* A label with strange bytes is named, and no label of the key changes. */
KTEST(keys_wrong, "keys.strange_bytes_are_refused")
{
	unsigned int i = 0;
	struct patch_batch b;
	char said[120];
	struct live l;

	while (jump_key(i) != &key_lone_label)
		i++;
	l = jump_live(i);
	mutex_lock(&trace_mutex);
	trace_test_overwrite(l, arch_live_bytes(l, true));
	key_victim.on = true;
	KEXPECT_EQ(t, static_key_set(&b, &key_lone_label, true), -EIO);
	KEXPECT(t, !key_lone_label.on);
	patch_explain(&b, said, sizeof(said));
	KEXPECT(t, strstr(said, "lone_label_is_on"));
	KEXPECT_EQ(t, victim_label(1), 2);
	key_victim.on = false;
	trace_test_overwrite(l, arch_live_bytes(l, false));
	KEXPECT_EQ(t, static_keys_apply(&b), 0);
	mutex_unlock(&trace_mutex);
}
