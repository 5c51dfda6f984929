/* SPDX-License-Identifier: MIT */
/* Conformance of a port with arch.h: memory. Section 4 of the guide. */
#include <arch/arch.h>
#include <arch/conform/conform.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/string.h>
#include <kernel/mm/page.h>
#include <kernel/sched/task.h>
#include <kernel/test/ktest.h>
#include <kernel/test/again.h>

static void mm_store_to(void *arg)
{
	*(volatile u32 *)arg = 0;
}

static void mm_load_from(void *arg)
{
	(void)*(volatile u32 *)arg;
}

static void mm_run_at(void *arg)
{
	((void (*)(void))arg)();
	asm volatile(""); /* no tail call */
}

static noinline notrace void only_return(void)
{
	asm volatile("");
}

KTEST(arch_mmu_init, "arch.mmu_init")
{
	static u32 data[16] __attribute__((aligned(64)));
	unsigned int c;

	/* A function that returns: only the protection can keep it from running. */
	memcpy(data, (const void *)only_return, sizeof(data));
	for_each_online_cpu (c) {
		KEXPECT_EQ(t, conform_victim(mm_load_from, NULL, c), -EFAULT);
		if (!arch_protects_text)
			continue;
		KEXPECT_EQ(t, conform_victim(mm_store_to, _text, c), -EFAULT);
		KEXPECT_EQ(t,
			   conform_victim(mm_store_to, (void *)&arch_name, c),
			   -EFAULT);
		KEXPECT_EQ(t, conform_victim(mm_run_at, data, c), -EFAULT);
		/* The stack holds anything: if data runs, this test has failed. */
		if (t->failures)
			break;
		KEXPECT_EQ(t,
			   conform_victim(mm_run_at, current_task()->stack, c),
			   -EFAULT);
	}
}

/* Addresses below the direct map that lead somewhere, as one number: each of them has one bit set.
 * Every machine with 64 bits knows addresses of 47 bits at least. */
static unsigned long mapped_below(unsigned int cpu)
{
	u64 end = min((u64)(unsigned long)arch_phys_to_virt(0), 1ull << 46);
	unsigned long mapped = 0;

	for (u64 at = 1 << 20; at < end; at <<= 1)
		if (conform_victim(mm_load_from, (void *)(unsigned long)at,
				   cpu) != -EFAULT)
			mapped |= at;
	return mapped;
}

/* A stray pointer reaches what the boot tables have left there. */
KTEST(arch_mmu_below, "arch.mmu_init.below")
{
	KEXPECT_EQ(t, mapped_below(ktest_last_cpu()), 0);
}

/* The hardware protects the text if, and only if, the port says so. */
KTEST(arch_protects_text, "arch.protects_text")
{
	KEXPECT_EQ(t, conform_victim(conform_store_back, _text, 0),
		   arch_protects_text ? -EFAULT : 0);
}

static bool is_ram(u64 pa)
{
	for (unsigned int i = 0; i < boot_info.nr_mem; i++)
		if (pa >= boot_info.mem[i].start && pa < boot_info.mem[i].end)
			return true;
	return false;
}

KTEST(arch_virt_to_phys, "arch.virt_to_phys")
{
	char *page = page_alloc(1);
	u64 pa = arch_virt_to_phys(page);

	KEXPECT(t, is_ram(pa));
	KEXPECT_EQ(t, pa % (2 * PAGE_SIZE), 0);
	KEXPECT_EQ(t, arch_virt_to_phys(page + 5000), pa + 5000);
	/* The allocator was not given the image's own memory. */
	KEXPECT(t, !is_ram(arch_virt_to_phys(_text)));
	KEXPECT_EQ(t, arch_virt_to_phys(_end) - arch_virt_to_phys(_text),
		   _end - _text);
	page_free(page, 1);
}

KTEST(arch_phys_to_virt, "arch.phys_to_virt")
{
	u32 *page = page_alloc(0);
	u32 *same = arch_phys_to_virt(arch_virt_to_phys(page));

	WRITE_ONCE(page[7], 0x12345678);
	KEXPECT(t, same == page);
	KEXPECT_EQ(t, READ_ONCE(same[7]), 0x12345678);
	KEXPECT(t, arch_phys_to_virt(arch_virt_to_phys(_text)) == _text);
	page_free(page, 0);
}

static void use_word(void *word)
{
	(void)READ_ONCE(*(u32 *)word);
}

KTEST(arch_guard_page, "arch.guard_page")
{
	u32 *page = page_alloc(1);
	u32 *above = page + PAGE_SIZE / sizeof(*page);
	unsigned int c;
	int err;

	page[0] = above[0] = 77;
	memcpy(page + 16, (const void *)only_return, 64);
	err = arch_guard_page(page, true);
	if (!arch_protects_text) {
		KEXPECT_EQ(t, err, -ENOSYS);
		page_free(page, 1);
		return;
	}
	KEXPECT_EQ(t, err, 0);
	for_each_online_cpu (c) {
		KEXPECT_EQ(t, conform_victim(mm_load_from, page, c), -EFAULT);
		KEXPECT_EQ(t, conform_victim(mm_store_to, above - 1, c),
			   -EFAULT);
		KEXPECT_EQ(t, conform_victim(mm_load_from, above, c), 0);
	}
	KEXPECT_EQ(t, arch_guard_page(page, false), 0);
	KEXPECT_EQ(t, page[0], 77);
	/* It is as before: data, which is read and written and does not run. */
	for_each_online_cpu (c) {
		KEXPECT_EQ(t, conform_victim(mm_load_from, page, c), 0);
		KEXPECT_EQ(t, conform_victim(mm_store_to, page + 1, c), 0);
		KEXPECT_EQ(t, conform_victim(mm_run_at, page + 16, c), -EFAULT);
	}
	/*
	 * A CPU that has just used the page has to forget it. This task stays on other CPUs,
	 * because a new task's guard page may have its CPU forget all pages.
	 */
	for_each_online_cpu (c) {
		task_set_affinity(current_task(),
				  nr_cpus > 1 ? ~(1u << c) : ~0u);
		cpu_call(1u << c, use_word, page);
		KEXPECT_EQ(t, arch_guard_page(page, true), 0);
		KEXPECT_EQ(t, conform_victim(mm_load_from, page, c), -EFAULT);
		KEXPECT_EQ(t, arch_guard_page(page, false), 0);
	}
	task_set_affinity(current_task(), ~0u);
	page_free(page, 1);
}

/* The largest of page_alloc(), which gives the last such block of memory first. */
#define LARGEST_ORDER 11

/* A machine may have memory beyond 4 GiB, so addresses and entries of its pages need all 64 bits.
 * tests/test_machines.py boots one. */
KTEST(arch_guard_page_far, "arch.guard_page.far")
{
	u32 *page = page_alloc(LARGEST_ORDER);
	u64 pa = arch_virt_to_phys(page);

	KASSERT(t, page);
	KEXPECT(t, is_ram(pa));
	KASSERT(t, arch_phys_to_virt(pa) == page);
	page[0] = 77;
	if (arch_protects_text) {
		KEXPECT_EQ(t, arch_guard_page(page, true), 0);
		KEXPECT_EQ(t,
			   conform_victim(mm_load_from, page, ktest_last_cpu()),
			   -EFAULT);
		KEXPECT_EQ(t, arch_guard_page(page, false), 0);
	}
	/* Were another page there, page_free() would write to it. */
	KASSERT(t, READ_ONCE(page[0]) == 77);
	page_free(page, LARGEST_ORDER);
}
