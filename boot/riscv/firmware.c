/*
 * The device tree (Devicetree Specification 0.4, chapter 5) into boot_info. Two
 * passes over its nodes: the first learns the harts, memory and /chosen, the
 * second what refers to them (the interrupt controller, reserved memory). Every
 * read is checked against the tree's size, so a broken one ends in boot_fail().
 */
#include <boot/boot_info.h>
#include <boot/boot.h>
#include <kernel/cpu/cpu.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/main.h>

#define FDT_MAGIC 0xd00dfeedu
#define FDT_VERSION 16 /* compatible since; the oldest with this layout */
enum { FDT_BEGIN_NODE = 1, FDT_END_NODE, FDT_PROP, FDT_NOP, FDT_END = 9 };

#define MAX_DEPTH 8
#define IRQ_S_EXTERNAL 9
#define NO_CONTEXT (~0u)

/* Byte offsets from the tree's start. */
static const char *dt;
static u32 dt_size, dt_struct, dt_strings;

/* A node on the path from the root to the one visited. */
struct node {
	const char *name;
	u32 at;			       /* of its first property */
	u32 address_cells, size_cells; /* for its children's reg */
	/* Given by the node to those below it: */
	int cpu; /* index of the hart that it describes, or -1 */
};
static struct node path[MAX_DEPTH];
static unsigned int depth; /* path[depth] is the node visited */

/* A property's value. */
struct prop {
	const char *data;
	u32 len;
};

static u32 cpu_intc[MAX_CPUS]; /* phandle of each hart's interrupt controller */
static bool have_boot_hart;

static u32 get32(const char *p)
{
	const u8 *b = (const u8 *)p;

	return (u32)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

static u32 dt_word(u32 at)
{
	if (at > dt_size - 4)
		boot_fail("device tree: structure ends outside its %u bytes",
			  dt_size);
	return get32(dt + at);
}

/* A string within the tree. */
static const char *dt_string(u32 at)
{
	if (at >= dt_size || strnlen(dt + at, dt_size - at) == dt_size - at)
		boot_fail("device tree: string at %#x not terminated", at);
	return dt + at;
}

/* Offset of the token after the one at `at`. */
static u32 dt_skip(u32 at)
{
	u32 token = dt_word(at), len;

	at += 4;
	if (token == FDT_BEGIN_NODE)
		at += strlen(dt_string(at)) + 1;
	else if (token == FDT_PROP) {
		len = dt_word(at);
		if ((u64)at + 8 + len > dt_size)
			boot_fail("device tree: property of %u bytes at %#x",
				  len, at);
		at += 8 + len;
	}
	return ALIGN_UP(at, 4u);
}

/* A property of a node; absent: false. */
static bool node_prop(const struct node *n, const char *name, struct prop *p)
{
	u32 at, token;

	for (at = n->at;; at = dt_skip(at)) {
		token = dt_word(at);
		if (token == FDT_NOP)
			continue;
		if (token != FDT_PROP)
			return false;
		if (strcmp(dt_string(dt_strings + dt_word(at + 8)), name))
			continue;
		p->len = dt_word(at + 4);
		p->data = dt + at + 12;
		dt_skip(at); /* checks the length */
		return true;
	}
}

/* Big-endian number of `cells` words at index i of a property. */
static u64 prop_cells(const struct prop *p, u32 i, u32 cells)
{
	u64 v = 0;

	if (((u64)i + cells) * 4 > p->len)
		boot_fail("device tree: node %s: property too short",
			  path[depth].name);
	while (cells--)
		v = v << 32 | get32(p->data + 4 * i++);
	return v;
}

static u32 node_u32(const struct node *n, const char *name, u32 otherwise)
{
	struct prop p;

	return node_prop(n, name, &p) ? (u32)prop_cells(&p, 0, 1) : otherwise;
}

/* Does a list-of-strings property contain s? */
static bool node_has(const struct node *n, const char *name, const char *s)
{
	struct prop p;
	u32 i;

	if (!node_prop(n, name, &p))
		return false;
	for (i = 0; i < p.len; i += strnlen(p.data + i, p.len - i) + 1)
		if (p.len - i > strlen(s) && strcmp(p.data + i, s) == 0)
			return true;
	return false;
}

/* The i-th (address, size) of the visited node's reg; false: no more. */
static bool node_reg(u32 i, struct boot_range *r)
{
	const struct node *parent = &path[depth - 1];
	u32 a = parent->address_cells, s = parent->size_cells;
	struct prop p;

	if (a > 2 || s > 2 || !node_prop(&path[depth], "reg", &p) ||
	    (u64)(i + 1) * (a + s) * 4 > p.len)
		return false;
	r->start = prop_cells(&p, i * (a + s), a);
	r->end = r->start + prop_cells(&p, i * (a + s) + a, s);
	return r->end >= r->start;
}

/* Can nopl run on the hart of this node? Also narrows what all harts have. */
static bool cpu_usable(const struct node *n)
{
	struct prop isa, mmu;

	if (!node_prop(n, "riscv,isa", &isa) || isa.len < 5 ||
	    isa.data[isa.len - 1] || memcmp(isa.data, "rv64", 4) ||
	    !node_prop(n, "mmu-type", &mmu) ||
	    node_has(n, "mmu-type", "riscv,none"))
		return false;
	if (!strstr(isa.data, "_sstc"))
		boot_info.port.sstc = false;
	return true;
}

/* Give the hart an index: 0 to the boot hart, wherever the tree lists it. */
static void visit_cpu(struct node *n, u32 boot_hart)
{
	struct boot_info *b = &boot_info;
	struct prop p;
	unsigned int i;
	u32 hart;

	if (!node_prop(n, "reg", &p))
		boot_fail("device tree: node %s has no reg", n->name);
	hart = prop_cells(&p, 0, path[depth - 1].address_cells);
	if (hart == boot_hart)
		i = 0;
	else
		i = b->nr_cpus + !have_boot_hart;
	if (node_prop(n, "status", &p) && !node_has(n, "status", "okay"))
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
	n->cpu = i;
}

static void visit_memory(void)
{
	struct boot_range r;
	u32 i;

	for (i = 0; node_reg(i, &r); i++) {
		boot_info.ram_bytes += r.end - r.start;
		boot_add_memory(r.start, r.end);
	}
}

/* An address in /chosen: one or two cells. */
static u64 chosen_address(const struct node *n, const char *name)
{
	struct prop p;

	if (!node_prop(n, name, &p))
		return 0;
	return prop_cells(&p, 0, p.len >= 8 ? 2 : 1);
}

static void visit_chosen(const struct node *n)
{
	struct prop p;

	boot_info.initrd.start = chosen_address(n, "linux,initrd-start");
	boot_info.initrd.end = chosen_address(n, "linux,initrd-end");
	if (boot_info.initrd.end < boot_info.initrd.start)
		boot_fail("device tree: initrd ends before it begins");
	if (node_prop(n, "bootargs", &p))
		boot_set_cmdline(p.data, p.len);
}

static bool under(unsigned int d, const char *name)
{
	return depth == d && strcmp(path[d - 1].name, name) == 0;
}

/* First pass: what refers to nothing else. */
static void visit_first(u32 boot_hart)
{
	struct node *n = &path[depth];

	if (under(2, "cpus") && node_has(n, "device_type", "cpu"))
		visit_cpu(n, boot_hart);
	else if (depth == 3 && path[2].cpu >= 0 &&
		 node_has(n, "compatible", "riscv,cpu-intc"))
		cpu_intc[path[2].cpu] = node_u32(n, "phandle", 0);
	else if (depth == 1 && strcmp(n->name, "cpus") == 0)
		boot_info.clock_hz = node_u32(n, "timebase-frequency", 0);
	else if (depth == 1 && node_has(n, "device_type", "memory"))
		visit_memory();
	else if (depth == 1 && strcmp(n->name, "chosen") == 0)
		visit_chosen(n);
}

/* The n-th pair of interrupts-extended is context n: whose, and which mode? */
static void visit_plic(const struct node *n)
{
	struct boot_port *port = &boot_info.port;
	struct boot_range r;
	struct prop p;
	unsigned int cpu;
	u32 i;

	if (!node_reg(0, &r) || !node_prop(n, "interrupts-extended", &p))
		boot_fail("device tree: node %s: no reg or no "
			  "interrupts-extended",
			  n->name);
	port->plic = r.start;
	port->plic_size = r.end - r.start;
	for (i = 0; i < p.len / 8; i++)
		for (cpu = 0; cpu < boot_info.nr_cpus; cpu++)
			if (prop_cells(&p, 2 * i, 1) == cpu_intc[cpu] &&
			    prop_cells(&p, 2 * i + 1, 1) == IRQ_S_EXTERNAL)
				port->plic_context[cpu] = i;
}

static void visit_uart(const struct node *n)
{
	struct boot_port *port = &boot_info.port;
	struct boot_range r;

	if (port->uart)
		return;
	if (!node_reg(0, &r))
		boot_fail("device tree: node %s has no reg", n->name);
	port->uart_irq = node_u32(n, "interrupts", 0);
	port->uart_shift = node_u32(n, "reg-shift", 0);
	port->uart = r.start;
}

/* Second pass: devices, and memory that is in use. */
static void visit_second(u32 boot_hart)
{
	const struct node *n = &path[depth];
	struct boot_range r;
	u32 i;

	(void)boot_hart;
	if (under(2, "reserved-memory"))
		for (i = 0; node_reg(i, &r); i++)
			boot_remove_memory(r.start, r.end);
	else if (node_has(n, "compatible", "ns16550a") ||
		 node_has(n, "compatible", "ns16550"))
		visit_uart(n);
	else if (node_has(n, "compatible", "riscv,plic0") ||
		 node_has(n, "compatible", "sifive,plic-1.0.0"))
		visit_plic(n);
	else if (node_has(n, "compatible", "sifive,test0") && node_reg(0, &r))
		boot_info.port.power = r.start;
}

static void walk(void (*visit)(u32 boot_hart), u32 boot_hart)
{
	u32 at, token;
	int d = -1;

	for (at = dt_struct; (token = dt_word(at)) != FDT_END;
	     at = dt_skip(at)) {
		if (token == FDT_BEGIN_NODE) {
			if (++d >= MAX_DEPTH)
				boot_fail("device tree: deeper than %u nodes",
					  MAX_DEPTH);
			depth = d;
			path[d] = (struct node){ dt_string(at + 4), dt_skip(at),
						 2, 1, -1 };
			path[d].address_cells =
				node_u32(&path[d], "#address-cells", 2);
			path[d].size_cells =
				node_u32(&path[d], "#size-cells", 1);
			if (d > 0)
				visit(boot_hart);
		} else if (token == FDT_END_NODE && d >= 0) {
			d--;
		} else if (token != FDT_PROP && token != FDT_NOP) {
			boot_fail("device tree: token %#x at %#x", token, at);
		}
	}
}

static void open_tree(u64 pa)
{
	dt = arch_phys_to_virt(pa);
	if (!pa || pa % 8 || get32(dt) != FDT_MAGIC)
		boot_fail("no device tree at %#llx, where a1 says",
			  (unsigned long long)pa);
	dt_size = get32(dt + 4);
	dt_struct = get32(dt + 8);
	dt_strings = get32(dt + 12);
	if (get32(dt + 24) > FDT_VERSION + 1 || dt_size < 40)
		boot_fail("device tree: version %u, %u bytes; known: up to %u",
			  get32(dt + 24), dt_size, FDT_VERSION + 1);
}

/* Whatever the tree's own list of reservations (5.3) names. */
static void remove_reserved(void)
{
	u32 at = get32(dt + 16);

	for (;; at += 16) {
		u64 start = (u64)dt_word(at) << 32 | dt_word(at + 4);
		u64 size = (u64)dt_word(at + 8) << 32 | dt_word(at + 12);

		if (!size)
			return;
		boot_remove_memory(start, start + size);
	}
}

static void check(u32 boot_hart)
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
	open_tree(tree);
	walk(visit_first, (u32)boot_hart);
	walk(visit_second, (u32)boot_hart);
	check((u32)boot_hart);
	remove_reserved();
	boot_remove_memory(tree, tree + dt_size);
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
