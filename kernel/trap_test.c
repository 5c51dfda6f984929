/* SPDX-License-Identifier: MIT */
/*
 * Proves that a fault in an expendable task ends that task and nothing else, on every
 * CPU: wild accesses, stores to text, execution of data, and a stack that overflows
 * into its guard page or canary. A creator that expects a fault gets a record of it,
 * and may mend its cause.
 */
#include <arch/arch.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/test/ktest.h>
#include <kernel/image/symbols.h>
#include <kernel/sched/hold.h>
#include <kernel/sched/task.h>
#include <kernel/lock/wait.h>
#include <kernel/sched/balance.h>
#include <kernel/test/again.h>

static unsigned int survived;

static void trap_store_to(void *arg)
{
	*(volatile u32 *)arg = 0;
	WRITE_ONCE(survived, survived + 1);
}

static void trap_load_from(void *arg)
{
	(void)*(volatile u32 *)arg;
	WRITE_ONCE(survived, survived + 1);
}

static void trap_run_at(void *arg)
{
	((void (*)(void))arg)();
	WRITE_ONCE(survived, survived + 1);
}

static int run_expendable(void (*fn)(void *arg), void *arg, cpumask_t where)
{
	struct task *v =
		task_create_expendable("victim", PRIO_LOW, where, fn, arg);

	return v ? task_join(v) : -ENOMEM;
}

KTEST(trap_null, "trap.kills_expendable")
{
	unsigned int c;

	survived = 0;
	for_each_online_cpu (c) {
		KEXPECT_EQ(t, run_expendable(trap_store_to, NULL, 1u << c),
			   -EFAULT);
		KEXPECT_EQ(t, run_expendable(trap_load_from, NULL, 1u << c),
			   -EFAULT);
		KEXPECT_EQ(t, run_expendable(trap_run_at, NULL, 1u << c),
			   -EFAULT);
	}
	KEXPECT_EQ(t, survived, 0);
}

KTEST(trap_wx, "trap.text_is_not_writable")
{
	static u32 data[16];
	u32 before = *(volatile u32 *)_text;

	if (!arch_protects_text)
		KSKIP(t, "text cannot be protected here");
	survived = 0;
	KEXPECT_EQ(t, run_expendable(trap_store_to, _text, ~0u), -EFAULT);
	KEXPECT_EQ(t, run_expendable(trap_store_to, (void *)schedule, ~0u),
		   -EFAULT);
	KEXPECT_EQ(t, run_expendable(trap_run_at, data, ~0u), -EFAULT);
	KEXPECT_EQ(t, run_expendable(trap_store_to, (void *)&symbol_count, ~0u),
		   -EFAULT);
	KEXPECT_EQ(t, *(volatile u32 *)_text, before);
	KEXPECT_EQ(t, survived, 0);
}

/* Each round uses a little stack. 40 KiB in all is more than any task has. */
static noinline unsigned int recurse_past_stack(unsigned int depth)
{
	volatile unsigned int pad[16];

	for (unsigned int i = 0; i < ARRAY_SIZE(pad); i++)
		pad[i] = depth;
	return depth ? recurse_past_stack(depth - 1) + pad[depth % 16] : pad[0];
}

/* Interrupts are off. An interrupt that found too little of the stack left would be the one that
 * overflows, and it is no task that can be killed. */
static void overflow_guard(void *arg)
{
	(void)arg;
	arch_irq_disable();
	recurse_past_stack(40 * 1024 / (16 * 4));
	WRITE_ONCE(survived, survived + 1);
}

/*
 * Where only a canary shows an overflow, this test must not damage the memory below it. So
 * the task goes a little beyond its stack's end, and the scheduler finds that when the task
 * gives up the CPU.
 */
static void overflow_canary(void *arg)
{
	char *end = current_task()->stack - 64;

	(void)arg;
	for (volatile char *p = (char *)__builtin_dwarf_cfa() - 512; p >= end;
	     p--)
		*p = 0x11;
	for (;;)
		sched_yield();
}

KTEST(trap_overflow, "trap.stack_overflow")
{
	unsigned int c;

	survived = 0;
	for_each_online_cpu (c)
		KEXPECT_EQ(t,
			   run_expendable(arch_protects_text ? overflow_guard :
							       overflow_canary,
					  NULL, 1u << c),
			   -EFAULT);
	KEXPECT_EQ(t, survived, 0);
}

/*
 * A task is killed while it waits with a time limit. Nothing of it stays in the queue
 * or among the timers, which would later wake freed memory.
 */
static struct wait_queue never = WAIT_QUEUE_INIT(never);

static void die_waiting(void *arg)
{
	wait_prepare(&never);
	trap_store_to(arg);
}

KTEST(trap_waiting, "trap.killed_while_waiting")
{
	KEXPECT_EQ(t, run_expendable(die_waiting, NULL, ~0u), -EFAULT);
	KEXPECT(t, list_empty(&never.tasks));
}

#define UNMAPPED 8ul

static void hold_then_store(void *arg)
{
	task_hold_self();
	trap_store_to(arg);
}

static noreturn void exit_mended(void)
{
	task_exit(7);
}

static bool mend_frame(struct trap_frame *f)
{
	arch_frame_set_pc(f, (unsigned long)exit_mended);
	return true;
}

static int fault_expected(struct ktest_run *t, struct task_fault *fault)
{
	struct task *v = task_create_expendable(
		"victim", PRIO_LOW, ~0u, hold_then_store, (void *)UNMAPPED);

	if (!v)
		return -ENOMEM;
	KEXPECT(t, task_wait_held(v, KWAIT_NS));
	v->fault = fault;
	task_release(v);
	return task_join(v);
}

KTEST(trap_expected, "trap.fault_is_written_down")
{
	struct task_fault fault = { 0 };
	struct symbol s;

	survived = 0;
	KEXPECT_EQ(t, fault_expected(t, &fault), -EFAULT);
	KASSERT(t, fault.what && symbol_at(fault.pc, &s));
	KEXPECT(t, s.start == (unsigned long)trap_store_to ||
			   s.start == (unsigned long)hold_then_store);
	KEXPECT_EQ(t, fault.addr, ALIGN_DOWN(UNMAPPED, arch_fault_unit));
	KEXPECT(t, fault.sp);
	fault = (struct task_fault){ .fix = mend_frame };
	KEXPECT_EQ(t, fault_expected(t, &fault), 7);
	KEXPECT(t, !fault.what);
	KEXPECT_EQ(t, survived, 0);
}
