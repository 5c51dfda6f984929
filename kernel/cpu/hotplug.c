/* SPDX-License-Identifier: MIT */
/*
 * CPUs come and go, one at a time, under `changing`. Boot brings its CPUs up in the
 * same way.
 *
 *	cpu_up(), elsewhere		the CPU
 *	STARTING: arch_cpu_start()	its own set-up, runs no site
 *					READY: waits
 *	takes the turns: JOIN		enters cpus_online, then synchronises
 *					ONLINE: answers, runs its idle task
 *	gives the turns, cpus_active:
 *	tasks may come
 *
 *	cpu_down(), elsewhere		the CPU
 *	out of cpus_active, the work that is
 *	queued moves: DRAINING		the running task moves when switched away
 *					QUIET: nothing but the idle task is left
 *	takes the turns, out of
 *	cpus_online: LEAVE		interrupts off for good, last site
 *					GONE: parks
 *	takes its timers, gives the
 *	turns, parked: OFFLINE
 *
 * The turns are those of stop_cpus() and of cpu_call(). A CPU that has either turn
 * has a set of online CPUs that does not change, and all of them answer. A CPU that
 * was away has missed three things:
 *
 * - Text. It synchronises its fetch before it enters cpus_online, for the text that
 *   was written while no other CPU knew of it. It synchronises again after a full
 *   fence, for the text of a writer that did not find it in cpus_online. That fence
 *   pairs with the fence between a writer's stores and its cpu_call(): either the
 *   writer finds the CPU in cpus_online, or the CPU's second synchronisation comes
 *   after the stores. Up to there the CPU runs no function that has a site
 *   (tools/patchpath).
 * - Guard pages, which other CPUs forget in a cpu_call(). The port has it forget all
 *   translations (CPU_COMES()) once it may enter cpus_online: no call is under way then,
 *   and the next one finds it.
 * - The tracer's settings. A task that changes them also does so for the CPUs that
 *   are away, between cpus_read_lock() and cpus_read_unlock().
 *
 * In every port, devices interrupt CPU 0. So CPU 0 never leaves.
 */
#include <arch/arch_trace.h>
#include <boot/boot_info.h>
#include <kernel/event/event.h>
#include <kernel/event/latency.h>
#include <kernel/assert.h>
#include <kernel/lib/bits.h>
#include <kernel/errno.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/cpu/order.h>
#include <kernel/image/symbols.h>
#include <kernel/panic.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/cpu/stop.h>
#include <kernel/time.h>
#include <kernel/lock/wait.h>
#include <kernel/lock/mutex.h>
#include <kernel/sched/balance.h>

u64 cpu_start_ns = 10 * NSEC_PER_SEC;

enum cpu_state {
	CPU_OFFLINE,  /* parked, or never started: cpu_up() alone acts */
	CPU_STARTING, /* told to start, no sign of life yet */
	CPU_READY,    /* set up, interrupts off, waits to be let in */
	CPU_JOIN,     /* cpu_up() has the turns: it enters cpus_online */
	CPU_ONLINE,   /* synchronised since it is there: answers and works */
	CPU_DRAINING, /* gets no more tasks, the last one is on its way out */
	CPU_QUIET,    /* its idle task alone is left, and still answers */
	CPU_LEAVE,    /* cpu_down() has the turns: it is out of cpus_online */
	CPU_GONE,     /* answers no interrupt, runs no site, is about to park */
};

/* By cpu_up() and cpu_down() and by the CPU itself, in turn as above. */
static u32 states[MAX_CPUS];

static struct mutex changing = MUTEX_INIT(changing);
static struct wait_queue quiet_wait = WAIT_QUEUE_INIT(quiet_wait);
/* Are the kernel's atomics so now? As compiled, at first, under `changing`. */
static bool smp_atomics = true;

FAULT(cpu_join_unsynced, "a CPU that comes online does not synchronise");
FAULT(cpu_join_late, "a CPU that was started does not arrive");
FAULT(cpu_park_late, "a CPU that leaves does not park");

/* A CPU's release of its state pairs with the acquire of the CPU that reads it: the
 * reader sees everything that was done before the state changed. */
static notrace enum cpu_state cpu_state_of(unsigned int c)
{
	return __atomic_load_n(&states[c], __ATOMIC_ACQUIRE);
}

static notrace void cpu_set_state(unsigned int c, enum cpu_state s)
{
	__atomic_store_n(&states[c], s, __ATOMIC_RELEASE);
}

static notrace void wait_for_cpu_state(unsigned int c, enum cpu_state s)
{
	while (cpu_state_of(c) != s)
		arch_cpu_relax();
}

/* ---- on the CPU that comes ---- */

#define LINE_LEAST 16 /* bytes: no cache has shorter lines */

/* The instruction cache of a CPU that comes may hold any line of text, from before the
 * line was written. */
static notrace void sync_text(void)
{
	if (arch_sync_each_site)
		for (const char *p = _text; p < _etext; p += LINE_LEAST)
			arch_text_sync_site((unsigned long)p);
	arch_text_sync();
}

extern void (*const __start_cpu_comes[])(void),
	(*const __stop_cpu_comes[])(void);

/* Interrupts off. No site before the end, see above. */
notrace void cpu_join(void)
{
	void (*const *fn)(void);
	struct cpu *cpu;
	unsigned int c;

	arch_trap_init();
	sync_text();
	cpu = arch_this_cpu();
	c = cpu->head.index;
	arch_irq_init();
	time_init_cpu();
	/* Not sooner: arch_cpu_relax() may need this CPU's timer. */
	while ((!fault_cpu_join_late.cpu || fault_cpu_join_late.cpu == c) &&
	       fault_happens(&fault_cpu_join_late))
		arch_cpu_relax();
	cpu->rq.switched_at = arch_clock();
	cpu_set_state(c, CPU_READY);
	wait_for_cpu_state(c, CPU_JOIN);
	for_each_registered (fn, cpu_comes)
		(*fn)();
	__atomic_fetch_or(&cpus_online, 1u << c, __ATOMIC_SEQ_CST);
	order_tell(ORDER_JOINED, c);
	/* Pairs with the fence between stores to text and cpu_call(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!fault_happens(&fault_cpu_join_unsynced)) {
		sync_text();
		order_tell(ORDER_SYNCED, c);
	}
	cpu_set_state(c, CPU_ONLINE);
}
PATCH_ROOT(cpu_join);
PATCH_INDIRECT_OPEN(cpu_join);

notrace void cpu_secondary_main(void)
{
	cpu_join();
	panic_check();
	/*
	 * Another CPU may have taken this one for online before it was, and have
	 * set a bit of ipi_pending. While the bit is set, no CPU sends that
	 * interrupt again. So deal with it now. The same holds for ipi_trace().
	 */
	ipi_interrupt();
	sched_idle();
}

/* ---- on the CPU that goes ---- */

/* After the CPU's last site, and after the last word on its stack that a CPU reads. */
notrace void cpu_leave(void)
{
	unsigned int c = arch_this_cpu()->head.index;

	order_tell(ORDER_LEFT, c);
	cpu_set_state(c, CPU_GONE);
	while (fault_happens(&fault_cpu_park_late))
		arch_cpu_relax();
	arch_cpu_park();
}
PATCH_ROOT(cpu_leave);

void cpu_idle_check(void)
{
	unsigned int c = cpu_index();

	if (cpu_state_of(c) == CPU_DRAINING) {
		cpu_set_state(c, CPU_QUIET);
		wake_all(&quiet_wait);
	} else if (cpu_state_of(c) == CPU_LEAVE) {
		/* Else the time that the CPU is away would be the longest latency. */
		irq_off_idly();
		cpu_leave();
	}
}

/* ---- on another CPU ---- */

void cpus_read_lock(void)
{
	assert_task_context();
	mutex_lock(&changing);
}

void cpus_read_unlock(void)
{
	mutex_unlock(&changing);
}

/* Neither a rendezvous nor a call is under way or begins. In this order. */
static void take_both_turns(void)
{
	stop_turn_take();
	call_turn_take();
}

static void give_turns(void)
{
	call_turn_give();
	stop_turn_give();
}

static bool is_ready(unsigned int c)
{
	return cpu_state_of(c) == CPU_READY;
}

/* Sleep until it is so: longer and longer, that others may run. The sleeps are summed up, each as
 * long as it was meant to be at most (ktest.h). A task that is to stop hardly sleeps. */
static bool cpu_becomes(bool (*so)(unsigned int c), unsigned int c)
{
	u64 slept = 0, ns = 20 * NSEC_PER_USEC, begin;

	while (!so(c)) {
		if (slept > cpu_start_ns)
			return false;
		begin = time_ns();
		task_sleep(ns);
		slept += min(time_ns() - begin, ns);
		ns = min(2 * ns, 8 * TICK_NS);
	}
	return true;
}

/*
 * No CPU but this one runs, or will run until cpu_up() starts it: every other one
 * is OFFLINE. One that was started and is late runs the kernel's atomics as soon as
 * it arrives, whether cpu_up() still waits for it or not.
 */
static bool cpu_is_alone(void)
{
	for (unsigned int c = 1; c < nr_cpus; c++)
		if (cpu_state_of(c) != CPU_OFFLINE)
			return false;
	return true;
}

static void set_atomics(bool smp)
{
	irq_state_t state = arch_irq_save();

	if (smp != smp_atomics)
		arch_smp_atomics(smp);
	smp_atomics = smp;
	arch_irq_restore(state);
}

/* Reset the CPU's data to their values after a boot: they still stand as the CPU left them. */
static int prepare_cpu(unsigned int c)
{
	struct cpu *cpu = &cpus[c];
	int err = task_init_idle(c);

	if (err)
		return err;
	cpu->head.current = cpu->idle;
	cpu->head.preempt_count = 0;
	cpu->rq.running_prio = PRIO_IDLE;
	cpu->rq.expired = false;
	cpu->irq_frame = NULL;
	/* The CPU answers IPI_TRACE when it is back: ipi_trace(). */
	__atomic_fetch_and(&cpu->ipi_pending, IPI_TRACE, __ATOMIC_RELAXED);
	return 0;
}

static int start_cpu(unsigned int c)
{
	int err = prepare_cpu(c);

	if (err)
		return err;
	set_atomics(true);
	cpu_set_state(c, CPU_STARTING);
	cpus[c].idle->on_cpu = true;
	err = arch_cpu_start(c);
	if (err)
		cpu_set_state(c, CPU_OFFLINE);
	return err;
}

static void let_in(unsigned int c)
{
	take_both_turns();
	cpu_set_state(c, CPU_JOIN);
	wait_for_cpu_state(c, CPU_ONLINE);
	give_turns();
	__atomic_fetch_or(&cpus_active, 1u << c, __ATOMIC_RELEASE);
	sched_cpu_back(c);
}

/* A CPU that is GONE is OFFLINE once it has parked. Until then it may not be started again. */
static bool is_parked(unsigned int c)
{
	if (!arch_cpu_parked(c))
		return false;
	cpus[c].idle->on_cpu = false;
	cpu_set_state(c, CPU_OFFLINE);
	return true;
}

/* One that was too slow last time, to park or to come, is not started twice. */
static int bring_up(unsigned int c)
{
	int err;

	if (cpu_state_of(c) == CPU_GONE && !cpu_becomes(is_parked, c))
		return -ETIMEDOUT;
	err = cpu_state_of(c) == CPU_OFFLINE ? start_cpu(c) : 0;
	if (err)
		return err;
	if (!cpu_becomes(is_ready, c))
		return -ETIMEDOUT;
	let_in(c);
	trace_cpu_up(c);
	return 0;
}

int cpu_up(unsigned int c)
{
	int err = 0;

	if (c >= nr_cpus)
		return -ENODEV;
	cpus_read_lock();
	if (!cpu_online(c))
		err = bring_up(c);
	if (cpu_is_alone())
		set_atomics(false);
	cpus_read_unlock();
	return err;
}

/* From here on the CPU neither sends interrupts nor gets any. */
static void let_out(unsigned int c)
{
	take_both_turns();
	__atomic_fetch_and(&cpus_online, ~(1u << c), __ATOMIC_SEQ_CST);
	cpu_set_state(c, CPU_LEAVE);
	cpu_kick(c);
	wait_for_cpu_state(c, CPU_GONE);
	time_take_over(c);
	give_turns();
}

static int bring_down(unsigned int c)
{
	__atomic_fetch_and(&cpus_active, ~(1u << c), __ATOMIC_RELEASE);
	sched_cpu_drain(c);
	cpu_set_state(c, CPU_DRAINING);
	cpu_kick(c);
	wait_event(&quiet_wait, cpu_state_of(c) == CPU_QUIET);
	let_out(c);
	if (!cpu_becomes(is_parked, c))
		return -ETIMEDOUT;
	trace_cpu_down(c);
	if (cpu_is_alone())
		set_atomics(false);
	return 0;
}

int cpu_down(unsigned int c)
{
	int err = 0;

	if (c >= nr_cpus)
		return -ENODEV;
	if (!c)
		return -EPERM;
	cpus_read_lock();
	if (cpu_online(c))
		err = bring_down(c);
	cpus_read_unlock();
	return err;
}

void cpu_start_others(void)
{
	for (unsigned int c = 1; c < nr_cpus; c++) {
		int err = cpu_up(c);

		if (err == -ETIMEDOUT)
			printk("cpu: CPU %u (hardware id %u) did not come up\n",
			       c, cpus[c].hwid.id);
		else if (err)
			printk("cpu: CPU %u (hardware id %u) was not started: "
			       "error %d\n",
			       c, cpus[c].hwid.id, err);
	}
	if (cpu_is_alone())
		set_atomics(false);
}
