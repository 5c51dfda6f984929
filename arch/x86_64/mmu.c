/* SPDX-License-Identifier: MIT */
/*
 * Page tables. Every page of the direct map, and with it the image, has its
 * own 4 KiB entry: so guard pages and the image's borders need no splitting.
 * Two roots: kernel_root, and alias_root, which has the image once more,
 * writable, for the one CPU that is changing text.
 */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/mm/page.h>

#define ENTRIES 512
#define LARGE_PAGE (ENTRIES * PAGE_SIZE)
#define CPUID_NX (1u << 20)

/* Which entry of its table covers a virtual address. */
#define PML4_INDEX(va) ((va) >> 39 & (ENTRIES - 1))
#define PDPT_INDEX(va) ((va) >> 30 & (ENTRIES - 1))
#define PD_INDEX(va) ((va) >> 21 & (ENTRIES - 1))
#define PT_INDEX(va) ((va) >> 12 & (ENTRIES - 1))

extern char _boot_end[], _erodata[], _rodata[], _data[], _tables[], _etables[];

const bool arch_protects_text = true;

u64 kernel_root, alias_root;

static u64 *direct_pd; /* covers DIRECT_MAP_SIZE, tables below it */
static u64 *device_pt;
static unsigned int devices;
static u64 no_execute; /* PTE_NX if the CPU has it */

static u64 *table_alloc(void)
{
	u64 *table = page_alloc(0);

	if (!table)
		panic("no memory for page tables");
	memset(table, 0, PAGE_SIZE);
	return table;
}

static u64 table_entry(const u64 *table)
{
	return arch_virt_to_phys(table) | PTE_PRESENT | PTE_WRITE;
}

/* The entry of an address in the direct map. Its table must exist. */
static u64 *direct_pte(unsigned long va)
{
	u64 entry = direct_pd[PD_INDEX(va)];
	u64 *table = arch_phys_to_virt(entry & ~(PAGE_SIZE - 1));

	return &table[PT_INDEX(va)];
}

static void map_direct(u64 start, u64 end, u64 flags)
{
	for (u64 pa = start; pa < end; pa += PAGE_SIZE) {
		unsigned long va = pa + KERNEL_OFFSET;

		if (!direct_pd[PD_INDEX(va)])
			direct_pd[PD_INDEX(va)] = table_entry(table_alloc());
		*direct_pte(va) = pa | flags;
	}
}

/*
 * RAM is written and not executed, but for the image's parts. Nothing else is
 * mapped: not page 0, not the hole below 1 MiB.
 */
static void map_all(void)
{
	u64 data = PTE_PRESENT | PTE_WRITE | no_execute;
	u64 readonly = PTE_PRESENT | no_execute;

	map_direct(SECONDARY_PAGE, SECONDARY_PAGE + PAGE_SIZE, data);
	map_direct(0x100000, boot_info.port.ram_top, data);
	map_direct(KERNEL_PHYS, (u64)_boot_end, readonly);
	map_direct(arch_virt_to_phys(_text), arch_virt_to_phys(_etext),
		   PTE_PRESENT);
	map_direct(arch_virt_to_phys(_rodata), arch_virt_to_phys(_erodata),
		   readonly);
	map_direct(arch_virt_to_phys(_tables), arch_virt_to_phys(_etables),
		   readonly);
}

/* alias_root: kernel_root's upper half, and the alias in large pages. */
static u64 make_patch_root(u64 kernel_half)
{
	u64 *pml4 = table_alloc(), *pdpt = table_alloc(), *pd = table_alloc();
	u64 end = arch_virt_to_phys(_etext);

	for (u64 pa = ALIGN_DOWN(arch_virt_to_phys(_text), LARGE_PAGE);
	     pa < end; pa += LARGE_PAGE)
		pd[PD_INDEX(ALIAS_BASE + pa)] =
			pa | PTE_PRESENT | PTE_WRITE | PTE_LARGE | no_execute;
	pdpt[PDPT_INDEX(ALIAS_BASE)] = table_entry(pd);
	pml4[PML4_INDEX(ALIAS_BASE)] = table_entry(pdpt);
	pml4[PML4_INDEX(KERNEL_OFFSET)] = kernel_half;
	return arch_virt_to_phys(pml4);
}

void arch_mmu_init(void)
{
	u64 *pml4 = table_alloc(), *pdpt = table_alloc();
	u64 *device_pd = table_alloc();

	if (cpuid(0x80000001).edx & CPUID_NX)
		no_execute = PTE_NX;
	else
		printk("x86_64: this CPU has no NX bit: data is executable\n");
	if (boot_info.port.ram_left_out)
		printk("x86_64: %llu MiB beyond the first GiB left out\n",
		       (unsigned long long)boot_info.port.ram_left_out >> 20);

	direct_pd = table_alloc();
	device_pt = table_alloc();
	pml4[PML4_INDEX(KERNEL_OFFSET)] = table_entry(pdpt);
	pdpt[PDPT_INDEX(KERNEL_OFFSET)] = table_entry(direct_pd);
	pdpt[PDPT_INDEX(DEVICE_BASE)] = table_entry(device_pd);
	device_pd[PD_INDEX(DEVICE_BASE)] = table_entry(device_pt);
	map_all();
	alias_root = make_patch_root(pml4[PML4_INDEX(KERNEL_OFFSET)]);
	kernel_root = arch_virt_to_phys(pml4);
	write_cr3(kernel_root);
}

volatile u32 *mmu_map_device(u64 pa)
{
	unsigned int slot = devices++;

	if (slot >= ENTRIES)
		panic("no room to map the device at %llx",
		      (unsigned long long)pa);
	device_pt[slot] = ALIGN_DOWN(pa, (u64)PAGE_SIZE) | PTE_PRESENT |
			  PTE_WRITE | PTE_UNCACHED | no_execute;
	return (u32 *)(DEVICE_BASE + slot * PAGE_SIZE + pa % PAGE_SIZE);
}

static void flush_page(void *page)
{
	asm volatile("invlpg (%0)" : : "r"(page) : "memory");
}

/* No page is global, so this forgets all (SDM 3A, 4.10.4.1). */
static notrace void forget_pages(void)
{
	write_cr3(read_cr3());
}
CPU_COMES(forget_pages);

/*
 * Other CPUs have to flush the page only when it becomes absent: no CPU caches a
 * translation that is absent (SDM 3A, 4.10.2.3).
 */
int arch_guard_page(void *page, bool on)
{
	u64 *pte = direct_pte((unsigned long)page);

	if (!on) {
		WRITE_ONCE(*pte, *pte | PTE_PRESENT);
		return 0;
	}
	WRITE_ONCE(*pte, *pte & ~(u64)PTE_PRESENT);
	/* With interrupts off, at boot, this CPU is the only one. */
	if (cpu_call(~0u, flush_page, page))
		flush_page(page);
	return 0;
}
