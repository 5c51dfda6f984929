/* SPDX-License-Identifier: MIT */
/* Proves facts that the lab cannot enumerate: the clock carries into its high word, the host may
 * stop the machine, the timer loses no interrupt, and kseg0 is cached alike on all CPUs. */
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>
#include <tracer/testing.h>

/*
 * The clock's low word has begun anew, and no CPU has read the clock since, so the high word is
 * that of a page which was begun a whole turn ago. An event there asks C for another page.
 */
static bool event_is_of_another_turn(void)
{
	struct ring_place *at;
	irq_state_t state;
	bool other;
	u64 base;

	/* In the first half of a turn, and not at its end, the high word can still be that before
	 * the turn. */
	while (arch_clock() >> 32 == 0 || arch_clock_low() >= 0x70000000)
		task_sleep(NSEC_PER_SEC);
	state = arch_irq_save();
	at = &arch_this_cpu()->head.ring;
	at->base -= 1ull << 32;
	base = at->base;
	arch_clock_words.high = (arch_clock_words.high - 1) | 0x80000000;
	arch_clock_words.turns--;
	arch_clock_words.seen = ~0u;
	victim_call(1);
	other = at->base != base;
	arch_irq_restore(state);
	return other;
}

/*
 * As if the host had stopped the machine for nearly a turn: no CPU has looked meanwhile, and
 * the low word is less than the one that was seen. Then the clock is a turn further.
 */
KTEST(clock_paused, "arch.clock.host_paused")
{
	const u32 ahead = 0x1000000;
	irq_state_t state;
	u64 before, now;

	/* Both low words lie in one half. */
	while (arch_clock_low() << 1 >= ~0u - 2 * ahead)
		task_sleep(100 * NSEC_PER_MSEC);
	state = arch_irq_save();
	before = arch_clock() + ahead;
	WRITE_ONCE(arch_clock_words.seen, (u32)before);
	now = arch_clock();
	arch_irq_restore(state);
	KEXPECT(t, now >= before);
}

/* The same, and a trampoline is the first that reads the clock. */
static void call_behind_pause(struct ktest_run *t, const char *tracer)
{
	const u32 ahead = 0x1000000;
	irq_state_t state;
	u64 before;

	while (arch_clock_low() << 1 >= ~0u - 2 * ahead)
		task_sleep(100 * NSEC_PER_MSEC);
	KEXPECT_EQ(t, trace_test_victim(), 0);
	KEXPECT_EQ(t, trace_test_put("current_tracer", tracer), 0);
	victim_call(1);
	state = arch_irq_save();
	before = arch_clock() + ahead;
	WRITE_ONCE(arch_clock_words.seen, (u32)before);
	victim_call(1);
	KEXPECT(t, arch_this_cpu()->head.ring.base >= before);
	arch_irq_restore(state);
	trace_test_reset();
}

KTEST(paused_ring, "arch_trace.trace_entry_ring.host_paused")
{
	call_behind_pause(t, "function");
}

KTEST(paused_graph, "arch_trace.trace_entry_graph.host_paused")
{
	KNEED_CLIENT(t, "graph");
	call_behind_pause(t, "function_graph");
}

KTEST(lab_carry, "arch_trace.trace_entry_ring.carry")
{
	if (!boot_info.icount)
		KSKIP(t, "a turn of the clock would have to be waited for");
	KEXPECT_EQ(t, trace_test_victim(), 0);
	victim_call(1);
	for (unsigned int i = 0; i < 10; i++)
		KEXPECT(t, event_is_of_another_turn());
	trace_test_reset();
}

/* ---- a device's interrupt while the timer is set ---- */

#define UART_IER 1
#define UART_IER_CAN_SEND 2 /* an interrupt at once */

static bool i8259_pending(void)
{
	return read_c0(C0_CAUSE) & CAUSE_IP(2);
}

/* As if Cause had lost the bit: the GIC's input is taken back, and the i8259 still asks. */
KTEST(timer_device, "arch.timer_set.device")
{
	irq_state_t state;

	if (!boot_info.port.gic)
		KSKIP(t, "only a GIC can take the i8259's interrupt back");
	task_set_affinity(current_task(), 1);
	state = arch_irq_save();
	isa_out(UART + UART_IER, UART_IER_CAN_SEND);
	KEXPECT(t, i8259_pending());
	reg_write(boot_info.port.gic, GIC_WEDGE, GIC_I8259);
	KEXPECT(t, !i8259_pending());
	arch_timer_set(arch_clock());
	KEXPECT(t, i8259_pending());
	arch_console_irq_enable();
	arch_irq_restore(state);
	task_set_affinity(current_task(), ~0u);
}

/* ---- Config.K0: how kseg0 is cached ---- */

#define CONFIG_K0 7

static void note_kseg0(void *arg)
{
	*(u32 *)arg = read_c0(C0_CONFIG) & CONFIG_K0;
}

static u32 kseg0_of_restarted(struct ktest_run *t, unsigned int cpu)
{
	u32 found = ~0u;

	KEXPECT_EQ(t, cpu_down(cpu), 0);
	KEXPECT_EQ(t, cpu_up(cpu), 0);
	KEXPECT_EQ(t, cpu_call(1u << cpu, note_kseg0, &found), 0);
	return found;
}

/* A CPU gets Config.K0 from the CPU that starts it. At reset QEMU's CPUs all have the same. */
KTEST(start_kseg0, "arch.cpu_start.kseg0")
{
	u32 usual, other;

	KNEED_TWO(t);
	task_set_affinity(current_task(), 1);
	usual = read_c0(C0_CONFIG);
	other = usual ^ 1; /* 2, uncached, becomes 3, cached */
	write_c0(C0_CONFIG, other);
	KEXPECT_EQ(t, kseg0_of_restarted(t, ktest_last_cpu()),
		   other & CONFIG_K0);
	write_c0(C0_CONFIG, usual);
	KEXPECT_EQ(t, kseg0_of_restarted(t, ktest_last_cpu()),
		   usual & CONFIG_K0);
	task_set_affinity(current_task(), ~0u);
}
