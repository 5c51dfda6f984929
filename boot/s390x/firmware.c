/* SPDX-License-Identifier: MIT */
/* Fills boot_info: memory from the service processor, CPUs by asking each, and the words that
 * QEMU has written into the image. */
#include <boot/boot_info.h>
#include <boot/boot.h>
#include <kernel/cpu/cpu.h>
#include <kernel/image/symbols.h>
#include <kernel/main.h>

#define CPUS_MOST 256 /* addresses that are asked for */
#define MIB_SHIFT 20

/* The answer to SCLP_READ_INFO: how many increments of storage, and MiB in each. */
static struct {
	u16 length;
	u8 function, control[3];
	u16 response;
	u16 increments;
	u8 mib;
	char rest[PAGE_SIZE - 11];
} info __attribute__((aligned(PAGE_SIZE)));

static void find_memory(void)
{
	info.length = sizeof(info);
	sclp_call(SCLP_READ_INFO, arch_virt_to_phys(&info));
	if ((info.response & 0xff) != 0x10 || !info.increments || !info.mib)
		boot_fail("service processor: no answer about memory: %#x",
			  info.response);
	boot_info.ram_bytes = (u64)info.increments * info.mib << MIB_SHIFT;
	boot_add_memory(0, boot_info.ram_bytes);
}

static u32 own_address(void)
{
	u16 address;

	asm volatile("stap %0" : "=Q"(address));
	return address;
}

/* The CPU that boots has index 0, whichever its address. */
static void find_cpus(void)
{
	struct boot_info *b = &boot_info;
	u32 own = own_address(), address;

	b->cpu_hwid[b->nr_cpus++].id = own;
	for (address = 0; address < CPUS_MOST; address++) {
		if (address == own ||
		    sigp_order(address, SIGP_SENSE, 0) == SIGP_NO_CPU)
			continue;
		if (b->nr_cpus == MAX_CPUS)
			b->cpus_ignored++;
		else
			b->cpu_hwid[b->nr_cpus++].id = address;
	}
}

static void find_initrd(void)
{
	const u64 *start = arch_phys_to_virt(INITRD_START);
	const u64 *size = arch_phys_to_virt(INITRD_SIZE);

	boot_info.initrd = (struct boot_range){ *start, *start + *size };
}

static void real_store(u64 real, u64 v)
{
	asm volatile("sturg %0,%1" ::"d"(v), "a"(real) : "memory");
}

static void table_fill(u64 table, unsigned int entries, u64 entry)
{
	for (unsigned int i = 0; i < entries; i++)
		real_store(table + 8 * i, entry);
}

/* One MiB's page table at `table`, for which `segment` is the entry. */
static void map_segment(u64 pa, u64 table, u64 segment)
{
	u64 prot = pa < arch_virt_to_phys(_end) ? 0 : PTE_NO_EXEC;

	for (unsigned int i = 0; i < PTES; i++)
		real_store(table + 8 * i, (pa + i * PAGE_SIZE) | prot);
	real_store(segment, table);
}

/*
 * Map all memory at KERNEL_OFFSET: start.S has mapped the image's. The tables begin at `next`, and
 * are written at their real addresses, because nothing maps them yet. Returns their end.
 */
static u64 map_memory(u64 next)
{
	u64 *root = &kernel_root[KERNEL_OFFSET >> REGION_SHIFT];
	u64 pa, segments = 0, first = next;

	for (pa = 0; pa < boot_info.ram_bytes; pa += 1ul << SEGMENT_SHIFT) {
		u64 segment = pa >> SEGMENT_SHIFT & (SEGMENTS - 1);

		if (!segment) {
			segments = next;
			next += SEGMENTS * 8;
			table_fill(segments, SEGMENTS, SEGMENT_INVALID);
			if (pa)
				root[pa >> REGION_SHIFT] =
					segments | REGION3_TABLE;
		}
		map_segment(pa, next, segments + 8 * segment);
		next += PTES * 8;
	}
	root[0] = first | REGION3_TABLE;
	asm volatile("ptlb" ::: "memory");
	return next;
}

/* From start.S. */
noreturn void boot_main(void);
noreturn void boot_main(void)
{
	struct boot_info *b = &boot_info;
	u64 tables;

	find_memory();
	find_cpus();
	find_initrd();
	tables = ALIGN_UP(max(arch_virt_to_phys(_end), b->initrd.end),
			  PAGE_SIZE);
	boot_remove_memory(tables, map_memory(tables));
	boot_set_cmdline(arch_phys_to_virt(COMMAND_LINE), COMMAND_LINE_SIZE);
	boot_remove_memory(b->initrd.start, b->initrd.end);
	boot_remove_memory(0, arch_virt_to_phys(_end));
	kernel_main();
}

/* From start.S: a trap before arch_trap_init(). */
noreturn void boot_trapped(u64 cause, u64 pc, u64 address);
noreturn void boot_trapped(u64 cause, u64 pc, u64 address)
{
	boot_fail("trap %#llx at %#llx, address %#llx",
		  (unsigned long long)cause, (unsigned long long)pc,
		  (unsigned long long)address);
}
