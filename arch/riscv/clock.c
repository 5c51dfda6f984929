/* SPDX-License-Identifier: MIT */
/* The `time` register, and the one-shot timer: stimecmp (Sstc) or the SBI's. */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>

#define NEVER (~0ull)
#define RELAX_HZ 33333 /* 30 us */

bool riscv_has_instret;
static bool has_stimecmp;
static u64 relax_ticks;

/* The deadline of the last arch_timer_set(), by CPU index. Each CPU uses its own. */
static u64 deadlines[MAX_CPUS] = { [0 ... MAX_CPUS - 1] = NEVER };

u64 arch_clock_init(void)
{
	irq_state_t state = arch_irq_save();

	/* The device tree promises stimecmp, but the firmware must allow it, too. */
	has_stimecmp = boot_info.port.sstc && csr_probe_stimecmp();
	riscv_has_instret = csr_probe_instret();
	relax_ticks = boot_info.clock_hz / RELAX_HZ;
	arch_irq_restore(state);
	return boot_info.clock_hz;
}

static void compare_set(u64 when)
{
	if (has_stimecmp)
		asm volatile("csrw %0, %1" ::"i"(CSR_STIMECMP), "r"(when));
	else
		sbi_call(SBI_TIME, SBI_TIME_SET, when, 0, 0, 0);
}

void arch_timer_init(void)
{
	timer_silence();
}

void arch_timer_set(u64 deadline)
{
	deadlines[cpu_index()] = deadline;
	compare_set(deadline);
	csr_set(sie, SIE_STIE);
}

/* It stays pending until the next arch_timer_set(), so it is masked. */
void timer_silence(void)
{
	deadlines[cpu_index()] = NEVER;
	csr_clear(sie, SIE_STIE);
}

/*
 * Sleep for 30 us. Under QEMU wfi is the only way to let another hart run. With -icount all harts
 * share a thread, and one that spins keeps it for 0.1 s. Without it, on a busy host, the hart that
 * is waited for may need this hart's processor. No interrupt is certain to come, so the timer is
 * set for one, and set back.
 *
 * Where the caller takes interrupts, an interrupt ends the sleep, and is taken later. Else (`deaf`)
 * the timer alone does: wfi goes on at once while an enabled interrupt is pending, so a hart that
 * is held with one would spin.
 */
void riscv_relax(bool deaf)
{
	u64 deadline = deadlines[cpu_index()],
	    soon = arch_clock() + relax_ticks, enabled = csr_read(sie);
	bool nap = deaf || soon < deadline;

	if (nap) {
		compare_set(soon);
		csr_write(sie, deaf ? SIE_STIE : enabled | SIE_STIE);
	}
	/* Under -icount the other harts may have run as soon as the timer was set. This hart then
	 * waits no more, or they would get a second turn. */
	if (!nap || arch_clock() < soon)
		asm volatile("wfi" ::: "memory");
	if (nap) {
		csr_write(sie, enabled);
		compare_set(deadline);
	}
}
