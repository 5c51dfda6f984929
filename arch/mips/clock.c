/* SPDX-License-Identifier: MIT */
/*
 * The clock's carry and its measurement, and the one-shot timer. The timer is each
 * CPU's own Count/Compare, also where the clock is the GIC's counter. QEMU's GIC has
 * compare registers too, but none may ever match: QEMU 7.2 (hw/timer/mips_gictimer.c)
 * then sets its timer anew to the same instant, and under -icount, where no time passes
 * meanwhile, that never ends.
 */
#include <arch/arch.h>
#include <arch/arch_trace.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/irq.h>

#define NEVER (~0ull)

/*
 * Compare is 32 bits wide, so a timer reaches less than one turn of Count. And some CPU
 * must read the clock in every half turn (arch_inline.h). So every CPU's timer is
 * always set, at most this many ticks of the clock ahead: about 5 s.
 */
#define TIMER_REACH 0x20000000

/* The i8254 of the 82371AB: 1193182 Hz, 16 bits, counting down. */
#define PIT_HZ 1193182
#define PIT_MODE_0 0x30	   /* channel 0, both bytes, stop at the end */
#define PIT_MODE_2 0x34	   /* ... begin again */
#define PIT_READ_BACK 0xc2 /* channel 0: status, then count */
#define PIT_STATUS_OUT 0x80
#define PIT_MEASURE (PIT_HZ / 100)
#define PIT_COMMAND 3

#define NAP 4000u /* ticks of the clock: 24 to 40 us */
#define SPINS_A_NAP 4

struct clock_words arch_clock_words DATA_ENTRY;
static_assert(offsetof(struct clock_words, high) == 0, "asm");
static_assert(offsetof(struct clock_words, seen) == CLOCK_SEEN, "asm");
static_assert(offsetof(struct clock_words, turns) == CLOCK_TURNS, "asm");
/* A bare lock: a CPU stores the high word. */
static u32 carrying;
u32 arch_ns_per_tick;

/* Ticks of Count for one of the clock, 16 bits of fraction. */
static u32 count_per_tick_16;

/* The deadline that the kernel asked for, by CPU index, written by that CPU alone. */
static u64 timer_deadline[MAX_CPUS];
/* Calls of arch_cpu_relax() with interrupts off, by CPU index, written by that CPU alone. */
static u32 relaxed[MAX_CPUS];

/* Put off all VPs' GIC compare by a whole turn, also of VPs that were never started:
 * they are 0 from reset on. Done at every carry, so in each half turn. */
static void gic_compare_put_off(u32 low)
{
	const struct boot_port *port = &boot_info.port;

	for (u32 vp = 0; port->gic && vp < port->vps; vp++) {
		reg_write(port->gic, GIC_VL_OTHER, vp);
		reg_write(port->gic, GIC_VO_COMPARE_LO, low - 1);
	}
}

/* The half of a turn after that of `high`. */
static u32 half_after(u32 high)
{
	return (high & 0x80000000) ? (high & 0x7fffffff) + 1 :
				     high | 0x80000000;
}

/*
 * Under the lock the CPU looks again, because another CPU may have carried meanwhile. The CPU
 * stores the high word before the low word that it has seen. So a CPU that reads the new low
 * word, and then the high word, has both.
 */
u64 arch_clock_carry(void)
{
	irq_state_t state = arch_irq_save();
	u32 seen, high, next, low;

	while (__atomic_exchange_n(&carrying, 1, __ATOMIC_ACQUIRE))
		;
	seen = READ_ONCE(arch_clock_words.seen);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	next = high = READ_ONCE(arch_clock_words.high);
	low = arch_clock_low();
	if ((s32)(high ^ low) < 0)
		next = half_after(high);
	else if ((s32)(seen ^ low) >= 0 && low < seen)
		next = half_after(half_after(high));
	if (next != high) {
		__atomic_store_n(&arch_clock_words.high, next,
				 __ATOMIC_RELAXED);
		WRITE_ONCE(arch_clock_words.turns, next & 0x7fffffff);
		gic_compare_put_off(low);
	}
	__atomic_store_n(&arch_clock_words.seen, low, __ATOMIC_RELEASE);
	__atomic_store_n(&carrying, 0, __ATOMIC_RELEASE);
	arch_irq_restore(state);
	return (u64)(next & 0x7fffffff) << 32 | low;
}

struct pit_sample {
	u64 clock;
	u32 count;  /* of the CPU */
	u32 spread; /* ticks of the clock that reading took */
	u32 pit;
	bool ended; /* the PIT has been through 0 */
};

static struct pit_sample pit_read(void)
{
	struct pit_sample s;
	u64 before = arch_clock();
	u8 status;

	isa_out(PIT + PIT_COMMAND, PIT_READ_BACK);
	s.clock = arch_clock();
	s.count = read_c0(C0_COUNT);
	s.spread = arch_clock() - before;
	status = isa_in(PIT);
	s.pit = isa_in(PIT);
	s.pit |= isa_in(PIT) << 8;
	s.ended = status & PIT_STATUS_OUT;
	return s;
}

/* The best of a few: an emulator may be held up at any point. */
static struct pit_sample pit_sample(void)
{
	struct pit_sample best = pit_read();

	for (int i = 0; i < 4; i++) {
		struct pit_sample s = pit_read();

		if (s.spread < best.spread || s.ended)
			best = s;
	}
	return best;
}

static void pit_start(u8 mode)
{
	isa_out(PIT + PIT_COMMAND, mode);
	isa_out(PIT, 0xff);
	isa_out(PIT, 0xff);
}

/* False if the 55 ms that the PIT can count were over before the CPU looked. */
static bool measure_once(struct pit_sample *a, struct pit_sample *b)
{
	pit_start(PIT_MODE_0);
	*a = pit_sample();
	do {
		*b = pit_read();
	} while (!b->ended && a->pit - b->pit < PIT_MEASURE);
	*b = pit_sample();
	return !a->ended && !b->ended && b->pit < a->pit;
}

/* 10 ms of the PIT, whose tick is 838 ns: better than 0.02 %. */
u64 clock_measure(void)
{
	struct pit_sample a, b;
	u32 ticks;

	for (int attempt = 0; !measure_once(&a, &b); attempt++)
		if (attempt == 10)
			return 0;
	ticks = b.clock - a.clock;
	count_per_tick_16 = ((u64)(b.count - a.count) << 16) / ticks;
	return (u64)ticks * PIT_HZ / (a.pit - b.pit);
}

u64 arch_clock_init(void)
{
	return boot_info.clock_hz;
}

/*
 * Make sure that the timer of the Compare value that is about to be replaced is
 * not being handled by QEMU at this moment. QEMU 7.2 handles an expired timer in
 * its main thread, without excluding the CPU's own thread
 * (target/mips/sysemu/cp0_timer.c). The main thread computes when the old value
 * matches next, 20 s or more ahead. If the CPU writes a new value in between, the
 * main thread's late timer_mod() overwrites the new timer, and the write takes the
 * raised interrupt back: the CPU then sleeps for those 20 s.
 * So Compare is first moved far away, which leaves no timer that could expire
 * soon. The device register is read because QEMU's main thread holds the lock of
 * all devices while it handles timers: when the read returns, the handling that
 * may have been under way is over. Under -icount one thread does both.
 */
static void compare_settle(void)
{
	if (boot_info.icount)
		return;
	write_c0(C0_COMPARE, read_c0(C0_COUNT) - 1);
	if (boot_info.port.gic)
		reg_read(boot_info.port.gic, GIC_CONFIG);
	else
		isa_in(PIC1 + 1);
}

/*
 * QEMU clears the timer's bit of Cause without its lock, whenever Compare is
 * written: an interrupt that a device, or another CPU, raises in that moment is lost
 * from Cause (helper_mtc0_compare(), seen as a CPU that slept on, and with the i8259's
 * input of the GIC in 18 of 20,000 cases). The GIC and the i8259 still have it, so
 * saying it again brings it back: to the i8259 its mask, which changes nothing. One too
 * many does no harm.
 */
static void irqs_again(void)
{
	const struct cpu *cpu = arch_this_cpu();

	if (READ_ONCE(cpu->ipi_pending) && boot_info.port.gic)
		arch_ipi_send(cpu->head.index);
	if (cpu->head.index == 0)
		isa_out(PIC1 + 1, isa_in(PIC1 + 1));
}

/*
 * Raise the timer's interrupt `ticks` ticks of Count from now. Compare matches by
 * equality, so a value that Count has passed when it is written matches a whole
 * turn later. So the CPU reads Count after the write, and aims again, further
 * ahead each time, if Count may have passed the value. A write takes back an
 * interrupt that was raised. Aiming again makes up for that.
 *
 * Under -icount QEMU runs the other CPUs after each write, until the timer is due. So Count
 * has always passed the value, and the CPU looks whether the interrupt is pending. Without
 * -icount it must not believe that: QEMU's main thread may be raising it at this moment.
 */
static void compare_set(u32 ticks)
{
	u32 at;

	do {
		compare_settle();
		at = read_c0(C0_COUNT) + ticks;
		write_c0(C0_COMPARE, at);
		ticks = 2 * ticks + 16;
	} while ((s32)(read_c0(C0_COUNT) - at) >= 0 &&
		 !(boot_info.icount && (read_c0(C0_CAUSE) & IP_TIMER)));
	irqs_again();
}

static void timer_program(u64 deadline)
{
	u64 now = arch_clock();
	u64 left = deadline > now ? deadline - now : 0;

	left = min(left, (u64)TIMER_REACH) * count_per_tick_16;
	compare_set((left + 0xffff) >> 16);
}

/*
 * When all CPUs wait under -icount ...,sleep=off, QEMU lets the clock jump to the
 * machine's next timer. It looks for that timer after a match has set Count's own timer
 * anew and before it raises the interrupt (cp0_timer.c). So one of the machine's timers
 * must always be sooner than Count's 25 s: the PIT's, whose interrupt is masked.
 */
void arch_timer_init(void)
{
	if (boot_info.icount && cpu_index() == 0)
		pit_start(PIT_MODE_2);
	timer_deadline[cpu_index()] = NEVER;
	timer_program(NEVER);
	arch_this_cpu()->head.scratch[SCRATCH_COUNTER] =
		(unsigned long)arch_clock_words.counter;
}

void arch_timer_set(u64 deadline)
{
	timer_deadline[cpu_index()] = deadline;
	timer_program(deadline);
}

/*
 * irq_dispatch() calls it. The timer is due, or it is early, because TIMER_REACH was
 * over, a CPU has napped, or the two clocks' ratio is not exact. Any write to Compare
 * takes the interrupt back. That comes first: while an interrupt is pending, QEMU takes
 * a lock of all its CPUs again and again. An interrupt that the write loses comes again
 * when the CPU sets the next deadline.
 */
void clock_interrupt(void)
{
	u64 *deadline = &timer_deadline[cpu_index()];

	write_c0(C0_COMPARE, read_c0(C0_COMPARE) - 1);
	if (arch_clock() >= *deadline) {
		*deadline = NEVER;
		irq_event(IRQ_TIMER); /* sets the next, as a rule */
		if (*deadline != NEVER)
			return;
	}
	timer_program(*deadline);
}

/*
 * A nap in a spin loop: a timer, and `wait`. Under -icount QEMU runs one CPU at a
 * time, until its next timer or for 100 ms of guest time, which is an age for a CPU
 * that spins: so a CPU always naps there. Otherwise CPUs that spin take the host's
 * cores from the CPU that they wait for. With interrupts off most waits are short, so a
 * CPU naps now and then.
 *
 * In effect interrupts stay off. `wait` needs them on, so only the timer's is enabled
 * (all of them, if the caller had them on). irq_dispatch() sends an interrupt that
 * comes in the window to the window's end, with interrupts off again, and does nothing
 * else. clock_interrupt() puts the real deadline back: it comes as soon as interrupts
 * are on. An interrupt that the caller could take now is not put off.
 */
void arch_relax_nap(u32 status)
{
	bool irqs_on = status & STATUS_IE;
	u32 *naps = &relaxed[cpu_index()];

	if (!(status & IP_TIMER) ||
	    (!boot_info.icount && !irqs_on && ++*naps % SPINS_A_NAP))
		return;
	if (irqs_on && ((read_c0(C0_CAUSE) & status & STATUS_IM) ||
			timer_deadline[cpu_index()] < arch_clock() + NAP))
		return;
	compare_set((NAP * count_per_tick_16) >> 16);
	if (!irqs_on)
		write_c0(C0_STATUS, (status & ~STATUS_IM) | IP_TIMER);
	relax_wait();
	write_c0(C0_STATUS, status & ~STATUS_IE);
}
