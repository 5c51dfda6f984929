/* SPDX-License-Identifier: MIT */
/* The generic timer: the virtual counter, and each CPU's virtual timer. */
#include <arch/arch.h>
#include <kernel/cpu/cpu.h>

#define NEVER (~0ull)
#define RELAX_HZ 33333 /* 30 us */

/* CNTV_CTL_EL0: count, and raise the interrupt. */
#define TIMER_ON 1
/* The cycle counter: ID_AA64DFR0_EL1's field, and the bits that turn it on. */
#define CYCLES_SHIFT 8
#define CYCLES_MASK 0xf
#define CYCLES_ENABLE (1u << 31)
#define CYCLES_START 0x41 /* 64 bits, counting */

bool arm64_has_cycles;
static u64 relax_ticks;

/* The deadline of the last arch_timer_set(), by CPU index. Each CPU uses its own. */
static u64 deadlines[MAX_CPUS] = { [0 ... MAX_CPUS - 1] = NEVER };

u64 arch_clock_init(void)
{
	unsigned long version =
		reg_read(id_aa64dfr0_el1) >> CYCLES_SHIFT & CYCLES_MASK;
	u64 hz = reg_read(cntfrq_el0);

	arm64_has_cycles = version && version != CYCLES_MASK;
	relax_ticks = hz / RELAX_HZ;
	return hz;
}

void arch_timer_init(void)
{
	timer_silence();
	if (arm64_has_cycles) {
		reg_write(pmccfiltr_el0, 0);
		reg_write(pmcntenset_el0, CYCLES_ENABLE);
		reg_write(pmcr_el0, CYCLES_START);
	}
}

static void timer_start(u64 when)
{
	reg_write(cntv_cval_el0, when);
	reg_write(cntv_ctl_el0, TIMER_ON);
	insn_sync();
}

void arch_timer_set(u64 deadline)
{
	deadlines[cpu_index()] = deadline;
	timer_start(deadline);
}

/* The timer is off, or its interrupt would stay pending until the next arch_timer_set(). */
void timer_silence(void)
{
	deadlines[cpu_index()] = NEVER;
	reg_write(cntv_ctl_el0, 0);
	insn_sync();
}

/*
 * Sleep for 30 us. With -icount all CPUs share a thread, and without it, on a busy host, the CPU
 * that is waited for may need this CPU's processor. No interrupt is certain to come, so the timer
 * is set for one, and set back. An interrupt handler ends its interrupt before it may wait (irq.c):
 * the GIC signals no other before.
 *
 * Where the caller takes interrupts, an interrupt ends the sleep, and is taken later. Else (`deaf`)
 * the timer alone does: a CPU that is held with another one pending would spin.
 */
void arm64_relax(bool deaf)
{
	u64 deadline = deadlines[cpu_index()],
	    soon = arch_clock() + relax_ticks;
	bool nap = deaf || soon < deadline;

	if (deaf)
		gic_timer_alone(true);
	if (nap)
		timer_start(soon);
	/* Under -icount the other CPUs may have run as soon as the timer was set. This CPU then
	 * waits no more, or they would get a second turn. */
	if (!nap || arch_clock() < soon)
		asm volatile("wfi" ::: "memory");
	if (deadline == NEVER)
		timer_silence();
	else if (nap)
		timer_start(deadline);
	if (deaf)
		gic_timer_alone(false);
}
