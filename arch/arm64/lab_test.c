/* SPDX-License-Identifier: MIT */
/* Proves facts that the lab cannot enumerate: another CPU may execute a word while it changes, and
 * the port relies on no register's value at reset that QEMU happens to have. */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/test/ktest.h>
#include <tracer/sites/sites.h>

/* Of the list in DDI 0487, B2.2.5, those that this port writes. */
static bool may_change(u64 word)
{
	return word == INSN_NOP || word == INSN_BRK ||
	       (word & ~(u64)INSN_DISTANCE) == INSN_B ||
	       (word & ~(u64)INSN_DISTANCE) == INSN_BL;
}

static unsigned int other_words(struct live l)
{
	return !may_change(arch_live_read(l)) +
	       !may_change(arch_live_bytes(l, false)) +
	       !may_change(arch_live_bytes(l, true));
}

KTEST(lab_words, "lab.words_may_change")
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < site_count; i++)
		wrong += other_words(live_of_site(site_address(i)));
	for (unsigned int i = 0; i < jump_count; i++)
		wrong += other_words(jump_live(i));
	KEXPECT_EQ(t, wrong, 0);
	KEXPECT(t, may_change(arch_break_insn));
}

/* ---- the GIC's registers of the console's interrupt ---- */

#define ROUTE_NOWHERE 0xffffff

/* Each register gets another value than at reset: QEMU's values there are the right ones. */
static void spoil_uart_registers(u64 word, u64 bytes, u64 route)
{
	u32 bit = 1u << boot_info.port.uart_irq % 32;

	mmio_write32(word + 0x180, bit); /* turns it off */
	mmio_write32(bytes + 0x400, ~0u);
	if (boot_info.port.gicr) {
		mmio_write32(word + 0x080, mmio_read32(word + 0x080) & ~bit);
		mmio_write64(route, ROUTE_NOWHERE);
	} else {
		mmio_write32(bytes + 0x800, 0);
	}
}

/* The boot CPU gets the console's interrupt, behind the timer's. */
KTEST(gic_uart, "arch.console_irq_enable.gic")
{
	u32 irq = boot_info.port.uart_irq, shift = irq % 4 * 8;
	u64 gicd = (u64)arch_phys_to_virt(boot_info.port.gicd);
	u64 word = gicd + irq / 32 * 4, bytes = gicd + ALIGN_DOWN(irq, 4u),
	    route = gicd + 0x6000 + 8 * irq;

	spoil_uart_registers(word, bytes, route);
	arch_console_irq_enable();
	KEXPECT_EQ(t, mmio_read32(word + 0x100) >> irq % 32 & 1, 1);
	KEXPECT_EQ(t, mmio_read32(bytes + 0x400) >> shift & 0xff, 0x80);
	if (boot_info.port.gicr) {
		KEXPECT_EQ(t, mmio_read32(word + 0x080) >> irq % 32 & 1, 1);
		KEXPECT_EQ(t, mmio_read64(route), cpus[0].hwid.id);
	} else if (nr_cpus > 1) {
		KEXPECT_EQ(t, mmio_read32(bytes + 0x800) >> shift & 0xff, 1);
	}
}
