/* SPDX-License-Identifier: MIT */
/* The time-of-day clock, which all CPUs share, and each CPU's clock comparator. */
#include <arch/arch.h>
#include <kernel/cpu/cpu.h>

#define NEVER (~0ull)
#define CLOCK_HZ 4096000000ull
#define RELAX_TICKS (CLOCK_HZ / 33333) /* 30 us */

/* The deadline of the last arch_timer_set(), by CPU index. Each CPU uses its own. */
static u64 deadlines[MAX_CPUS] = { [0 ... MAX_CPUS - 1] = NEVER };

/* It counts from 0, if it may be set here. */
u64 arch_clock_init(void)
{
	return CLOCK_HZ;
}

static void comparator_set(u64 when)
{
	asm volatile("sckc %0" ::"Q"(when) : "memory");
}

void arch_timer_set(u64 deadline)
{
	deadlines[cpu_index()] = deadline;
	comparator_set(deadline);
}

/* The interrupt stays pending as long as the clock is past the comparator. */
void timer_silence(void)
{
	arch_timer_set(NEVER);
}

void arch_timer_init(void)
{
	timer_silence();
}

/* Before the deadline, if that is still to come. */
static u64 nap_end(void)
{
	u64 now = arch_clock(), deadline = deadlines[cpu_index()];

	return now < deadline ? min(now + RELAX_TICKS, deadline) :
				now + RELAX_TICKS;
}

/*
 * Sleep for 30 us, with interrupts off. With -icount all CPUs share a thread, and without it, on
 * a busy host, the CPU that is waited for may need this CPU's processor. Any other
 * interrupt stays pending meanwhile.
 *
 * A PSW ends the enabled wait that is not the kernel's: no handler runs. The time begins
 * behind LOAD CONTROL, for which QEMU may take longer than it lasts: 6 CPUs that wait for
 * each other in turn took 30 times as long when the time was over before the wait began.
 */
void s390_relax(void)
{
	struct psw *external = low_psw(LOW_EXTERNAL_NEW), kept = *external;
	struct psw wait = { PSW_KERNEL_WAIT, 0 };
	u64 classes = control_read0(), soon;

	control_load0(CR0_KERNEL | CR0_CLOCK);
	soon = nap_end();
	comparator_set(soon);
	/* Under -icount the other CPUs may have run as soon as the timer was set. This CPU then
	 * waits no more, or they would get a second turn. */
	if (arch_clock() < soon)
		asm volatile("larl	%%r1,1f\n\t"
			     "stg	%%r1,8(%1)\n\t"
			     "lpswe	%0\n"
			     "1:"
			     : "+Q"(wait)
			     : "a"(external)
			     : "r1", "cc", "memory");
	*external = kept;
	comparator_set(deadlines[cpu_index()]);
	control_load0(classes);
}
