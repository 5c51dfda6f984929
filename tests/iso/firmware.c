/* SPDX-License-Identifier: MIT */
/*
 * A port's reader of what loader and firmware say (FIRMWARE, boot/NAME/firmware.c) on the host,
 * with words that are right: each value that the kernel gets of them. Then one mistake at a time
 * in the same words: boot_fail() refuses each in its own way, or the reader passes over it.
 *
 *   firmware       prints how many mistakes there were
 */
#include "host.h"

#include <string.h>
#include <sys/mman.h>

/* Where the BIOS leaves a root pointer, and the other words, below 4 GiB. */
#define BIOS 0xe0000ul
static u8 *words;

enum {
	RSDP,
	RSDT = 0x80,
	XSDT = 0x100,
	FADT = 0x200, /* the new root's */
	FADT_OLD = 0x300,
	MADT = 0x400,
	OTHER = 0x600,
	MAP = 0x700,
	MODULE = 0x800,
	WORDS = PAGE_SIZE,
};

/* ---- Right words ---- */

static void put(unsigned int at, u64 value, unsigned int bytes)
{
	memcpy(words + at, &value, bytes);
}

/* The byte at `sum` makes the whole 0. */
static void balance(u8 *from, u32 length, u8 *sum)
{
	*sum = 0;
	for (u32 i = 0; i < length; i++)
		if (from + i != sum)
			*sum -= from[i];
}

static void table(unsigned int at, const char *signature, u32 length)
{
	memcpy(words + at, signature, 4);
	put(at + TABLE_LENGTH, length, 4);
}

static void balance_table(unsigned int at)
{
	balance(words + at, firmware_get32(words + at, TABLE_LENGTH),
		words + at + 9);
}

static void balance_all(void)
{
	static const unsigned int tables[] = { RSDT, XSDT,     FADT,
					       MADT, FADT_OLD, OTHER };

	for (unsigned int i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		balance_table(tables[i]);
	balance(words + RSDP, RSDP_1_LENGTH,
		words + RSDP + offsetof(struct rsdp, checksum));
}

#define CPU_ID(n) (THIS_CPU_ID + (n))

/* Where the first entry of each type stands in the list. */
enum {
	LAPICS = MADT + MADT_ENTRIES,
	X2APICS = LAPICS + 6 * 8,
	OVERRIDES = X2APICS + 4 * 16,
	IOAPICS = OVERRIDES + 2 * 10,
	LAPIC_ADDRESS = IOAPICS + 4 * 12,
};

/* Enabled, disabled, enabled, the boot CPU again, twice the same, one that APICs cannot name. */
static unsigned int put_cpus(unsigned int at)
{
	const u8 lapics[][2] = { { CPU_ID(1), 1 }, { CPU_ID(2), 0 },
				 { CPU_ID(3), 3 }, { CPU_ID(0), 1 },
				 { CPU_ID(3), 1 }, { CPU_ID(4), 2 } };
	const u32 wide[][2] = {
		{ CPU_ID(5), 1 }, { CPU_ID(6), 0 }, { 0xff, 1 }, { 0x100, 1 }
	};

	for (unsigned int i = 0; i < sizeof(lapics) / 2; i++, at += 8) {
		put(at, ENTRY_LAPIC | 8 << 8 | (u32)lapics[i][0] << 24, 4);
		put(at + 4, lapics[i][1], 4);
	}
	for (unsigned int i = 0; i < sizeof(wide) / 8; i++, at += 16) {
		put(at, ENTRY_X2APIC | 16 << 8, 4);
		put(at + 4, wide[i][0] | (u64)wide[i][1] << 32, 8);
	}
	return at;
}

static unsigned int put_ioapic(unsigned int at, u32 address, u32 gsi)
{
	put(at, ENTRY_IOAPIC | 12 << 8, 4);
	put(at + 4, address | (u64)gsi << 32, 8);
	return at + 12;
}

static unsigned int put_override(unsigned int at, u8 irq, u32 gsi, u16 flags)
{
	put(at, ENTRY_OVERRIDE | 10 << 8 | (u32)irq << 24, 4);
	put(at + 4, gsi | (u64)flags << 32, 6);
	return at + 10;
}

static void put_madt(void)
{
	unsigned int at = put_cpus(LAPICS);

	at = put_override(at, ISA_CONSOLE_IRQ, 20, 0xd);
	at = put_override(at, ISA_CONSOLE_IRQ + 1, 30, 0xf);
	/* The first pins of the third are the nearest below the console's. */
	at = put_ioapic(at, 0xfec00000, 0);
	at = put_ioapic(at, 0xfec02000, 21);
	at = put_ioapic(at, 0xfec01000, 20);
	at = put_ioapic(at, 0xfec03000, 8);
	put(at, ENTRY_LAPIC_ADDRESS | 12 << 8, 4);
	put(at + 4, 0x1fee10000, 8);
	table(MADT, "APIC", at + 12 - MADT);
	put(MADT + MADT_LAPIC, 0xfee00000, 4);
}

static void put_roots(void)
{
	static const unsigned int old[] = { OTHER, FADT_OLD, MADT },
				  new[] = { OTHER, FADT, MADT };
	const struct rsdp r = {
		.signature = "RSD PTR ",
		.revision = 2,
		.rsdt = (u64)words + RSDT,
		.xsdt = (u64)words + XSDT,
	};

	memcpy(words + RSDP, &r, sizeof(r));
	table(RSDT, "RSDT", TABLE_HEADER + 3 * 4);
	table(XSDT, "XSDT", TABLE_HEADER + 3 * 8);
	for (unsigned int i = 0; i < 3; i++) {
		put(RSDT + TABLE_HEADER + 4 * i, (u64)words + old[i], 4);
		put(XSDT + TABLE_HEADER + 8 * i, (u64)words + new[i], 8);
	}
}

static void put_memory(void)
{
	const struct start_memory map[] = {
		{ 0, 0x9fc00, MEMORY_RAM, 0 },
		{ 0xf0000, 0x10000, MEMORY_RAM + 1, 0 },
		{ 0x3ff00000, 0x200000, MEMORY_RAM, 0 },
		{ 0x100000, 0x3fdff7ff, MEMORY_RAM, 0 },
		{ 0x100000000, 0x300000, MEMORY_RAM, 0 },
	};

	memcpy(words + MAP, map, sizeof(map));
}

static struct start_info info;

static void put_right_words(void)
{
	static const struct start_module m = { 0x2000000, 0x1800, 0, 0 };

	memset(words, 0, WORDS);
	memset((void *)BIOS, 0, 0x20000);
	put_roots();
	table(OTHER, "SSDT", TABLE_HEADER);
	table(FADT, "FACP", FADT_END);
	put(FADT + FADT_PM_TIMER, 0x608, 4);
	put(FADT + FADT_PM1A_CONTROL, 0x604, 4);
	table(FADT_OLD, "FACP", FADT_END);
	put(FADT_OLD + FADT_PM_TIMER, 0xb008, 4);
	put_madt();
	put_memory();
	memcpy(words + MODULE, &m, sizeof(m));
	balance_all();
	info = (struct start_info){
		.version = 1,
		.modules = (u64)words + MODULE,
		.nr_modules = 1,
		.rsdp = (u64)words + RSDP,
		.memory_map = (u64)words + MAP,
		.nr_memory_map = 5,
	};
}

/* ---- What the kernel gets of them ---- */

static const char *wrong;

#define EXPECT(what)                                                           \
	do {                                                                   \
		if (!wrong && !(what))                                         \
			wrong = #what;                                         \
	} while (0)

static bool told_memory(unsigned int i, u64 start, u64 end, bool removed)
{
	return told[i].start == start && told[i].end == end &&
	       told[i].removed == removed;
}

static void expect_memory(void)
{
	EXPECT(nr_told == 6);
	EXPECT(told_memory(0, 0, 0x9fc00, false));
	EXPECT(told_memory(1, 0x3ff00000, DIRECT_MAP_SIZE, false));
	EXPECT(told_memory(2, 0x100000, 0x3feff7ff, false));
	EXPECT(told_memory(3, 0, MIB, true));
	EXPECT(told_memory(4, KERNEL_PHYS, IMAGE_END, true));
	EXPECT(told_memory(5, 0x2000000, 0x2001800, true));
	EXPECT(boot_info.port.ram_top == DIRECT_MAP_SIZE);
	EXPECT(boot_info.port.ram_left_out == 0x100000 + 0x300000);
	EXPECT(boot_info.ram_bytes == 0x40400000);
	EXPECT(boot_info.initrd.start == 0x2000000);
	EXPECT(boot_info.initrd.end == 0x2001800);
}

static void expect_machine(void)
{
	EXPECT(boot_info.nr_cpus == 4);
	EXPECT(boot_info.cpu_hwid[0].id == THIS_CPU_ID);
	EXPECT(boot_info.cpu_hwid[1].id == CPU_ID(1));
	EXPECT(boot_info.cpu_hwid[2].id == CPU_ID(3));
	EXPECT(boot_info.cpu_hwid[3].id == CPU_ID(5));
	EXPECT(boot_info.cpus_ignored == 2);
	EXPECT(boot_info.port.lapic == 0x1fee10000);
	EXPECT(boot_info.port.ioapic == 0xfec01000);
	EXPECT(boot_info.port.ioapic_gsi == 20);
	EXPECT(boot_info.port.console_gsi == 20);
	EXPECT(boot_info.port.console_level && !boot_info.port.console_low);
}

/* ---- One mistake at a time ---- */

enum { NEW = 0x608, OLD = 0xb008 }; /* the PM timer tells which root was read */

static void root_nowhere_said(void)
{
	info.rsdp = 0;
}

static void root_out_of_reach(void)
{
	info.rsdp = MAPPED_END - sizeof(struct rsdp) + 1;
}

static void root_in_bios(u64 at)
{
	balance_all();
	memcpy((void *)at, words + RSDP, sizeof(struct rsdp));
	info.rsdp = 0;
}

static void root_first_in_bios(void)
{
	root_in_bios(BIOS);
}

static void root_last_in_bios(void)
{
	root_in_bios(MIB - 48);
}

static void root_beside_its_place(void)
{
	root_in_bios(BIOS + 8);
}

static void old_root_misnamed(void)
{
	put(RSDP + offsetof(struct rsdp, revision), 1, 1);
	put(RSDT, 'X', 1);
}

static void table_too_long(void)
{
	put(FADT + TABLE_LENGTH, MAPPED_END - (u64)words - FADT + 1, 4);
}

static void no_ioapic(void)
{
	for (u8 *e = words + LAPICS; e[1]; e += e[1])
		if (e[0] == ENTRY_IOAPIC)
			e[0] = 77;
}

static void map_too_old(void)
{
	info.version = 0;
}

static void map_empty(void)
{
	info.nr_memory_map = 0;
}

static void map_nowhere(void)
{
	info.memory_map = 0;
}

static void map_at_the_end(void)
{
	info.memory_map = MAPPED_END - 5 * 24 + 1;
}

static void ram_too_small(void)
{
	info.nr_memory_map = 1;
}

static void initrd_too_high(void)
{
	put(MODULE, DIRECT_MAP_SIZE + 1, 8);
	put(MODULE + 8, 0, 8);
}

/*
 * A value put somewhere, or a function that makes the mistake. How the refusal begins, or NULL: it
 * is read, and the PM timer is this.
 */
static const struct mistake {
	struct {
		unsigned int at;
		u64 value;
		unsigned int bytes;
	} put;
	void (*make)(void);
	const char *refusal;
	unsigned int timer;
	bool unbalanced; /* the sums stay as they were */
} mistakes[] = {
	{ .put = { RSDP + offsetof(struct rsdp, revision), 1, 1 },
	  .timer = OLD },
	{ .put = { RSDP + offsetof(struct rsdp, xsdt), 0, 8 }, .timer = OLD },
	{ .put = { RSDP, 0, 1 }, .refusal = "no ACPI tables (RSDP)" },
	{ .put = { RSDP + offsetof(struct rsdp, revision), 1, 1 },
	  .refusal = "no ACPI tables (RSDP)",
	  .unbalanced = true },
	{ .make = root_nowhere_said, .refusal = "no ACPI tables (RSDP)" },
	{ .make = root_out_of_reach,
	  .refusal = "ACPI RSDP at 0xffffffdd: not below" },
	{ .make = root_first_in_bios, .timer = NEW },
	{ .make = root_last_in_bios, .timer = NEW },
	{ .make = root_beside_its_place, .refusal = "no ACPI tables (RSDP)" },
	{ .put = { XSDT + 3, 'X', 1 }, .refusal = "ACPI has no table XSDT" },
	{ .make = old_root_misnamed, .refusal = "ACPI has no table RSDT" },
	{ .put = { FADT, 'f', 1 }, .refusal = "ACPI has no table FACP" },
	{ .put = { MADT + 3, 'c', 1 }, .refusal = "ACPI has no table APIC" },
	{ .put = { XSDT + TABLE_LENGTH, TABLE_HEADER + 3 * 8 - 1, 4 },
	  .refusal = "ACPI has no table APIC" },
	{ .put = { FADT + TABLE_LENGTH, FADT_END - 1, 4 },
	  .refusal = "ACPI table FACP at " },
	{ .put = { FADT + FADT_PM_TIMER, 0, 4 },
	  .refusal = "ACPI table FACP at ",
	  .unbalanced = true },
	{ .put = { XSDT + TABLE_HEADER, MAPPED_END, 8 },
	  .refusal = "ACPI table at 0x100000000: not below" },
	{ .make = table_too_long,
	  .refusal = "ACPI table at 0x",
	  .unbalanced = true },
	{ .put = { FADT + FADT_PM_TIMER, 0, 4 },
	  .refusal = "ACPI table FACP: no PM timer" },
	{ .make = no_ioapic, .refusal = "ACPI table APIC: no local APIC or" },
	{ .put = { LAPIC_ADDRESS + 4, 0, 8 },
	  .refusal = "ACPI table APIC: no local APIC or" },
	{ .put = { LAPICS + 1, 1, 1 },
	  .refusal = "ACPI table APIC: entry of 1 " },
	{ .put = { LAPICS + 1, 7, 1 },
	  .refusal = "ACPI table APIC: entry of 7 " },
	{ .put = { X2APICS + 1, 15, 1 },
	  .refusal = "ACPI table APIC: entry of 15 " },
	{ .put = { OVERRIDES + 1, 9, 1 },
	  .refusal = "ACPI table APIC: entry of 9 " },
	{ .put = { IOAPICS + 1, 11, 1 },
	  .refusal = "ACPI table APIC: entry of 11 " },
	{ .put = { LAPIC_ADDRESS + 1, 11, 1 },
	  .refusal = "ACPI table APIC: entry of 11 " },
	{ .put = { LAPIC_ADDRESS + 1, 13, 1 },
	  .refusal = "ACPI table APIC: entry of 13 " },
	{ .make = map_too_old, .refusal = "start info has no memory map" },
	{ .make = map_empty, .refusal = "start info has no memory map" },
	{ .make = map_nowhere, .refusal = "memory map at 0: not below" },
	{ .make = map_at_the_end,
	  .refusal = "memory map at 0xffffff89: not below" },
	{ .make = ram_too_small, .refusal = "RAM ends at 0x9f000, before" },
	{ .make = initrd_too_high,
	  .refusal = "initrd at 0x40000001 is beyond" },
	{ .put = { MODULE + 8, DIRECT_MAP_SIZE - 0x2000000 + 1, 8 },
	  .refusal = "initrd at 0x2000000 is beyond" },
};

#define MISTAKES (sizeof(mistakes) / sizeof(mistakes[0]))

static bool read_words(void)
{
	forget();
	if (setjmp(given_up))
		return false;
	read_memory(&info);
	read_initrd(&info);
	read_acpi(&info);
	return true;
}

static bool ends_otherwise(const struct mistake *m)
{
	put_right_words();
	put(m->put.at, m->put.value, m->put.bytes);
	if (m->make)
		m->make();
	if (!m->unbalanced)
		balance_all();
	if (read_words() && !m->refusal)
		return boot_info.port.pm_timer != m->timer;
	return !m->refusal || strncmp(why, m->refusal, strlen(m->refusal));
}

static void expect_right(void)
{
	put_right_words();
	EXPECT(read_words());
	expect_memory();
	expect_machine();
	EXPECT(boot_info.port.pm_timer == NEW);
	EXPECT(boot_info.port.pm_control == 0x604);
	info.nr_modules = 0;
	EXPECT(read_words() && nr_told == 5 && !boot_info.initrd.end);
}

static void expect_tags(void)
{
	const struct start_info *i = &info;

	tags = (struct multiboot_info){ 1, 2, 3, 4 };
	forget();
	if (!setjmp(given_up))
		i = info_from_tags(0, MULTIBOOT2_MAGIC);
	EXPECT(i->magic == START_INFO_MAGIC && i->version == 1);
	EXPECT(i->cmdline == 1 && i->rsdp == 2 && i->memory_map == 3);
	EXPECT(i->nr_memory_map == 4 && !i->nr_modules);
	if (!setjmp(given_up))
		info_from_tags(0, MULTIBOOT2_MAGIC + 1);
	EXPECT(!strncmp(why, "the loader's magic is 0x36d7628a", 32));
}

int main(void)
{
	words = mmap(NULL, WORDS, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (words == MAP_FAILED ||
	    mmap((void *)BIOS, 0x20000, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		 0) != (void *)BIOS)
		return 2;
	expect_right();
	expect_tags();
	for (unsigned int i = 0; i < MISTAKES && !wrong; i++)
		if (ends_otherwise(&mistakes[i])) {
			printf("mistake %u: '%s', PM timer %#x, not '%s'\n", i,
			       why, boot_info.port.pm_timer,
			       mistakes[i].refusal ?: "");
			return 1;
		}
	if (wrong) {
		printf("%s does not hold: '%s'\n", wrong, why);
		return 1;
	}
	printf("%zu mistakes\n", MISTAKES);
	return 0;
}
