/* SPDX-License-Identifier: MIT */
/*
 * Page tables (Sv39, all 4 KiB pages). Text is read-only and executable. Nothing else
 * is executable, and no mapping of the text is writable, except the private alias
 * through which text is patched. Memory that the map below does not name is not mapped:
 * address 0, the firmware's memory, devices without a driver.
 */
#include <arch/arch_trace.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/errno.h>
#include <kernel/lock/lock.h>
#include <kernel/printk.h>
#include <kernel/image/symbols.h>
#include <kernel/mm/page.h>

#define PTES 512
#define GIGABYTE_SHIFT 30

#define PROT_TEXT (PTE_V | PTE_R | PTE_X | PTE_A)
#define PROT_RODATA (PTE_V | PTE_R | PTE_A)
#define PROT_DATA (PTE_V | PTE_R | PTE_W | PTE_A | PTE_D)

extern char _rodata[], _erodata[], _data[], _tables[], _etables[];

static u64 kernel_root[PTES] __attribute__((aligned(PAGE_SIZE)));
/*
 * The kernel's root and one entry more: the gigabyte of the image at its
 * physical addresses, writable, not executable. A CPU that patches changes to
 * this root with interrupts off. Every other CPU stays on kernel_root, where
 * the alias does not exist.
 */
static u64 alias_root[PTES] __attribute__((aligned(PAGE_SIZE)));

u64 riscv_satp;
static u64 patch_satp;
static irq_state_t patch_irqs[MAX_CPUS];

static u64 pte_make(u64 pa, u64 prot)
{
	return pa >> PAGE_SHIFT << PTE_PPN_SHIFT | prot;
}

static u64 *pte_table(u64 pte)
{
	return arch_phys_to_virt(pte >> PTE_PPN_SHIFT << PAGE_SHIFT);
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
	u64 *table = kernel_root;
	unsigned int shift;

	for (shift = GIGABYTE_SHIFT; shift > PAGE_SHIFT; shift -= 9) {
		u64 *pte = &table[va >> shift & (PTES - 1)];

		if (!*pte) {
			if (!create)
				return NULL;
			*pte = pte_make(arch_virt_to_phys(table_new()), PTE_V);
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
		u64 value = pte_make(pa, prot);

		for (; pa < min(end, table_end); pa += PAGE_SIZE) {
			*pte++ = value;
			value += 1ul << PTE_PPN_SHIFT;
		}
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
	map_range(b->port.uart, b->port.uart + 1, PROT_DATA);
	map_range(b->port.plic, b->port.plic + b->port.plic_size, PROT_DATA);
	if (b->port.power)
		map_range(b->port.power, b->port.power + 1, PROT_DATA);
}

static u64 satp_of(const u64 *root)
{
	return SATP_SV39 | arch_virt_to_phys(root) >> PAGE_SHIFT;
}

static void satp_set(u64 satp)
{
	/* Nothing is mapped globally, so this forgets all of the other root. */
	asm volatile("csrw satp, %0\n\tsfence.vma" ::"r"(satp) : "memory");
}

void arch_mmu_init(void)
{
	u64 gigabyte =
		ALIGN_DOWN(arch_virt_to_phys(_text), 1ul << GIGABYTE_SHIFT);
	unsigned int i;

	map_all();
	for (i = 0; i < PTES; i++)
		alias_root[i] = kernel_root[i];
	alias_root[gigabyte >> GIGABYTE_SHIFT] = pte_make(gigabyte, PROT_DATA);
	patch_satp = satp_of(alias_root);
	riscv_satp = satp_of(kernel_root);
	satp_set(riscv_satp);
	arch_guard_page(boot_stack_guard, true);
}

static void sync_page(void *page)
{
	asm volatile("sfence.vma %0" ::"r"(page) : "memory");
}

static notrace void forget_pages(void)
{
	asm volatile("sfence.vma" ::: "memory");
}
CPU_COMES(forget_pages);

int arch_guard_page(void *page, bool on)
{
	u64 *pte = pte_find((u64)page, false);

	if (!pte || !*pte)
		return -EINVAL;
	/* One store. Guards of different stacks are different entries. */
	WRITE_ONCE(*pte, on ? *pte & ~(u64)PTE_V : *pte | PTE_V);
	/*
	 * The firmware's remote fence (mask base -1: all harts) where we cannot
	 * wait for the others ourselves. It spins for them, which is slow where
	 * QEMU runs all harts in one thread: 0.1 s each.
	 */
	if (cpu_call(~0u, sync_page, page))
		sbi_call(SBI_RFENCE, SBI_RFENCE_SFENCE_VMA, 0, -1ul, (u64)page,
			 PAGE_SIZE);
	return 0;
}

long arch_text_open(void)
{
	irq_state_t state = arch_irq_save();

	patch_irqs[cpu_index()] = state;
	satp_set(patch_satp);
	return -(long)KERNEL_OFFSET;
}

void arch_text_close(void)
{
	satp_set(riscv_satp);
	arch_irq_restore(patch_irqs[cpu_index()]);
}
