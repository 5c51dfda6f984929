/* SPDX-License-Identifier: MIT */
/*
 * Page tables (region-third tables, 4 KiB pages). Text is read-only and executable. Nothing
 * else is executable, and no mapping of the text is writable, except the private alias
 * through which text is patched. Physical memory, and nothing else, is mapped.
 */
#include <arch/arch_trace.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/lock/lock.h>
#include <kernel/printk.h>
#include <kernel/image/symbols.h>
#include <kernel/mm/page.h>

#define ALIAS_BASE 0x4000000000ul

#define PROT_TEXT PTE_READ_ONLY
#define PROT_RODATA (PTE_READ_ONLY | PTE_NO_EXEC)
#define PROT_DATA PTE_NO_EXEC

extern char _rodata[], _erodata[], _data[], _tables[], _etables[];

/*
 * All that kernel_root maps, and the image once more, writable, not executable. It is the address
 * space of a CPU that patches, with interrupts off, and of no other.
 */
static u64 alias_root[ROOT_ENTRIES] __attribute__((aligned(PAGE_SIZE)));

u64 s390_asce;
static irq_state_t patch_irqs[MAX_CPUS];

/* The page's entry for va, or NULL if no table has it. */
static u64 *pte_find(u64 va)
{
	u64 entry = va >> REGION_SHIFT < ROOT_ENTRIES ?
			    kernel_root[va >> REGION_SHIFT] :
			    REGION3_INVALID;

	if (entry == REGION3_INVALID)
		return NULL;
	entry = ((u64 *)arch_phys_to_virt(ALIGN_DOWN(
		entry, PAGE_SIZE)))[va >> SEGMENT_SHIFT & (SEGMENTS - 1)];
	if (entry & SEGMENT_INVALID)
		return NULL;
	return (u64 *)arch_phys_to_virt(entry) +
	       (va >> PAGE_SHIFT & (PTES - 1));
}

static void protect_image(const char *start, const char *end, u64 prot)
{
	u64 va = ALIGN_DOWN((u64)start, PAGE_SIZE);

	for (; va < (u64)end; va += PAGE_SIZE)
		*pte_find(va) = arch_virt_to_phys((void *)va) | prot;
}

static u64 asce_of(const u64 *root)
{
	return arch_virt_to_phys(root) | ASCE_REGION3;
}

/* LOAD CONTROL makes the CPU forget the translations of other address spaces. */
static void space_switch(u64 asce)
{
	asm volatile("lctlg 1,1,%0" ::"Q"(asce) : "memory");
}

/* start.S has made the tables below the root. */
static void alias_make(void)
{
	unsigned int i;

	if (arch_virt_to_phys(_end) > (u64)IMAGE_MIB << SEGMENT_SHIFT)
		panic("mmu: the image is larger than %d MiB", IMAGE_MIB);
	for (i = 0; i < IMAGE_MIB * PTES; i++)
		image_pages[i] |= PTE_NO_EXEC;
	for (i = 0; i < ROOT_ENTRIES; i++)
		alias_root[i] = kernel_root[i];
	alias_root[ALIAS_BASE >> REGION_SHIFT] =
		arch_virt_to_phys(image_segments) | REGION3_SHORT;
}

/* firmware.c has made the tables. */
void arch_mmu_init(void)
{
	protect_image(arch_phys_to_virt(0), _text, PROT_DATA);
	protect_image(_text, _etext, PROT_TEXT);
	protect_image(_rodata, _erodata, PROT_RODATA);
	protect_image(_data, _tables, PROT_DATA);
	protect_image(_tables, _etables, PROT_RODATA);
	alias_make();
	s390_asce = asce_of(kernel_root);
	space_switch(s390_asce);
	asm volatile("ptlb" ::: "memory");
	arch_guard_page(boot_stack_guard, true);
}

/* ipte: all CPUs forget the page. One that is invalid is in no CPU's buffer. */
int arch_guard_page(void *page, bool on)
{
	u64 va = (u64)page, *pte = pte_find(va);
	u64 table = arch_virt_to_phys(
		(const void *)ALIGN_DOWN((u64)pte, PTES * sizeof(*pte)));

	if (!pte || *pte == PTE_INVALID)
		return -EINVAL;
	if (on)
		asm volatile("ipte %0,%1" ::"a"(table), "a"(va) : "memory");
	else
		WRITE_ONCE(*pte, *pte & ~(u64)PTE_INVALID);
	return 0;
}

long arch_text_open(void)
{
	irq_state_t state = arch_irq_save();

	patch_irqs[cpu_index()] = state;
	space_switch(asce_of(alias_root));
	return (long)(ALIAS_BASE - KERNEL_OFFSET);
}

void arch_text_close(void)
{
	space_switch(s390_asce);
	arch_irq_restore(patch_irqs[cpu_index()]);
}
