/* SPDX-License-Identifier: MIT */
/*
 * Fills boot_info from the loader's start info and ACPI. All physical addresses
 * below 4 GiB are mapped where they are while this runs, and only then.
 */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <boot/boot.h>
#include <boot/multiboot.h>
#include <kernel/cpu/cpu.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/console.h>
#include <kernel/main.h>

#define MIB 0x100000ull
#define MAPPED_END (1ull << 32)

/* Xen's public/arch-x86/hvm/start_info.h */
#define START_INFO_MAGIC 0x336ec578
#define MEMORY_RAM 1

struct start_info {
	u32 magic, version, flags, nr_modules;
	u64 modules, cmdline, rsdp, memory_map;
	u32 nr_memory_map, reserved;
};

struct start_module {
	u64 start, size, cmdline, reserved;
};

/* Multiboot2's entries are the same. */
struct start_memory {
	u64 start, size;
	u32 type, reserved;
};

/* ACPI 6.4, chapter 5 */
struct rsdp {
	char signature[8];
	u8 checksum;
	char oem[6];
	u8 revision;
	u32 rsdt;
	u32 length;
	u64 xsdt;
	u8 extended_checksum, reserved[3];
} __attribute__((packed));
#define RSDP_1_LENGTH 20

/* Offsets from the beginning of a table or of an entry. */
enum {
	TABLE_LENGTH = 4,
	TABLE_HEADER = 36,
	FADT_PM1A_CONTROL = 64,
	FADT_PM_TIMER = 76,
	FADT_END = 80,
	MADT_LAPIC = 36,
	MADT_ENTRIES = 44,
};

/* Entries of the MADT: u8 type, u8 length, then by type: */
enum {
	ENTRY_LAPIC = 0,	 /* u8 processor, u8 id, u32 flags */
	ENTRY_IOAPIC = 1,	 /* u8 id, u8, u32 address, u32 gsi */
	ENTRY_OVERRIDE = 2,	 /* u8 bus, u8 irq, u32 gsi, u16 flags */
	ENTRY_LAPIC_ADDRESS = 5, /* u16, u64 address */
	ENTRY_X2APIC = 9,	 /* u16, u32 id, u32 flags */
};

#define LAPIC_ENABLED 1
#define ISA_CONSOLE_IRQ 4
#define OVERRIDE_LOW 0x3   /* both bits set: active low */
#define OVERRIDE_LEVEL 0xc /* both bits set: level-triggered */

/* Called by start.S on the boot stack. magic: a multiboot2 loader's, or 0 from PVH's entry. */
noreturn void firmware_main(u64 start_info, u32 magic);

static const void *firmware_mapped(u64 pa, u64 size, const char *what)
{
	if (!pa || pa >= MAPPED_END || size > MAPPED_END - pa)
		boot_fail("%s at %#llx: not below 4 GiB", what,
			  (unsigned long long)pa);
	return (const void *)pa;
}

static bool sums_to_zero(const void *data, u32 length)
{
	const u8 *byte = data;
	u8 sum = 0;

	while (length--)
		sum += *byte++;
	return sum == 0;
}

/* ---- Memory, command line, initrd -------------------------------------- */

static void add_ram(u64 start, u64 end)
{
	u64 reach = min(end, (u64)DIRECT_MAP_SIZE);

	boot_info.ram_bytes += end - start;
	if (start < reach) {
		boot_add_memory(start, reach);
		boot_info.port.ram_top = max(boot_info.port.ram_top, reach);
	}
	boot_info.port.ram_left_out += end - max(start, reach);
}

static void read_memory(const struct start_info *info)
{
	const struct start_memory *map;

	if (info->version < 1 || !info->nr_memory_map)
		boot_fail("start info has no memory map");
	map = firmware_mapped(info->memory_map,
			      info->nr_memory_map * sizeof(*map), "memory map");
	for (u32 i = 0; i < info->nr_memory_map; i++)
		if (map[i].type == MEMORY_RAM)
			add_ram(map[i].start,
				map[i].start + min(map[i].size, ~map[i].start));
	/*
	 * The firmware leaves a little RAM of its own out of the map, so the sum is
	 * rounded up.
	 */
	boot_info.ram_bytes = ALIGN_UP(boot_info.ram_bytes, MIB);
	boot_info.port.ram_top = ALIGN_DOWN(boot_info.port.ram_top, PAGE_SIZE);
	if (boot_info.port.ram_top < arch_virt_to_phys(_end))
		boot_fail("RAM ends at %#llx, before the kernel does",
			  (unsigned long long)boot_info.port.ram_top);
	/* Real-mode areas, and the page where other CPUs start. */
	boot_remove_memory(0, MIB);
	boot_remove_memory(KERNEL_PHYS, arch_virt_to_phys(_end));
}

static void read_initrd(const struct start_info *info)
{
	const struct start_module *m;

	if (!info->nr_modules)
		return;
	m = firmware_mapped(info->modules, sizeof(*m), "PVH module list");
	if (m->start > DIRECT_MAP_SIZE || m->size > DIRECT_MAP_SIZE - m->start)
		boot_fail("initrd at %#llx is beyond 1 GiB; give the machine "
			  "no more memory than that",
			  (unsigned long long)m->start);
	boot_info.initrd.start = m->start;
	boot_info.initrd.end = m->start + m->size;
	boot_remove_memory(m->start, m->start + m->size);
}

/* ---- ACPI -------------------------------------------------------------- */

static const struct rsdp *rsdp_at(u64 pa)
{
	const struct rsdp *r = (const void *)pa;

	if (memcmp(r->signature, "RSD PTR ", 8) ||
	    !sums_to_zero(r, RSDP_1_LENGTH))
		return NULL;
	return r;
}

/* In the BIOS area, on 16-byte boundaries (ACPI 5.2.5.1). */
static const struct rsdp *rsdp_scan(void)
{
	for (u64 pa = 0xe0000; pa < MIB; pa += 16)
		if (rsdp_at(pa))
			return rsdp_at(pa);
	return NULL;
}

static u32 firmware_get32(const u8 *at, unsigned int offset)
{
	u32 v;

	memcpy(&v, at + offset, sizeof(v));
	return v;
}

static u64 firmware_get64(const u8 *at, unsigned int offset)
{
	return firmware_get32(at, offset) | (u64)firmware_get32(at, offset + 4)
						    << 32;
}

/* The table at pa, checked, or NULL when its signature is another. */
static const u8 *table_at(u64 pa, const char *signature, u32 min_length)
{
	const u8 *t = firmware_mapped(pa, TABLE_HEADER, "ACPI table");
	u32 length = firmware_get32(t, TABLE_LENGTH);

	if (memcmp(t, signature, 4))
		return NULL;
	firmware_mapped(pa, length, "ACPI table");
	if (length < min_length || !sums_to_zero(t, length))
		boot_fail("ACPI table %s at %#llx: wrong length or checksum",
			  signature, (unsigned long long)pa);
	return t;
}

static const u8 *find_table(const struct rsdp *r, const char *signature,
			    u32 min_length)
{
	bool wide = r->revision >= 2 && r->xsdt;
	const char *root_name = wide ? "XSDT" : "RSDT";
	const u8 *root =
		table_at(wide ? r->xsdt : r->rsdt, root_name, TABLE_HEADER);
	u32 width = wide ? 8 : 4;

	if (!root)
		boot_fail("ACPI has no table %s", root_name);
	for (u32 at = TABLE_HEADER;
	     at + width <= firmware_get32(root, TABLE_LENGTH); at += width) {
		const u8 *t = table_at(wide ? firmware_get64(root, at) :
					      firmware_get32(root, at),
				       signature, min_length);

		if (t)
			return t;
	}
	boot_fail("ACPI has no table %s", signature);
}

/* The boot CPU has index 0 already. The others follow as they come. A table may name one twice, by
 * entries of both types. */
static void add_cpu(u32 id, u32 flags)
{
	for (unsigned int i = 0; i < boot_info.nr_cpus; i++)
		if (id == boot_info.cpu_hwid[i].id)
			return;
	if (!(flags & LAPIC_ENABLED))
		return;
	if (boot_info.nr_cpus == MAX_CPUS || id > 0xfe)
		boot_info.cpus_ignored++;
	else
		boot_info.cpu_hwid[boot_info.nr_cpus++].id = id;
}

static void read_madt_entry(const u8 *e)
{
	struct boot_port *port = &boot_info.port;

	switch (e[0]) {
	case ENTRY_LAPIC:
		add_cpu(e[3], firmware_get32(e, 4));
		break;
	case ENTRY_X2APIC:
		add_cpu(firmware_get32(e, 4), firmware_get32(e, 8));
		break;
	case ENTRY_LAPIC_ADDRESS:
		port->lapic = firmware_get64(e, 4);
		break;
	case ENTRY_OVERRIDE:
		if (e[3] != ISA_CONSOLE_IRQ)
			break;
		port->console_gsi = firmware_get32(e, 4);
		port->console_low = (e[8] & OVERRIDE_LOW) == OVERRIDE_LOW;
		port->console_level = (e[8] & OVERRIDE_LEVEL) == OVERRIDE_LEVEL;
		break;
	}
}

/*
 * Of several I/O APICs, keep the one that has the console's pin: its first pin is the
 * nearest at or below.
 */
static void read_ioapic(const u8 *e)
{
	struct boot_port *port = &boot_info.port;
	u32 gsi;

	if (e[0] != ENTRY_IOAPIC)
		return;
	gsi = firmware_get32(e, 8);
	if (gsi <= port->console_gsi &&
	    (!port->ioapic || gsi >= port->ioapic_gsi)) {
		port->ioapic = firmware_get32(e, 4);
		port->ioapic_gsi = gsi;
	}
}

static void for_each_madt_entry(const u8 *madt, void (*fn)(const u8 *e))
{
	static const u8 least[] = {
		[ENTRY_LAPIC] = 8,     [ENTRY_IOAPIC] = 12,
		[ENTRY_OVERRIDE] = 10, [ENTRY_LAPIC_ADDRESS] = 12,
		[ENTRY_X2APIC] = 16,
	};
	const u8 *e, *end = madt + firmware_get32(madt, TABLE_LENGTH);

	for (e = madt + MADT_ENTRIES; end - e >= 2; e += e[1]) {
		if (e[1] < 2 || e[1] > end - e ||
		    (e[0] < sizeof(least) && e[1] < least[e[0]]))
			boot_fail("ACPI table APIC: entry of %u bytes", e[1]);
		fn(e);
	}
}

static void read_acpi(const struct start_info *info)
{
	const struct rsdp *r = NULL;
	const u8 *fadt, *madt;

	if (info->rsdp)
		r = rsdp_at((u64)firmware_mapped(info->rsdp, sizeof(*r),
						 "ACPI RSDP"));
	if (!r)
		r = rsdp_scan();
	if (!r)
		boot_fail("no ACPI tables (RSDP): nopl needs them to find "
			  "CPUs, interrupt controllers and timer");

	fadt = find_table(r, "FACP", FADT_END);
	boot_info.port.pm_timer = firmware_get32(fadt, FADT_PM_TIMER);
	boot_info.port.pm_control = firmware_get32(fadt, FADT_PM1A_CONTROL);
	if (!boot_info.port.pm_timer)
		boot_fail("ACPI table FACP: no PM timer to measure clocks by");

	madt = find_table(r, "APIC", MADT_ENTRIES);
	boot_info.nr_cpus = 1;
	boot_info.cpu_hwid[0].id = cpuid_apic_id();
	boot_info.port.lapic = firmware_get32(madt, MADT_LAPIC);
	boot_info.port.console_gsi = ISA_CONSOLE_IRQ;
	for_each_madt_entry(madt, read_madt_entry);
	for_each_madt_entry(madt, read_ioapic);
	if (!boot_info.port.lapic || !boot_info.port.ioapic)
		boot_fail("ACPI table APIC: no local APIC or no I/O APIC");
}

/* The tags in PVH's words. */
static const struct start_info *info_from_tags(u64 tags, u32 magic)
{
	static struct start_info info;
	struct multiboot_info m;

	if (magic != MULTIBOOT2_MAGIC)
		boot_fail("the loader's magic is %#x, not multiboot2's", magic);
	multiboot_read(tags, &m, firmware_mapped);
	info = (struct start_info){
		.magic = START_INFO_MAGIC,
		.version = 1,
		.cmdline = m.cmdline,
		.rsdp = m.rsdp,
		.memory_map = m.memory_map,
		.nr_memory_map = m.nr_memory_map,
	};
	return &info;
}

void firmware_main(u64 start_info, u32 magic)
{
	const struct start_info *info;

	set_this_cpu(&cpus[0]);
	arch_console_init();
	info = magic ? info_from_tags(start_info, magic) :
		       firmware_mapped(start_info, sizeof(*info),
				       "PVH start info");
	if (info->magic != START_INFO_MAGIC)
		boot_fail("PVH start info at %#llx: magic %#x",
			  (unsigned long long)start_info, info->magic);
	if (rdmsr(MSR_APIC_BASE) & APIC_BASE_X2APIC)
		boot_fail("firmware left the local APIC in x2APIC mode");
	read_memory(info);
	read_initrd(info);
	if (info->cmdline)
		boot_set_cmdline(
			firmware_mapped(info->cmdline, 1, "command line"),
			min(BOOT_CMDLINE * 4ull, MAPPED_END - info->cmdline));
	read_acpi(info);
	kernel_main();
}
