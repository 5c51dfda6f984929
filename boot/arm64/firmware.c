/* SPDX-License-Identifier: MIT */
/* Fills boot_info from the device tree, which QEMU leaves where RAM begins. */
#include <boot/boot_info.h>
#include <boot/boot.h>
#include <boot/fdt.h>
#include <kernel/cpu/cpu.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/main.h>

/* The first cell of an interrupt: the kind that the second cell numbers. */
enum { GIC_SHARED, GIC_PRIVATE };
/* The virtual timer's place among a timer node's interrupts. */
#define TIMER_VIRTUAL 2

static bool have_boot_cpu;

/* Give the CPU an index: 0 to the CPU that boots, wherever the tree lists it. */
static void visit_cpu(const struct fdt_node *n, u32 boot_cpu)
{
	struct boot_info *b = &boot_info;
	struct fdt_prop p;
	unsigned int i = 0;
	u32 id;

	if (!fdt_property(n, "reg", &p))
		boot_fail("device tree: node %s has no reg", n->name);
	id = (u32)fdt_cells(&p, 0, fdt_path[fdt_depth - 1].address_cells);
	if (id != boot_cpu)
		i = b->nr_cpus + !have_boot_cpu;
	if (fdt_property(n, "status", &p) && !fdt_has(n, "status", "okay"))
		return;
	/* QEMU names no method where there is one CPU alone. */
	if (i >= MAX_CPUS || (i && !fdt_has(n, "enable-method", "psci"))) {
		b->cpus_ignored++;
		return;
	}
	have_boot_cpu |= i == 0;
	b->cpu_hwid[i].id = id;
	b->nr_cpus++;
}

/* The i-th interrupt of a node, as the GIC numbers it. 0: there is none. */
static u32 gic_number(const struct fdt_node *n, u32 i)
{
	struct fdt_prop p;

	if (!fdt_property(n, "interrupts", &p) || p.len < 12 * (i + 1))
		return 0;
	return (u32)fdt_cells(&p, 3 * i + 1, 1) +
	       (fdt_cells(&p, 3 * i, 1) == GIC_PRIVATE ? 16 : 32);
}

static void visit_gic(const struct fdt_node *n, bool v3)
{
	struct boot_port *port = &boot_info.port;
	struct boot_range distributor, other;

	if (!fdt_reg(0, &distributor) || !fdt_reg(1, &other))
		boot_fail("device tree: node %s: reg has less than two ranges",
			  n->name);
	port->gicd = distributor.start;
	if (!v3)
		port->gicc = other.start;
	else {
		port->gicr = other.start;
		port->gicr_end = other.end;
	}
}

static void visit_uart(const struct fdt_node *n)
{
	struct boot_port *port = &boot_info.port;
	struct boot_range r;

	if (port->uart)
		return;
	if (!fdt_reg(0, &r))
		boot_fail("device tree: node %s has no reg", n->name);
	port->uart_irq = gic_number(n, 0);
	port->uart = r.start;
}

static void visit_node(u32 boot_cpu)
{
	const struct fdt_node *n = &fdt_path[fdt_depth];

	if (fdt_under(2, "cpus") && fdt_has(n, "device_type", "cpu"))
		visit_cpu(n, boot_cpu);
	else if (fdt_depth == 1 && fdt_has(n, "device_type", "memory"))
		fdt_add_memory();
	else if (fdt_depth == 1 && strcmp(n->name, "chosen") == 0)
		fdt_read_chosen();
	else if (fdt_has(n, "compatible", "arm,psci-0.2"))
		boot_info.port.psci = fdt_has(n, "method", "hvc");
	else if (fdt_has(n, "compatible", "arm,armv8-timer"))
		boot_info.port.timer_irq = gic_number(n, TIMER_VIRTUAL);
	else if (fdt_has(n, "compatible", "arm,pl011"))
		visit_uart(n);
	else if (fdt_has(n, "compatible", "arm,gic-v3"))
		visit_gic(n, true);
	else if (fdt_has(n, "compatible", "arm,cortex-a15-gic"))
		visit_gic(n, false);
}

/* The second pass, when all memory has been added. */
static void visit_reserved(u32 boot_cpu)
{
	struct boot_range r;
	u32 i;

	(void)boot_cpu;
	if (fdt_under(2, "reserved-memory"))
		for (i = 0; fdt_reg(i, &r); i++)
			boot_remove_memory(r.start, r.end);
}

static void check_found(u32 boot_cpu)
{
	const struct boot_info *b = &boot_info;

	if (!have_boot_cpu)
		boot_fail("device tree: no node for CPU %#x, which boots",
			  boot_cpu);
	if (!b->ram_bytes)
		boot_fail("device tree: no memory node");
	if (!b->port.uart || !b->port.uart_irq)
		boot_fail("device tree: no arm,pl011 with an interrupt");
	if (!b->port.gicr && !b->port.gicc)
		boot_fail("device tree: no arm,gic-v3 or arm,cortex-a15-gic");
	if (!b->port.timer_irq)
		boot_fail(
			"device tree: no arm,armv8-timer with a virtual timer");
	if (!b->port.psci)
		boot_fail("device tree: no arm,psci-0.2 that hvc calls");
}

/* From start.S: the CPU that boots, as MPIDR_EL1 names it. */
noreturn void boot_main(u64 boot_cpu);
noreturn void boot_main(u64 boot_cpu)
{
	struct boot_info *b = &boot_info;

	fdt_open(DEVICE_TREE);
	fdt_walk(visit_node, (u32)boot_cpu);
	fdt_walk(visit_reserved, 0);
	check_found((u32)boot_cpu);
	fdt_remove_reserved();
	boot_remove_memory(b->initrd.start, b->initrd.end);
	boot_remove_memory(KERNEL_PHYS, arch_virt_to_phys(_end));
	kernel_main();
}

/* From start.S: a trap before arch_trap_init(). */
noreturn void boot_trapped(u64 cause, u64 pc, u64 addr);
noreturn void boot_trapped(u64 cause, u64 pc, u64 addr)
{
	boot_fail("trap %#llx at %#llx, address %#llx",
		  (unsigned long long)cause, (unsigned long long)pc,
		  (unsigned long long)addr);
}
