/* SPDX-License-Identifier: MIT */
/*
 * The boot CPU, from QEMU: interrupts and paging off, this code at its physical address,
 * no register set. To C at its linked address, on boot_stack, with paging.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

#define GIGABYTE_SHIFT 30
#define UART_DATA 0x09000000 /* QEMU's virt: before the device tree is read */
#define STATUS_FAILED 35     /* power_status(1) */

	.section .text.start, "ax"
FUNCTION(_start)
	.cfi_undefined x30		/* nothing called it: walks end here */
	mrs	x0, CurrentEL
	cmp	x0, #1 << 2
	b.ne	wrong_cpu
	mrs	x0, id_aa64mmfr0_el1
	tbnz	x0, #MMFR0_NO_4K, wrong_cpu

	/*
	 * Boot page table: 256 GiB of physical memory at KERNEL_OFFSET, devices in the
	 * first, text in the second. arch_mmu_init() replaces it.
	 */
	address	x0, boot_root
	constant x1, PTE_BLOCK | PTE_DEVICE | PTE_PXN
	str	x1, [x0]
	constant x1, PTE_BLOCK | PTE_NORMAL | (1 << GIGABYTE_SHIFT)
	str	x1, [x0, #8]
	constant x1, PTE_BLOCK | PTE_NORMAL | PTE_PXN | (2 << GIGABYTE_SHIFT)
	mov	x2, #2
	mov	x3, #1 << GIGABYTE_SHIFT
1:	str	x1, [x0, x2, lsl #3]
	add	x1, x1, x3
	add	x2, x2, #1
	cmp	x2, #256
	b.ne	1b
	linked	x30, boot_high
	b	paging_on

boot_high:
	address	x0, boot_vectors
	msr	vbar_el1, x0
	address	x0, boot_stack + STACK_SIZE
	mov	sp, x0
	address	x28, cpus
	mrs	x0, mpidr_el1
	and	x0, x0, #MPIDR_LOW
	b	boot_main

	/* Without paging no C can run. */
wrong_cpu:
	mov	x1, #UART_DATA
	address	x2, wrong_cpu_text
1:	ldrb	w0, [x2], #1
	cbz	w0, 2f
	str	w0, [x1]
	b	1b
2:	address	x1, exit_words
	mov	w0, #SEMIHOSTING_EXIT
	hlt	#SEMIHOSTING
3:	wfi
	b	3b
END(_start)

/*
 * Turns paging on with the page tables at physical address x0, and goes on at the linked
 * address x30. The tables do not map this code where it runs: the fetch behind the last
 * instruction faults, and the vector there leads on. So no executable alias of the text
 * is needed.
 */
FUNCTION(paging_on)
	.cfi_undefined x30
	msr	ttbr1_el1, x0
	msr	ttbr0_el1, xzr
	constant x1, TCR_KERNEL
	msr	tcr_el1, x1
	constant x1, MAIR_KERNEL
	msr	mair_el1, x1
	linked	x1, paging_vectors
	msr	vbar_el1, x1
	tlbi	vmalle1
	ic	iallu
	dsb	nsh
	constant x1, SCTLR_KERNEL
	isb
	msr	sctlr_el1, x1
	isb
1:	b	1b
END(paging_on)

	.section .rodata
	.balign	8
exit_words:
	.8byte	SEMIHOSTING_STOPPED, STATUS_FAILED
wrong_cpu_text:
	.asciz	"boot: this CPU is not at EL1, or has no 4 KiB pages\n"

	.section .text.vectors, "ax"
	.balign	2048
FUNCTION(paging_vectors)
	.cfi_undefined x30
	.fill	0x200 / 4, 4, 0	/* udf */
	isb
	br	x30
END(paging_vectors)

	.balign	2048
FUNCTION(boot_vectors)
	.cfi_undefined x30
	.rept	0x400 / 128
	.fill	124 / 4, 4, 0	/* udf */
	b	1f
	.endr
1:	mrs	x0, esr_el1
	mrs	x1, elr_el1
	mrs	x2, far_el1
	address	x3, boot_stack + STACK_SIZE
	mov	sp, x3
	bl	boot_trapped
	nop
END(boot_vectors)

	.section .bss.page_aligned, "aw", @nobits
	.balign	4096
boot_root:
	.space	4096
	.globl	boot_stack_guard, boot_stack
boot_stack_guard:
	.space	4096
boot_stack:
	.space	STACK_SIZE
