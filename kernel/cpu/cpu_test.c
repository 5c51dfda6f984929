/* SPDX-License-Identifier: MIT */
/* Proves that the CPUs are those of boot_info, reach one another, and run calls. */
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/test/ktest.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

KTEST(cpu_all_online, "cpu.all_online")
{
	unsigned int c;

	KEXPECT_EQ(t, cpus_online, cpus_present());
	KEXPECT(t, nr_cpus <= boot_info.nr_cpus);
	for_each_online_cpu (c) {
		KEXPECT_EQ(t, cpus[c].head.index, c);
		KEXPECT_EQ(t, cpus[c].hwid.id, boot_info.cpu_hwid[c].id);
		for (unsigned int d = 0; d < c; d++)
			KEXPECT(t, cpus[c].hwid.id != cpus[d].hwid.id);
	}
}

struct roll {
	u32 calls[MAX_CPUS];
	u32 wrong;
};

static void answer_roll(void *arg)
{
	struct roll *r = arg;

	r->wrong += !arch_irqs_off();
	r->calls[cpu_index()]++;
}

KTEST(cpu_call, "cpu.call")
{
	struct roll r = { 0 };
	irq_state_t state;
	unsigned int c;
	int err;

	KEXPECT_EQ(t, cpu_call(~0u, answer_roll, &r), 0);
	for_each_online_cpu (c) {
		KEXPECT_EQ(t, r.calls[c], 1);
		KEXPECT_EQ(t, cpu_call(1u << c, answer_roll, &r), 0);
		KEXPECT_EQ(t, r.calls[c], 2);
	}
	KEXPECT_EQ(t, r.wrong, 0);
	KEXPECT_EQ(t, cpu_call(0, answer_roll, &r), 0);
	KEXPECT_EQ(t, cpu_call(~cpus_online, answer_roll, &r), 0);
	state = arch_irq_save();
	err = cpu_call(~0u, answer_roll, &r);
	arch_irq_restore(state);
	KEXPECT_EQ(t, err, -EDEADLK);
	for_each_online_cpu (c)
		KEXPECT_EQ(t, r.calls[c], 2);
}

#define ROUNDS 10

static void call_all_cpus(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		cpu_call(~0u, answer_roll, arg);
}

/* Each CPU writes its own counts with its interrupts off, so no count gets lost. */
KTEST(cpu_call_concurrent, "cpu.call_concurrent")
{
	struct roll r = { 0 };
	struct task *task[MAX_CPUS];
	unsigned int c, n = 0;

	for_each_online_cpu (c)
		task[n++] = task_create("caller", PRIO_LOW, 1u << c,
					call_all_cpus, &r);
	for (unsigned int i = 0; i < n; i++)
		task_join(task[i]);
	for_each_online_cpu (c)
		KEXPECT_EQ(t, r.calls[c], n * ROUNDS);
}
