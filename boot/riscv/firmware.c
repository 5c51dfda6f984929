/* SPDX-License-Identifier: MIT */
/*
 * Fills boot_info from the device tree, in two passes over its nodes. The first learns
 * the harts, memory and /chosen, the second the nodes that refer to them (the interrupt
 * controller, reserved memory).
 */
#include <boot/boot_info.h>
#include <boot/boot.h>
#include <boot/fdt.h>
#include <kernel/cpu/cpu.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/main.h>

#define IRQ_S_EXTERNAL 9
#define NO_CONTEXT (~0u)

static u32 cpu_intc[MAX_CPUS]; /* phandle of each hart's interrupt controller */
static bool have_boot_hart;

/*
 * Can nopl run on the hart of this node? Also clears boot_info.port.sstc if this hart
 * lacks it.
 */
static bool cpu_usable(const struct fdt_node *n)
{
	struct fdt_prop isa, mmu;

	if (!fdt_property(n, "riscv,isa", &isa) || isa.len < 5 ||
	    isa.data[isa.len - 1] || memcmp(isa.data, "rv64", 4) ||
	    !fdt_property(n, "mmu-type", &mmu) ||
	    fdt_has(n, "mmu-type", "riscv,none"))
		return false;
	if (!strstr(isa.data, "_sstc"))
		boot_info.port.sstc = false;
	return true;
}

/* Give the hart an index: 0 to the boot hart, wherever the tree lists it. */
static void visit_cpu(struct fdt_node *n, u32 boot_hart)
{
	struct boot_info *b = &boot_info;
	struct fdt_prop p;
	unsigned int i;
	u32 hart;

	if (!fdt_property(n, "reg", &p))
		boot_fail("device tree: node %s has no reg", n->name);
	hart = fdt_cells(&p, 0, fdt_path[fdt_depth - 1].address_cells);
	if (hart == boot_hart)
		i = 0;
	else
		i = b->nr_cpus + !have_boot_hart;
	if (fdt_property(n, "status", &p) && !fdt_has(n, "status", "okay"))
		return;
	if (i >= MAX_CPUS || !cpu_usable(n)) {
		if (i == 0)
			boot_fail("device tree: hart %u, which boots: need "
				  "riscv,isa rv64... and an mmu-type",
				  hart);
		b->cpus_ignored++;
		return;
	}
	have_boot_hart |= i == 0;
	b->cpu_hwid[i].id = hart;
	b->nr_cpus++;
	n->mark = i;
}

/* First pass: the nodes that refer to no other node. */
static void visit_first(u32 boot_hart)
{
	struct fdt_node *n = &fdt_path[fdt_depth];

	if (fdt_under(2, "cpus") && fdt_has(n, "device_type", "cpu"))
		visit_cpu(n, boot_hart);
	else if (fdt_depth == 3 && fdt_path[2].mark >= 0 &&
		 fdt_has(n, "compatible", "riscv,cpu-intc"))
		cpu_intc[fdt_path[2].mark] = fdt_u32(n, "phandle", 0);
	else if (fdt_depth == 1 && strcmp(n->name, "cpus") == 0)
		boot_info.clock_hz = fdt_u32(n, "timebase-frequency", 0);
	else if (fdt_depth == 1 && fdt_has(n, "device_type", "memory"))
		fdt_add_memory();
	else if (fdt_depth == 1 && strcmp(n->name, "chosen") == 0)
		fdt_read_chosen();
}

/*
 * The n-th pair of interrupts-extended is the PLIC's context n, and says which hart and
 * mode it is of.
 */
static void visit_plic(const struct fdt_node *n)
{
	struct boot_port *port = &boot_info.port;
	struct boot_range r;
	struct fdt_prop p;
	unsigned int cpu;
	u32 i;

	if (!fdt_reg(0, &r) || !fdt_property(n, "interrupts-extended", &p))
		boot_fail("device tree: node %s: no reg or no "
			  "interrupts-extended",
			  n->name);
	port->plic = r.start;
	port->plic_size = r.end - r.start;
	for (i = 0; i < p.len / 8; i++)
		for (cpu = 0; cpu < boot_info.nr_cpus; cpu++)
			if (fdt_cells(&p, 2 * i, 1) == cpu_intc[cpu] &&
			    fdt_cells(&p, 2 * i + 1, 1) == IRQ_S_EXTERNAL)
				port->plic_context[cpu] = i;
}

static void visit_uart(const struct fdt_node *n)
{
	struct boot_port *port = &boot_info.port;
	struct boot_range r;

	if (port->uart)
		return;
	if (!fdt_reg(0, &r))
		boot_fail("device tree: node %s has no reg", n->name);
	port->uart_irq = fdt_u32(n, "interrupts", 0);
	port->uart_shift = fdt_u32(n, "reg-shift", 0);
	port->uart = r.start;
}

/* Second pass: devices, and memory that is in use. */
static void visit_second(u32 boot_hart)
{
	const struct fdt_node *n = &fdt_path[fdt_depth];
	struct boot_range r;
	u32 i;

	(void)boot_hart;
	if (fdt_under(2, "reserved-memory"))
		for (i = 0; fdt_reg(i, &r); i++)
			boot_remove_memory(r.start, r.end);
	else if (fdt_has(n, "compatible", "ns16550a") ||
		 fdt_has(n, "compatible", "ns16550"))
		visit_uart(n);
	else if (fdt_has(n, "compatible", "riscv,plic0") ||
		 fdt_has(n, "compatible", "sifive,plic-1.0.0"))
		visit_plic(n);
	else if (fdt_has(n, "compatible", "sifive,test0") && fdt_reg(0, &r))
		boot_info.port.power = r.start;
}

static void check_found(u32 boot_hart)
{
	const struct boot_info *b = &boot_info;
	unsigned int cpu;

	if (!have_boot_hart)
		boot_fail("device tree: no node for hart %u, which boots",
			  boot_hart);
	if (!b->clock_hz)
		boot_fail("device tree: /cpus has no timebase-frequency");
	if (!b->ram_bytes)
		boot_fail("device tree: no memory node");
	if (!b->port.uart || !b->port.uart_irq)
		boot_fail("device tree: no ns16550 with an interrupt");
	if (!b->port.plic)
		boot_fail("device tree: no PLIC");
	for (cpu = 0; cpu < b->nr_cpus; cpu++)
		if (b->port.plic_context[cpu] == NO_CONTEXT)
			boot_fail("device tree: the PLIC has no supervisor "
				  "context for hart %u",
				  b->cpu_hwid[cpu].id);
}

/* From start.S: the hart that boots, and where the device tree lies. */
noreturn void boot_main(u64 boot_hart, u64 tree);
noreturn void boot_main(u64 boot_hart, u64 tree)
{
	struct boot_info *b = &boot_info;
	unsigned int cpu;

	b->port.sstc = true;
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		b->port.plic_context[cpu] = NO_CONTEXT;
	fdt_open(tree);
	fdt_walk(visit_first, (u32)boot_hart);
	fdt_walk(visit_second, (u32)boot_hart);
	check_found((u32)boot_hart);
	fdt_remove_reserved();
	boot_remove_memory(b->initrd.start, b->initrd.end);
	/* The image, and below it the firmware, should the tree not say so. */
	boot_remove_memory(ALIGN_DOWN(KERNEL_PHYS, 1ul << 30),
			   arch_virt_to_phys(_end));
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
