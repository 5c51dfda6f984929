/* SPDX-License-Identifier: MIT */
/*
 * The end of the machine. No device takes a status: when the last CPU is in a disabled wait, QEMU
 * ends, and tells its address by its machine protocol (tools/lib/witness.py).
 */
#include <arch/arch.h>
#include <kernel/cpu/cpu.h>

#define END_TICKS 400000000ull /* 100 ms */

static bool machine_ends;

/* The other CPUs wait for good, and can then be stopped: cpu.c says why not before. */
bool irq_may_end(void)
{
	return READ_ONCE(machine_ends);
}

static void stop_others(void)
{
	unsigned int c, me = cpu_index();
	u64 end = arch_clock() + END_TICKS;

	for (c = 0; c < nr_cpus; c++)
		if (c != me)
			arch_ipi_send(c);
	while (arch_clock() < end)
		arch_cpu_relax();
	for (c = 0; c < nr_cpus; c++)
		if (c != me)
			sigp_order(cpus[c].hwid.id, SIGP_STOP, 0);
}

noreturn void arch_power_off(int status)
{
	struct psw end = { PSW_64 | PSW_WAIT, power_status(status) };

	arch_irq_disable();
	WRITE_ONCE(machine_ends, true);
	stop_others();
	asm volatile("lpswe %0" ::"Q"(end) : "memory");
	__builtin_unreachable();
}
