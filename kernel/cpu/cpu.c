/* SPDX-License-Identifier: MIT */
/* CPUs: their structs, interrupting one another, calls on all of them. */
#include <arch/arch.h>
#include <boot/boot.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/event/event.h>
#include <kernel/event/latency.h>
#include <kernel/errno.h>
#include <kernel/cpu/order.h>
#include <kernel/panic.h>
#include <kernel/param.h>
#include <kernel/printk.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/cpu/stop.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/time.h>

struct cpu cpus[MAX_CPUS];
unsigned int nr_cpus;
cpumask_t cpus_online, cpus_active;

static unsigned int maxcpus = MAX_CPUS;

static int maxcpus_set(const char *value)
{
	u64 n;

	if (parse_u64(value, &n) || n < 1 || n > MAX_CPUS)
		return -EINVAL;
	maxcpus = n;
	return 0;
}
static_assert(MAX_CPUS == 32, "the line below says so");
KERNEL_PARAM(maxcpus, "maxcpus", "1 to 32", maxcpus_set);

void cpu_init_boot(void)
{
	for (unsigned int c = 0; c < MAX_CPUS; c++) {
		cpus[c].head.self = &cpus[c].head;
		cpus[c].head.text = (unsigned long)_text;
		cpus[c].head.index = c;
		cpus[c].hwid = boot_info.cpu_hwid[c];
	}
	cpus_online = cpus_active = 1;
	nr_cpus = 1;
}

REGISTRY(struct cpu_array, cpu_arrays);

void cpu_count(void)
{
	const struct cpu_array *a;

	nr_cpus = min(boot_info.nr_cpus, maxcpus);
	for_each_registered (a, cpu_arrays)
		boot_add_memory(
			arch_virt_to_phys(a->start + nr_cpus * a->size),
			arch_virt_to_phys(a->start + MAX_CPUS * a->size));
	if (boot_info.cpus_ignored)
		printk("cpu: %u more CPUs are left out: nopl can run on %u "
		       "here\n",
		       boot_info.cpus_ignored, boot_info.nr_cpus);
}

/* ---- interrupting one another ---- */

/* As Linux's arm64 calls them. */
EVENT_WORD(reason_resched, "Rescheduling interrupts");
EVENT_WORD(reason_call, "Function call interrupts");
EVENT_WORD(reason_stop, "CPU stop interrupts");

/* True: the caller interrupts the other CPU. While that has not yet looked, one interrupt is
 * enough. Release: pairs with the acquire in ipi_interrupt(). */
static always_inline bool ipi_note(unsigned int cpu, enum ipi why)
{
	return !(__atomic_fetch_or(&cpus[cpu].ipi_pending, why,
				   __ATOMIC_SEQ_CST) &
		 why);
}

void (*ipi_trace_hook)(void);

/* A CPU that comes enters cpus_online before it looks at ipi_pending. Here the order is the other
 * way round, so one of the two sees the other. */
notrace void ipi_trace(cpumask_t mask)
{
	for (unsigned int c = 0; c < nr_cpus; c++)
		if ((mask >> c & 1) && ipi_note(c, IPI_TRACE) &&
		    __atomic_load_n(&cpus_online, __ATOMIC_SEQ_CST) >> c & 1)
			arch_ipi_send(c);
}

FAULT(ipi_twice, "an interrupt from another CPU comes twice");
FAULT(ipi_late, "an interrupt from another CPU comes 1 ms late");

void ipi_send(unsigned int cpu, enum ipi why)
{
	BUG_ON(stop_active());
	if (!ipi_note(cpu, why))
		return;
	trace_ipi_raise(1u << cpu, why == IPI_RESCHED ? reason_resched :
				   why == IPI_CALL    ? reason_call :
							reason_stop);
	arch_ipi_send(cpu);
	if (fault_happens(&fault_ipi_twice))
		arch_ipi_send(cpu);
}

static void run_call_here(void);

static void ipi_handle(bool wanted, void (*handle)(void), const char *reason)
{
	if (!wanted)
		return;
	trace_ipi_entry(reason);
	handle();
	trace_ipi_exit(reason);
}

void ipi_interrupt(void)
{
	struct cpu *cpu = arch_this_cpu();
	u32 why;

	if (fault_happens(&fault_ipi_late))
		fault_dawdle();
	why = __atomic_exchange_n(&cpu->ipi_pending, 0, __ATOMIC_ACQ_REL);

	if (why & IPI_PANIC)
		panic_stop_cpu();
	if (why & IPI_TRACE)
		ipi_trace_hook();
	ipi_handle(why & IPI_RESCHED, sched_need_resched, reason_resched);
	ipi_handle(why & IPI_CALL, run_call_here, reason_call);
	ipi_handle(why & IPI_STOP, stop_hold, reason_stop);
}

/*
 * A CPU holds a turn with preemption off and interrupts on. So the holder always
 * runs, and a CPU that waits for the turn still answers interrupts. A mutex does not
 * give that, because a waiting task may not be able to sleep. A spinlock does not
 * either, because it keeps interrupts off. The word counts waiting CPUs in units of
 * TURN_WAITS.
 */
#define TURN_TAKEN 1u
#define TURN_WAITS 2u

/*
 * There are no tickets, because a task that is preempted when its ticket comes up
 * would hold up all others. But a CPU that takes the turn repeatedly must first let
 * the CPUs that were already waiting take it. Otherwise they never get it where all
 * CPUs share one thread (-icount).
 */
#define TURN_POLITE 16

static void wait_behind(const u32 *turn)
{
	for (int i = 0; i < TURN_POLITE && READ_ONCE(*turn) > TURN_WAITS; i++)
		arch_cpu_relax();
}

void cpu_turn_take(u32 *turn)
{
	if (__atomic_fetch_add(turn, TURN_WAITS, __ATOMIC_RELAXED))
		wait_behind(turn);
	for (;;) {
		u32 seen;

		preempt_disable();
		seen = READ_ONCE(*turn) & ~TURN_TAKEN;
		if (__atomic_compare_exchange_n(
			    turn, &seen, seen - TURN_WAITS + TURN_TAKEN, false,
			    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
		preempt_enable();
		arch_cpu_relax();
	}
}

void cpu_turn_give(u32 *turn)
{
	__atomic_fetch_sub(turn, TURN_TAKEN, __ATOMIC_RELEASE);
	preempt_enable();
}

/* ---- calls ---- */

static struct {
	u32 turn;
	/* written by whose turn it is: */
	void (*fn)(void *arg);
	void *arg;
	u32 todo; /* CPUs that have not yet run it */
} call;

/* Release: pairs with the acquire in cpu_call(). */
static void run_call_here(void)
{
	call.fn(call.arg);
	__atomic_fetch_and(&call.todo, ~(1u << cpu_index()), __ATOMIC_RELEASE);
}

void call_turn_take(void)
{
	cpu_turn_take(&call.turn);
}

void call_turn_give(void)
{
	cpu_turn_give(&call.turn);
}

int cpu_call(cpumask_t mask, void (*fn)(void *arg), void *arg)
{
	irq_state_t state;
	cpumask_t me, others;
	unsigned int c;

	if (arch_irqs_off() || in_interrupt())
		return -EDEADLK;
	call_turn_take();
	me = 1u << cpu_index();
	others = mask & READ_ONCE(cpus_online) & ~me;
	call.fn = fn;
	call.arg = arg;
	WRITE_ONCE(call.todo, others);
	for_each_online_cpu (c)
		if (others & (1u << c))
			ipi_send(c, IPI_CALL);
	if (mask & me) {
		state = irq_save();
		fn(arg);
		irq_restore(state);
	}
	order_tell(ORDER_WAIT, others);
	while (__atomic_load_n(&call.todo, __ATOMIC_ACQUIRE))
		arch_cpu_relax();
	order_tell(ORDER_WAITED, 0);
	call_turn_give();
	return 0;
}
