/* SPDX-License-Identifier: MIT */
/*
 * A reader of what loader and firmware say (FIRMWARE, boot/NAME/firmware.c) on the host: sums
 * that wrap, and damaged lists of CPUs and interrupt controllers. Each list ends at a page that no
 * program may touch. It is read to its end, or boot_fail() says in one line why not.
 *
 *   tables COUNT     that many damaged lists, the same ones every time
 */
#include "host.h"

#include <sys/mman.h>
#include <unistd.h>

static char *page; /* below 4 GiB, and behind it is none */

/* `bytes` bytes, the last ones of the page. */
static char *at_the_end(const void *bytes, size_t n)
{
	return memcpy(page + PAGE_SIZE - n, bytes, n);
}

/* ---- Sums ---- */

static bool memory_wraps(void)
{
	static const struct start_memory map[] = {
		{ 0x100000, 0x1000000, MEMORY_RAM, 0 },
		{ -0x1000ull, 0x2000, MEMORY_RAM, 0 },
		{ 0x200000000, -1ull, MEMORY_RAM, 0 },
	};
	struct start_info info = {
		.version = 1,
		.memory_map = (u64)at_the_end(map, sizeof(map)),
		.nr_memory_map = sizeof(map) / sizeof(map[0]),
	};

	forget();
	if (!setjmp(given_up))
		read_memory(&info);
	return boot_info.port.ram_top != 0x1100000 ||
	       boot_info.port.ram_left_out != 0xfff + ~map[2].start;
}

static bool initrd_wraps(void)
{
	static const struct start_module module = { -0x1000ull, 0x2000, 0, 0 };
	struct start_info info = {
		.nr_modules = 1,
		.modules = (u64)at_the_end(&module, sizeof(module)),
	};

	forget();
	if (!setjmp(given_up))
		read_initrd(&info);
	return strncmp(why, "initrd at 0xfffffffffffff000 is beyond", 38);
}

/* ---- Lists ---- */

#define LIST 68 /* bytes of the entries below */

static const u8 entries[LIST] = {
	ENTRY_LAPIC,
	8,
	0,
	0,
	1,
	0,
	0,
	0,
	ENTRY_LAPIC,
	8,
	1,
	1,
	1,
	0,
	0,
	0,
	ENTRY_X2APIC,
	16,
	0,
	0,
	1,
	0,
	0,
	0,
	1,
	0,
	0,
	0,
	1,
	0,
	0,
	0,
	ENTRY_IOAPIC,
	12,
	0,
	0,
	0,
	0xc0,
	0xfe,
	0,
	0,
	0,
	0,
	0,
	ENTRY_OVERRIDE,
	12,
	0,
	4,
	4,
	0,
	0,
	0,
	0xd,
	0,
	0,
	0,
	ENTRY_LAPIC_ADDRESS,
	12,
};

static bool has_a_cpu_twice(void)
{
	for (unsigned int i = 0; i < boot_info.nr_cpus; i++)
		for (unsigned int k = 0; k < i; k++)
			if (boot_info.cpu_hwid[i].id ==
			    boot_info.cpu_hwid[k].id)
				return true;
	return boot_info.nr_cpus > MAX_CPUS;
}

/* Is it read to its end? The last entry may be cut. */
static bool read_list(const u8 *from, u32 bytes)
{
	u8 madt[MADT_ENTRIES + LIST] = { 0 };
	u32 length = MADT_ENTRIES + bytes;
	const u8 *at;

	memcpy(madt + TABLE_LENGTH, &length, sizeof(length));
	memcpy(madt + MADT_ENTRIES, from, bytes);
	at = (u8 *)at_the_end(madt, length);
	forget();
	boot_info.nr_cpus = 1;
	boot_info.port.console_gsi = ISA_CONSOLE_IRQ;
	if (setjmp(given_up))
		return false;
	for_each_madt_entry(at, read_madt_entry);
	for_each_madt_entry(at, read_ioapic);
	return true;
}

static bool damaged_lists(unsigned long count)
{
	unsigned long good = 0;

	srandom(1);
	for (unsigned long i = 0; i < count; i++) {
		u8 copy[LIST];

		memcpy(copy, entries, LIST);
		for (long n = random() % 4; n; n--)
			copy[random() % LIST] =
				random() % 2 ? random() % 20 : random();
		good += read_list(copy, random() % (LIST + 1));
		if (strchr(why, '\n') || has_a_cpu_twice()) {
			printf("list %lu: %s, %u CPUs\n", i, why,
			       boot_info.nr_cpus);
			return true;
		}
	}
	printf("%lu read, %lu refused\n", good, count - good);
	return false;
}

int main(int argc, char **argv)
{
	alarm(100); /* a reader that comes to no end */
	page = mmap(NULL, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (argc != 2 || page == MAP_FAILED ||
	    mprotect(page + PAGE_SIZE, PAGE_SIZE, PROT_NONE))
		return 2;
	if (memory_wraps() || initrd_wraps()) {
		printf("a sum wraps: %#llx of memory left out, '%s'\n",
		       (unsigned long long)boot_info.port.ram_left_out, why);
		return 1;
	}
	return damaged_lists(strtoul(argv[1], NULL, 0));
}
