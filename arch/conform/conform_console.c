/* SPDX-License-Identifier: MIT */
/* Conformance of a port with arch.h: the console, and the machine's end. Section 2 of
 * the guide. */
#include <arch/arch.h>
#include <arch/conform/conform.h>
#include <kernel/cpu/cpu.h>
#include <kernel/lib/string.h>
#include <kernel/test/ktest.h>

KTEST(arch_name, "arch.name")
{
	KEXPECT(t, strlen(arch_name) > 0 && !strchr(arch_name, ' '));
}

static void put_line(const char *s)
{
	irq_state_t state = arch_irq_save();

	while (*s)
		arch_console_putc(*s++);
	arch_irq_restore(state);
}

KTEST(arch_console_init, "arch.console_init")
{
	/*
	 * The console is set up again while it works: nothing may be lost or wait for
	 * ever. The host's tests look for this line (tests/test_boot.py).
	 */
	arch_console_init();
	put_line("# arch_console_init: this line is its effect\r\n");
	arch_console_irq_enable();
	KEXPECT_EQ(t, arch_console_getc(), -1);
}

static u32 lines_put;

static void put_from_here(void *arg)
{
	char line[48];

	(void)arg;
	snprintf(line, sizeof(line), "# arch_console_putc: from CPU %u\r\n",
		 cpu_index());
	put_line(line);
	lines_put++;
}

static unsigned int nr_online(void)
{
	unsigned int c, n = 0;

	for_each_online_cpu (c)
		n++;
	return n;
}

KTEST(arch_console_putc, "arch.console_putc")
{
	conform_on_each_cpu(put_from_here, NULL);
	/*
	 * arch_console_putc() waited for the device: every byte went out at once or in
	 * time.
	 */
	KEXPECT(t, lines_put >= nr_online());
}

KTEST(arch_power_off, "arch.power_off")
{
	KSKIP(t, "ends the machine: tools/run checks each run's exit status");
}
