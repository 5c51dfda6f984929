/* SPDX-License-Identifier: MIT */
/*
 * Page tables (39-bit addresses, all 4 KiB pages). Text is read-only and executable. Nothing
 * else is executable, and no mapping of the text is writable, except the private alias
 * through which text is patched. Memory that the map below does not name is not mapped: address 0,
 * the firmware's memory, devices without a driver.
 */
#include <arch/arch_trace.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lock/lock.h>
#include <kernel/printk.h>
#include <kernel/image/symbols.h>
#include <kernel/mm/page.h>

#define PTES 512
#define GIGABYTE_SHIFT 30
#define GIC_SIZE 0x10000 /* of a distributor, and of a CPU interface */

#define PTE_PAGE (PTE_VALID | PTE_TABLE | PTE_USED)
#define PROT_TEXT (PTE_PAGE | PTE_NORMAL | PTE_READ_ONLY)
#define PROT_RODATA (PROT_TEXT | PTE_PXN)
#define PROT_DATA (PTE_PAGE | PTE_NORMAL | PTE_PXN)
#define PROT_DEVICE (PTE_PAGE | PTE_DEVICE | PTE_PXN)
#define PROT_ALIAS (PTE_BLOCK | PTE_NORMAL | PTE_PXN | PTE_NOT_GLOBAL)

extern char _rodata[], _erodata[], _data[], _tables[], _etables[];

/* For the upper half of the address space, in which the kernel is. */
u64 arm64_root[PTES] __attribute__((aligned(PAGE_SIZE)));
/*
 * For the lower half: the gigabyte of the image at its physical addresses, writable, not
 * executable. Every CPU's lower half is off, but that of a CPU that patches, with interrupts
 * off.
 */
static u64 alias_root[PTES] __attribute__((aligned(PAGE_SIZE)));

static irq_state_t patch_irqs[MAX_CPUS];

static u64 *pte_table(u64 pte)
{
	return arch_phys_to_virt(pte & ((1ul << 48) - PAGE_SIZE));
}

static u64 *table_new(void)
{
	u64 *table = page_alloc(0);
	unsigned int i;

	if (!table)
		panic("mmu: no memory for page tables");
	for (i = 0; i < PTES; i++)
		table[i] = 0;
	return table;
}

/* The last-level entry of va, or NULL if there is no table and !create. */
static u64 *pte_find(u64 va, bool create)
{
	u64 *table = arm64_root;
	unsigned int shift;

	for (shift = GIGABYTE_SHIFT; shift > PAGE_SHIFT; shift -= 9) {
		u64 *pte = &table[va >> shift & (PTES - 1)];

		if (!*pte) {
			if (!create)
				return NULL;
			*pte = arch_virt_to_phys(table_new()) | PTE_VALID |
			       PTE_TABLE;
		}
		table = pte_table(*pte);
	}
	return &table[va >> PAGE_SHIFT & (PTES - 1)];
}

/* Map physical [pa, end), widened to whole pages, at KERNEL_OFFSET. */
static void map_range(u64 pa, u64 end, u64 prot)
{
	pa = ALIGN_DOWN(pa, PAGE_SIZE);
	while (pa < end) {
		u64 *pte = pte_find(pa + KERNEL_OFFSET, true);
		u64 table_end = ALIGN_UP(pa + 1, PTES * PAGE_SIZE);

		for (; pa < min(end, table_end); pa += PAGE_SIZE)
			*pte++ = pa | prot;
	}
}

static void map_image(const char *start, const char *end, u64 prot)
{
	map_range(arch_virt_to_phys(start), arch_virt_to_phys(end), prot);
}

static void map_all(void)
{
	const struct boot_info *b = &boot_info;
	unsigned int i;

	map_image(_text, _etext, PROT_TEXT);
	map_image(_rodata, _erodata, PROT_RODATA);
	map_image(_data, _tables, PROT_DATA);
	map_image(_tables, _etables, PROT_RODATA);
	for (i = 0; i < b->nr_mem; i++)
		map_range(b->mem[i].start, b->mem[i].end, PROT_DATA);
	map_range(b->initrd.start, b->initrd.end, PROT_DATA);
	map_range(b->port.uart, b->port.uart + 1, PROT_DEVICE);
	map_range(b->port.gicd, b->port.gicd + GIC_SIZE, PROT_DEVICE);
	map_range(b->port.gicr, b->port.gicr_end, PROT_DEVICE);
	if (b->port.gicc)
		map_range(b->port.gicc, b->port.gicc + GIC_SIZE, PROT_DEVICE);
}

/* Forget all translations of this CPU. */
static void tlb_forget(void)
{
	asm volatile("dsb nshst\n\ttlbi vmalle1\n\tdsb nsh\n\tisb" ::
			     : "memory");
}

void arch_mmu_init(void)
{
	u64 gigabyte =
		ALIGN_DOWN(arch_virt_to_phys(_text), 1ul << GIGABYTE_SHIFT);

	map_all();
	alias_root[gigabyte >> GIGABYTE_SHIFT] = gigabyte | PROT_ALIAS;
	asm volatile("dsb ish" ::: "memory");
	reg_write(ttbr1_el1, arch_virt_to_phys(arm64_root));
	insn_sync();
	tlb_forget();
	arch_guard_page(boot_stack_guard, true);
}

/* The page is forgotten by all CPUs: the invalidation is broadcast. */
int arch_guard_page(void *page, bool on)
{
	u64 *pte = pte_find((u64)page, false);

	if (!pte || !*pte)
		return -EINVAL;
	/* One store. Guards of different stacks are different entries. */
	WRITE_ONCE(*pte, on ? *pte & ~(u64)PTE_VALID : *pte | PTE_VALID);
	asm volatile("dsb ishst\n\ttlbi vaae1is, %0\n\tdsb ish\n\tisb" ::"r"(
			     (u64)page >> PAGE_SHIFT & ((1ul << 44) - 1))
		     : "memory");
	return 0;
}

static void alias_switch(u64 tcr)
{
	reg_write(tcr_el1, tcr);
	insn_sync();
}

long arch_text_open(void)
{
	irq_state_t state = arch_irq_save();

	patch_irqs[cpu_index()] = state;
	reg_write(ttbr0_el1, arch_virt_to_phys(alias_root));
	alias_switch(TCR_KERNEL & ~(u64)TCR_NO_LOW);
	return -(long)KERNEL_OFFSET;
}

/* What the CPU has kept of the lower half is of address space 0, and not global. */
void arch_text_close(void)
{
	alias_switch(TCR_KERNEL);
	asm volatile("tlbi aside1, xzr\n\tdsb nsh\n\tisb" ::: "memory");
	arch_irq_restore(patch_irqs[cpu_index()]);
}
