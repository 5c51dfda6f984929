/* SPDX-License-Identifier: MIT */
/* Conformance of a port with arch.h: stacks that a CPU has for itself. Section 6 of the guide. */
#include <arch/arch.h>
#include <arch/arch_lab.h>
#include <arch/conform/conform.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/irq.h>
#include <kernel/lib/bits.h>
#include <kernel/sched/task.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

/* CPUs that meet, each on a stack of its own. */
static struct {
	u32 all, here; /* so many are to come, have come */
	u32 overrun;   /* CPUs whose stack another CPU has written */
	bool begin;
} meeting;

/* Where each CPU then stood. Kept for tests/test_faults.py, which knows the image's variables. */
static unsigned long meeting_place[MAX_CPUS];

/* Stay on this stack until all CPUs stand on theirs. Trap context. */
static void meet_others(void)
{
	volatile unsigned int mine = cpu_index();
	struct spin_limit limit = spin_limit_begin(KWAIT_NS);

	WRITE_ONCE(meeting_place[mine], (unsigned long)&mine);
	__atomic_fetch_add(&meeting.here, 1, __ATOMIC_SEQ_CST);
	while (READ_ONCE(meeting.here) < meeting.all &&
	       !spin_limit_over(&limit))
		arch_cpu_relax();
	if (mine != cpu_index())
		__atomic_fetch_add(&meeting.overrun, 1, __ATOMIC_RELAXED);
}

static bool meet_in_fault(struct trap_frame *f)
{
	(void)f;
	meet_others();
	return false;
}

/* Its CPU's stack is lost when all CPUs' tasks are there. */
static void lose_at_once(void *arg)
{
	(void)arg;
	while (!READ_ONCE(meeting.begin))
		task_sleep(NSEC_PER_MSEC);
	arch_irq_disable();
	lab_lose_stack((void *)16);
}

static void prepare_meeting(void)
{
	meeting = (typeof(meeting)){ .all = bit_count(READ_ONCE(cpus_online)) };
}

static void expect_all_met(struct ktest_run *t)
{
	KEXPECT_EQ(t, meeting.here, meeting.all);
	KEXPECT_EQ(t, meeting.overrun, 0);
}

/* The stack that a CPU has for a lost one is no other CPU's. */
KTEST(arch_trap_own, "arch.cpu_start.trap_stack")
{
	static struct task_fault fault[MAX_CPUS];
	struct task *task[MAX_CPUS] = { NULL };
	unsigned int c;

	prepare_meeting();
	for_each_online_cpu (c) {
		fault[c] = (struct task_fault){ .fix = meet_in_fault };
		task_set_affinity(current_task(), 1u << c);
		task[c] =
			task_create_watched("victim", lose_at_once, &fault[c]);
		KEXPECT(t, task[c]);
	}
	task_set_affinity(current_task(), ~0u);
	WRITE_ONCE(meeting.begin, true);
	for (c = 0; c < MAX_CPUS; c++)
		if (task[c])
			KEXPECT_EQ(t, task_join(task[c]), -EFAULT);
	expect_all_met(t);
}

/* Nor is the stack of its NMIs. */
KTEST(arch_nmi_own, "arch.nmi_send.own_stack")
{
	unsigned int c;

	if (conform_nmi() == -ENOSYS)
		KSKIP(t, "this machine has no NMI");
	prepare_meeting();
	irq_nmi_hook = meet_others;
	preempt_disable();
	for_each_online_cpu (c)
		if (c != cpu_index())
			arch_nmi_send(c);
	arch_nmi_send(cpu_index());
	KEXPECT(t, KWAIT(READ_ONCE(meeting.here) == meeting.all));
	preempt_enable();
	irq_nmi_hook = NULL;
	expect_all_met(t);
}
