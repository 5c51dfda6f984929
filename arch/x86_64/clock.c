/* SPDX-License-Identifier: MIT */
/*
 * The clock is the TSC, the one-shot timer the local APIC's. Their rates are
 * measured together against the ACPI timer, which firmware always describes.
 */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/printk.h>

#define PM_TIMER_HZ 3579545
#define PM_TIMER_MASK 0xffffff /* 24 bits count. It wraps after 4.7 s */
#define CALIBRATION_PM_TICKS (PM_TIMER_HZ / 200)
#define CALIBRATIONS 10
#define STUCK_TSC_TICKS (10ull << 30) /* seconds on any CPU */
#define CPUID_TSC_DEADLINE (1u << 24)
#define TIMER_DIVIDE_BY_1 0xb
#define ICOUNT_TURN 10000 /* TSC ticks, each one instruction: 10 us */
#define NAPS_PER_SECOND 33333
#define SPINS_A_NAP 16

bool clock_naps;
static bool tsc_deadline;	    /* the APIC compares with the TSC itself */
static u64 apic_ticks_per_tsc_tick; /* times 2^32 */
/* These two: of that CPU alone. */
static u64 timer_deadline[MAX_CPUS]; /* 0: its timer does not work */
static u32 relaxed[MAX_CPUS]; /* calls of clock_nap() with interrupts off */

struct sample {
	u32 pm;
	u32 apic; /* counts down */
	u64 tsc;
};

/*
 * Read all three. The host may stop us between any two, so the closest of
 * several tries counts.
 */
static struct sample take_sample(void)
{
	struct sample best = { 0 };
	u64 best_width = ~0ull;

	for (int i = 0; i < 5; i++) {
		u64 before = arch_clock();
		u32 pm = inl(boot_info.port.pm_timer);
		u32 apic = lapic_read(LAPIC_TIMER_CURRENT);
		u64 width = arch_clock() - before;

		if (width < best_width) {
			best_width = width;
			best = (struct sample){ pm, apic, before + width / 2 };
		}
	}
	return best;
}

static u32 pm_elapsed(const struct sample *from)
{
	return (inl(boot_info.port.pm_timer) - from->pm) & PM_TIMER_MASK;
}

/* 5 ms after a sample. Port reads leave the virtual machine. Spinning in between is cheap. */
static struct sample sample_after(const struct sample *from)
{
	while (pm_elapsed(from) < CALIBRATION_PM_TICKS) {
		for (int i = 0; i < 2000; i++)
			asm volatile("");
		if (arch_clock() - from->tsc > STUCK_TSC_TICKS &&
		    !pm_elapsed(from))
			panic("the ACPI PM timer does not count");
	}
	return take_sample();
}

static u64 tsc_hz(const struct sample *from, const struct sample *to)
{
	return (to->tsc - from->tsc) * PM_TIMER_HZ /
	       ((to->pm - from->pm) & PM_TIMER_MASK);
}

/*
 * The host may stop the machine in between for longer than the PM timer counts, or the APIC's. So
 * the CPU measures twice, until both measurements agree.
 */
static void measure_clocks(struct sample *a, struct sample *b)
{
	struct sample middle;
	u64 first, second;

	for (int i = 0; i < CALIBRATIONS; i++) {
		lapic_write(LAPIC_TIMER_INITIAL, ~0u);
		*a = take_sample();
		middle = sample_after(a);
		*b = sample_after(&middle);
		first = tsc_hz(a, &middle);
		second = tsc_hz(&middle, b);
		if (max(first, second) - min(first, second) <= first / 64)
			return;
	}
}

static void calibrate_clocks(void)
{
	struct sample a, b;

	lapic_write(LAPIC_TIMER_DIVIDE, TIMER_DIVIDE_BY_1);
	lapic_write(LAPIC_LVT_TIMER, LVT_MASKED | VECTOR_TIMER);
	measure_clocks(&a, &b);
	lapic_write(LAPIC_TIMER_INITIAL, 0);
	boot_info.clock_hz = tsc_hz(&a, &b);
	apic_ticks_per_tsc_tick =
		((u64)(a.apic - b.apic) << 32) / (b.tsc - a.tsc);
	if (!apic_ticks_per_tsc_tick)
		panic("the local APIC's timer does not count");
}

u64 arch_clock_init(void)
{
	lapic_map();
	calibrate_clocks();
	tsc_deadline = cpuid(1).ecx & CPUID_TSC_DEADLINE;
	clock_naps = cpu_is_virtual();
	return boot_info.clock_hz;
}

static void timer_raises(u32 vector)
{
	lapic_write(LAPIC_LVT_TIMER,
		    vector | (tsc_deadline ? LVT_TSC_DEADLINE : 0));
	/* SDM 3A, 10.5.4.1: else the MSR may be written in the old mode. */
	asm volatile("mfence" : : : "memory");
}

void arch_timer_init(void)
{
	lapic_write(LAPIC_TIMER_DIVIDE, TIMER_DIVIDE_BY_1);
	lapic_write(LAPIC_TIMER_INITIAL, 0);
	timer_raises(VECTOR_TIMER);
	timer_deadline[cpu_index()] = ~0ull;
}

void clock_leave(void)
{
	timer_deadline[cpu_index()] = 0;
}

/* One tick more than the product: rounded down it would come too early. */
static u32 apic_ticks(u64 tsc_ticks)
{
	unsigned __int128 ticks =
		(unsigned __int128)tsc_ticks * apic_ticks_per_tsc_tick;

	ticks = (ticks >> 32) + 1;
	return ticks > 0xffffffff ? 0xffffffff : (u32)ticks;
}

static void timer_program(u64 deadline)
{
	u64 now;

	if (tsc_deadline) {
		wrmsr(MSR_TSC_DEADLINE, deadline ? deadline : 1); /* 0: off */
		return;
	}
	now = arch_clock();
	lapic_write(LAPIC_TIMER_INITIAL,
		    apic_ticks(deadline > now ? deadline - now : 0));
}

void arch_timer_set(u64 deadline)
{
	timer_deadline[cpu_index()] = deadline;
	timer_program(deadline);
}

/* An interrupt within so many ticks. The kernel's own deadline stays. */
static void timer_soon(u64 ticks)
{
	timer_program(min(timer_deadline[cpu_index()], arch_clock() + ticks));
}

/*
 * Under -icount QEMU runs one CPU at a time, until its next timer: 4 ms of guest time
 * where tasks are busy, which is an age for a CPU that spins. A timer that is sooner
 * than all others makes QEMU run the other CPUs at once, until then. PAUSE after that
 * would give them a second turn, of up to 4 ms. The timer's interrupt puts the real
 * deadline back. So nothing is lost if one comes in between here, or if the task moves
 * to another CPU.
 */
void clock_icount_yield(void)
{
	u64 end = arch_clock() + ICOUNT_TURN;

	timer_soon(ICOUNT_TURN);
	if (arch_clock() < end)
		asm volatile("pause" : : : "memory");
}

/*
 * In effect interrupts stay off: the APIC lets no vector through but that of the nap, whose
 * handler (entry.S) changes nothing. The kernel's own timer and all else stay pending.
 */
static void nap_irqs_off(u64 ticks)
{
	lapic_write(LAPIC_TPR, VECTOR_NAP - 0x10);
	timer_raises(VECTOR_NAP);
	timer_program(arch_clock() + ticks);
	wait_irq();
	arch_irq_disable();
	timer_raises(VECTOR_TIMER);
	lapic_write(LAPIC_TPR, 0);
	timer_program(timer_deadline[cpu_index()]);
}

/*
 * A nap in a spin loop, in a virtual machine. False: not now. The machine's other CPUs are
 * threads of a host that may have fewer CPUs. The CPU that is waited for may need the host
 * CPU that this one spins on: switching 517 sites sixty times by breakpoints, 4 CPUs on a
 * host of 2, took 11.3 s with `pause` and 1.0 s with naps.
 *
 * With interrupts on, the timer's interrupt puts the real deadline back, as above. With
 * interrupts off a nap costs more, so a CPU that spins naps now and then. An NMI's handler
 * does not nap: IRET would let the next NMI in.
 */
bool clock_nap(void)
{
	u64 ticks = boot_info.clock_hz / NAPS_PER_SECOND;

	if (arch_irqs_off()) {
		if (!timer_deadline[cpu_index()] ||
		    (preempt_count() & PREEMPT_NMI) ||
		    ++relaxed[cpu_index()] % SPINS_A_NAP)
			return false;
		nap_irqs_off(ticks);
	} else {
		arch_irq_disable();
		timer_soon(ticks);
		wait_irq();
	}
	return true;
}

/*
 * The count has 32 bits and the rates are measured, so that the interrupt may
 * come before its time, then the rest is waited for.
 */
bool clock_timer_expired(void)
{
	u64 deadline = timer_deadline[cpu_index()];

	if (arch_clock() < deadline) {
		arch_timer_set(deadline);
		return false;
	}
	timer_deadline[cpu_index()] = ~0ull;
	return true;
}
